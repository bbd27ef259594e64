"""Where rows come from: columns, lines and files are kept, and said where they matter."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import corpora
import rankone
from rankone import Corpus, Sentence
from rankone.corpus import Columns
from rankone.corpus.conflicts import AROUND, KEPT, Conflict
from rankone.errors import CorpusError, SettingError


def put(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


CONLLU = "\n".join(f"{i}\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\tx" for i in (1, 2))
COLUMNS: list[tuple[str, str, dict[str, Any], Columns, str]] = [
    ("c", "a X\n", {}, Columns(1, 2, 2), "tokens in column 1, labels in column 2 of 2"),
    ("c", "a b c\n", {}, Columns(1, 3, 3), "tokens in column 1, labels in column 3 of 3"),
    ("c", "a b c\n", {"label_column": -2, "token_column": "3"}, Columns(3, 2, 3), "tokens in "),
    ("c", "a b c\n", {"token_column": -3}, Columns(1, 3, 3), "tokens in column 1, labels in"),
    ("c", "a b\n", {"labelled": False}, Columns(1, None, 2), "tokens in column 1 of 2"),
    ("c.conllu", CONLLU, {}, Columns("form", "upos", 10), "tokens in 'form', labels in 'upos'"),
    ("c.conllu", CONLLU, {"label_column": 5}, Columns("form", "xpos", 10), "tokens in 'form'"),
    (
        "c.conllu",
        CONLLU,
        {"token_column": 10, "label_column": -10},
        Columns("misc", "id", 10),
        "tokens in 'misc', labels in 'id' of 10",
    ),
    (
        "c.conllu",
        CONLLU,
        {"token_column": -10, "label_column": 10},
        Columns("id", "misc", 10),
        "tokens in 'id', labels in 'misc' of 10",
    ),
    ("c.tsv", "word\tx\ttag\na\tb\tc\n", {}, Columns("word", "tag", 3), "tokens in 'word', lab"),
    ("c.tsv", "word\ttag\ttag\na\tb\tc\n", {"label_column": 2}, Columns("word", 2, 3), "tokens in"),
    ("c.tsv", "word\t3\ttag\na\tb\tc\n", {"label_column": 2}, Columns("word", 2, 3), "tokens in"),
    ("c.tsv", "word\t\ttag\na\tb\tc\n", {"label_column": 2}, Columns("word", 2, 3), "tokens in"),
    ("c.tsv", "a\tX\n", {}, Columns(1, 2, 2), "tokens in column 1, labels in column 2 of 2"),
    ("c.jsonl", '{"tokens": ["a"], "labels": ["X"]}', {}, Columns("tokens", "labels"), "tokens in"),
    (
        "c.jsonl",
        '{"0": ["a"], "tag": ["X"]}',
        {"token_column": 0, "label_column": "tag"},
        Columns("0", "tag"),
        "tokens in '0', labels in 'tag'",
    ),
]


@pytest.mark.parametrize(("name", "text", "how", "columns", "said"), COLUMNS)
def test_the_columns_that_were_taken_are_known_and_read_the_same_again(
    tmp_path: Path, name: str, text: str, how: dict[str, Any], columns: Columns, said: str
) -> None:
    path = put(tmp_path, name, text)
    corpus = rankone.read_corpus(path, **how)
    assert corpus.columns == columns
    assert str(columns).startswith(said)
    assert corpus.reading["columns"] == columns.of
    again = rankone.read_corpus(
        path,
        token_column=columns.token,
        label_column=columns.label,
        labelled=how.get("labelled", True),
    )
    assert (again.vocabulary, again.label_names) == (corpus.vocabulary, corpus.label_names)


def test_columns_of_python_objects() -> None:
    pairs = corpora.spelled("ab xy")
    assert Corpus.from_sentences(pairs).columns == Columns()
    mapping = [{"words": ["a"], "upos": ["X"]}]
    assert Corpus.from_sentences(mapping).columns == Columns("words", "upos")
    frame = pandas.DataFrame({1: [["a"]], ("t", 0): [["X"]], "tags": [["Y"]]})
    chosen = Corpus.from_sentences(frame, token_column=1, label_column="tags")
    assert chosen.columns == Columns(1, "tags")


def test_a_report_says_which_columns_were_taken(tmp_path: Path) -> None:
    path = put(tmp_path, "c", "a b c\n")
    taken = {"token": 1, "label": 3, "of": 3}
    assert rankone.inspect(path).to_json()["columns"] == taken
    assert rankone.memorize(path).to_json()["settings"]["columns"] == taken
    assert not rankone.read_corpus(put(tmp_path, "u.conllu", CONLLU), labelled=False).columns.label


@pytest.mark.parametrize("column", [[1], {}, 1.5, True, 10**9, -(10**400), "", "a\0", "\ud800"])
@pytest.mark.parametrize("which", ["token_column", "label_column"])
def test_what_is_no_column_is_refused(tmp_path: Path, which: str, column: Any) -> None:
    path = put(tmp_path, "c.jsonl", '{"tokens": ["a"], "labels": ["X"], "\\ud800": ["X"]}')
    for read in (rankone.read_corpus, rankone.inspect, Corpus.from_sentences):
        with pytest.raises(SettingError, match=f"{which} cannot be ") as caught:
            read(path if read is not Corpus.from_sentences else [], **{which: column})
        str(caught.value).encode()
        assert caught.value.remedy


@pytest.mark.parametrize("name", ["1_0", "\uff11", "1e0", " 1", "--1", "0x1", "1" * 10])
def test_only_plain_digits_are_the_number_of_a_column(tmp_path: Path, name: str) -> None:
    with pytest.raises(CorpusError, match="no label column named"):
        rankone.read_corpus(put(tmp_path, "c", "a b\n"), label_column=name)
    assert rankone.read_corpus(put(tmp_path, "c", "a b\n"), label_column="+2").n_tokens == 1
    text = json.dumps({"tokens": ["a"], name: ["X"]})
    assert rankone.read_corpus(put(tmp_path, "c.jsonl", text), label_column=name).n_tokens == 1


# Lines and files.

FIRST = "a X\nb Y\n\nc X\n"
SECOND = "\n\na X\nb Z\n"


def test_sentences_keep_their_lines_and_files_per_token(tmp_path: Path) -> None:
    one, two = put(tmp_path, "one", FIRST), put(tmp_path, "two", SECOND)
    first, second = rankone.read_corpus(one), rankone.read_corpus(two)
    assert first.sentences == (
        Sentence(["a", "b"], ["X", "Y"], 1, [1, 2], str(one)),
        Sentence(["c"], ["X"], 4, [], str(one)),
    )
    both = Corpus.from_sentences([*first.sentences, *second.sentences, (["d"], ["X"])])
    assert both.lines.tolist() == [1, 2, 4, 3, 4, 4]
    assert both.files == (str(one), str(two), None)
    assert both.file_ids.tolist() == [0, 0, 1, 2]
    assert both.sentences[:3] == first.sentences + second.sentences
    assert [both.place(i) for i in range(6)] == [
        f"{one}, line 1",
        f"{one}, line 2",
        f"{one}, line 4",
        f"{two}, line 3",
        f"{two}, line 4",
        "<python>, sentence 4",
    ]
    assert both.place_of_sentence(1) == f"{one}, line 4"
    assert Corpus.from_sentences(first.sentences).source == str(one)
    assert Corpus.from_sentences(first.sentences, source="here").source == "here"
    assert Corpus.from_sentences(first.sentences, source="here").place(1) == f"{one}, line 2"


def test_lines_are_kept_in_whatever_order_they_are() -> None:
    sentence = Sentence(["a", "b", "c"], ["X", "Y", "Z"], 7, [7, 8, 7])
    assert Corpus.from_sentences([sentence]).sentences == (sentence,)


def test_many_files_have_a_short_name() -> None:
    sentences = [Sentence(["a"], ["X"], 1, file=name) for name in "pqrst"]
    assert Corpus.from_sentences(sentences).source == "p, q, r and 2 more"
    assert Corpus.from_sentences(sentences[:4]).source == "p, q, r and 1 more"
    assert Corpus.from_sentences(sentences[:3]).source == "p, q, r"


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"line": "7"}, "lines that are not whole numbers"),
        ({"line": 1 << 63}, "lines that are not whole numbers"),
        ({"line": -1}, "lines that are not whole numbers"),
        ({"lines": [1]}, "lines that are not whole numbers, one per token"),
        ({"lines": [1, 2.0]}, "lines that are not"),
        ({"lines": "12"}, "'lines' is '12', not a list"),
        ({"file": 3}, "a file that is not the name of one"),
        ({"tokens": ["a", "\ud800"]}, "half of a surrogate pair"),
        ({"labels": ["X", "a\0"]}, "a NUL character"),
        ({"labels": ["X", ""]}, "an empty word"),
        ({"labels": ["X"]}, "2 tokens but 1 label"),
        ({"tokens": "ab"}, "'tokens' is 'ab', not a list"),
    ],
)
def test_a_sentence_that_anyone_made_is_checked(changed: dict[str, Any], what: str) -> None:
    good = Sentence(["a", "b"], ["X", "Y"], 1)
    with pytest.raises(CorpusError, match=f"^<python>, sentence 2: {what}"):
        Corpus.from_sentences([good, dataclasses.replace(good, **changed)])


def test_lines_may_be_numbers_of_numpy() -> None:
    sentence = Sentence(("a", "b"), ("X", "Y"), np.int64(3), file="c\ud800")  # type: ignore[arg-type]
    corpus = Corpus.from_sentences([sentence, Sentence(["a"], ["X"], 0, [(1 << 63) - 1])])
    assert corpus.lines.tolist() == [3, 3, (1 << 63) - 1]
    assert corpus.files == ("c\\ud800", None)
    assert Corpus.from_sentences([sentence], source="\ud800").source == "\\ud800"


def test_a_corpus_is_shown_in_one_line() -> None:
    assert repr(rankone.read_corpus("builtin")) == (
        "Corpus('builtin': 2,000 sentences, 16,525 tokens, 94 words, 5 labels)"
    )
    one = Corpus.from_sentences([(["a"], ["X"])], source="a\nb")
    assert repr(one) == "Corpus('a\\nb': 1 sentence, 1 token, 1 word, 1 label)"


# Conflicts.


def test_conflicts_of_several_files_name_them(tmp_path: Path) -> None:
    files = [put(tmp_path, name, text) for name, text in (("one", FIRST), ("two", SECOND))]
    sentences = [s for path in files for s in rankone.read_corpus(path).sentences]
    (conflict,) = rankone.inspect([*sentences, (["a", "b"], ["X", "Y"])]).conflicts
    one, two = map(str, files)
    assert conflict == Conflict(
        "b",
        2,
        ["a", "b"],
        {"Y": [2, 4], "Z": [4]},
        files={"Y": [one, "<python>"], "Z": [two]},
    )
    said = f"Y on line 2 of {one}, line 4 of <python>; Z on line 4 of {two}"
    assert str(conflict) == f"'b' (token 2): {said}"


def test_a_conflict_shows_ten_lines_of_a_label_and_counts_the_rest() -> None:
    text = corpora.spelled(*["a x"] * 10, *["a y"] * 11)
    (conflict,) = rankone.inspect(text).conflicts
    numbers = [", ".join(map(str, range(i, i + 10))) for i in (1, 11)]
    assert str(conflict) == (
        f"'a' (token 1): x in sentences {numbers[0]}; y in sentences {numbers[1]} and 1 more"
    )
    assert conflict.to_json()["labels"] == {"x": [*range(1, 11)], "y": [*range(11, 22)]}
    assert conflict.to_json()["sentence"] == ["a"]
    many = [(["a"], [f"L{i}"]) for i in range(12)]
    assert str(rankone.inspect(many).conflicts[0]).endswith("L9 in sentence 10; and 2 more labels")
    assert "more" not in str(rankone.inspect(many[:10]).conflicts[0])


@pytest.mark.parametrize("at", [0, 1, AROUND, AROUND + 1, KEPT, KEPT + 1, 250, 251, 258, 259])
def test_a_conflict_carries_its_sentence_as_far_as_it_is_near(at: int) -> None:
    words = [f"w{i}" for i in range(260)]
    tags = [["O"] * 260, ["O"] * at + ["X"] + ["O"] * (259 - at)]
    (conflict,) = rankone.inspect([(words, row) for row in tags]).conflicts
    first = max(0, at - KEPT)
    assert (conflict.token, conflict.position, conflict.start) == (f"w{at}", at + 1, first + 1)
    assert conflict.sentence == words[first : at + KEPT + 1]
    marked = [f"[{word}]" if i == at else word for i, word in enumerate(words)]
    near = marked[max(0, at - AROUND) : at + AROUND + 1]
    before, after = ["..."] * (at > AROUND), ["..."] * (at + AROUND < 259)
    assert conflict.excerpt() == " ".join([*before, *near, *after])


# What can be inspected is what can be memorized.


def test_inspect_takes_whatever_memorize_takes(tmp_path: Path) -> None:
    sentences = corpora.spelled("ab xy", "ab xz", "c x")
    corpus = Corpus.from_sentences(sentences)
    mappings = [{"tokens": w, "labels": t} for w, t in sentences]
    path = put(tmp_path, "c.jsonl", "".join(json.dumps(m) + "\n" for m in mappings))
    frame = pandas.DataFrame(mappings)
    wanted = rankone.inspect(corpus)
    given = (str(path), path, sentences, corpus.sentences, iter(sentences), mappings, frame)
    for form in given:
        audit = rankone.inspect(form)
        assert (audit.ceilings, audit.labels) == (wanted.ceilings, wanted.labels)
        assert len(audit.conflicts) == 1
    chosen = rankone.inspect(path, label_column="tokens", token_column="labels")
    assert set(chosen.labels) == set("abc")
    with pytest.raises(SettingError, match="read has no columns to choose from"):
        rankone.inspect(corpus, label_column=1)
    with pytest.raises(CorpusError, match="no sentences in 3"):
        rankone.inspect(3)  # type: ignore[arg-type]


def test_a_corpus_made_in_python_goes_by_the_name_it_was_given() -> None:
    sentences = [(["a"], ["X"]), (["b"], ["Y"])]
    assert Corpus.from_sentences(sentences, source="mine").place(1) == "mine, sentence 2"
    assert Corpus.from_sentences(sentences).place(1) == "<python>, sentence 2"
