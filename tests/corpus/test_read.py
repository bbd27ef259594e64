"""Readers: every layout, every trap, every refusal."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
import rankone
from rankone import Corpus
from rankone.corpus.read import read_other
from rankone.errors import CorpusError, SettingError

CONLL = "a DT X\nrose NN Y\n\nis VB Z\n"
JSON_LINES = (
    '{"tokens": ["a", "rose"], "labels": ["X", "Y"]}\n\n\n{"tokens": ["is"], "labels": ["Z"]}\n'
)
SAME = [(("a", "rose"), ("X", "Y"), 1), (("is",), ("Z",), 4)]


def put(tmp_path: Path, text: str | bytes, name: str = "corpus.conll") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows(corpus: Corpus) -> list[tuple[tuple[str, ...], tuple[str, ...], int]]:
    return [(tuple(s.tokens), tuple(s.labels), s.line) for s in corpus.sentences]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.conll", CONLL),
        ("c.txt", CONLL.replace(" ", "\t")),
        ("c.conll", CONLL.replace(" ", "  ")),
        ("c.conll", CONLL.replace("\n", "\r\n")),
        ("c.conll", "\ufeff" + CONLL),
        ("c.conll", CONLL.rstrip("\n")),
        ("c.conll", CONLL.replace(" ", "\t").replace("\n\n", "\n\t\n")),
        ("c.conll", CONLL.replace(" ", "\t").replace("\n\n", "\n  \n")),
        ("c.tsv", CONLL.replace(" ", "\t")),
        ("c.jsonl", JSON_LINES),
        ("c.unknown", JSON_LINES),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_every_layout_gives_the_same_corpus(
    tmp_path: Path, name: str, text: str, zipped: bool
) -> None:
    data = gzip.compress(text.encode()) if zipped else text.encode()
    path = put(tmp_path, data, f"{name}.gz" if zipped else name)
    assert rows(rankone.read_corpus(path)) == SAME


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (CONLL.encode(), gzip.compress(CONLL.encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        corpus = rankone.read_corpus("-")
        assert rows(corpus) == SAME
        assert corpus.source == "<stdin>"
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(CorpusError, match=r"^<stdin>: closed"):
        rankone.read_corpus("-")


CONLLU = """# sent_id = 1
# text = don't go
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVBP\t_\t_\t_\t_\t_
2\tn't\tnot\tPART\tRB\t_\t_\t_\t_\t_
2.1\tnow\tnow\tADV\tRB\t_\t_\t_\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_

1\tyes\tyes\tINTJ\tUH\t_\t_\t_\t_\t_
"""


@pytest.mark.parametrize("name", ["c.conllu", "c.txt"])
def test_conllu_passes_over_ranges_and_empty_nodes(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, CONLLU, name)
    assert rows(rankone.read_corpus(path)) == [
        (("do", "n't", "go"), ("AUX", "PART", "VERB"), 4),
        (("yes",), ("INTJ",), 9),
    ]
    assert rankone.read_corpus(path).lines.tolist() == [4, 5, 7, 9]
    for column in ("xpos", 5, "5"):
        assert rankone.read_corpus(path, label_column=column).sentences[1].labels == ["UH"]


def test_columns_by_number_from_either_end(tmp_path: Path) -> None:
    path = put(tmp_path, CONLL)
    assert rankone.read_corpus(path, label_column=2).sentences[0].labels == ["DT", "NN"]
    assert rankone.read_corpus(path, label_column=-2).sentences[0].labels == ["DT", "NN"]
    assert rankone.read_corpus(path, token_column=2).sentences[0].tokens == ["DT", "NN"]


def test_tsv_with_a_header_and_blanks_in_tokens(tmp_path: Path) -> None:
    text = "token\tlemma\tlabel\nNew York\tNew York\tLOC\nis\tbe\tO\n"
    path = put(tmp_path, text, "c.tsv")
    assert rows(rankone.read_corpus(path)) == [(("New York", "is"), ("LOC", "O"), 2)]
    assert rankone.read_corpus(path, token_column="lemma").vocabulary == ("New York", "be")
    with pytest.raises(CorpusError, match=r"no column named 'ner'.*\n.*token, lemma, label"):
        rankone.read_corpus(path, label_column="ner")


def test_a_header_may_stand_below_blank_lines_and_name_what_it_likes(tmp_path: Path) -> None:
    path = put(tmp_path, "\n\nSurface\tLemma\tClass\nroses\trose\tNN\n\nare\tbe\tVB\n", "c.tsv")
    by_label = rankone.read_corpus(path, label_column="lemma")
    assert rows(by_label) == [(("roses",), ("rose",), 4), (("are",), ("be",), 6)]
    by_token = rankone.read_corpus(path, token_column="LEMMA")
    assert rows(by_token) == [(("rose",), ("NN",), 4), (("be",), ("VB",), 6)]
    with pytest.raises(CorpusError, match="line 3: no column named 'x'"):
        rankone.read_corpus(path, label_column="x")
    several = put(tmp_path, "id\tform\tword\tpos\tner\n1\ta\tb\tc\td\n", "c.tsv")
    assert rows(rankone.read_corpus(several)) == [(("a",), ("d",), 2)]


def test_json_lines_with_other_keys_and_whole_numbers(tmp_path: Path) -> None:
    path = put(tmp_path, '{"words": ["a"], "ner_tags": [3], "id": 7}\n', "c.jsonl")
    corpus = rankone.read_corpus(path, token_column="words", label_column="ner_tags")
    assert rows(corpus) == [(("a",), ("3",), 1)]


def test_docstart_rows_part_sentences_but_are_none(tmp_path: Path) -> None:
    for mark in ("-DOCSTART- O", "-DOCSTART- _ O"):
        path = put(tmp_path, f"-DOCSTART- _ O\n\na DT X\n{mark}\nb DT Y\n")
        assert rows(rankone.read_corpus(path)) == [(("a",), ("X",), 3), (("b",), ("Y",), 5)]


def test_docstart_in_json_lines_and_in_another_column(tmp_path: Path) -> None:
    path = put(tmp_path, '{"tokens": ["-DOCSTART-"], "labels": ["O"]}\n' + JSON_LINES, "c.jsonl")
    assert rankone.read_corpus(path).n_sentences == 2
    path = put(tmp_path, "1 -DOCSTART- O\n\n1 a X\n1 -DOCSTART- O\n1 b Y\n")
    corpus = rankone.read_corpus(path, token_column=2)
    assert rows(corpus) == [(("a",), ("X",), 3), (("b",), ("Y",), 5)]


def test_a_header_is_known_by_its_names_whatever_the_file_is_called(tmp_path: Path) -> None:
    path = put(tmp_path, "id\ttoken\tpos\tentity\n1\ta\tDT\tO\n", "c.txt")
    corpus = rankone.read_corpus(path)
    assert rows(corpus) == [(("a",), ("O",), 2)]
    assert rankone.read_corpus(path, label_column="pos").label_names == ("DT",)
    assert rankone.read_corpus(path, label_column="3").label_names == ("DT",)
    plain = put(tmp_path, "a\tX\nb\tY\n", "c.tsv")
    assert rankone.read_corpus(plain, label_column="2").n_tokens == 2


def test_a_lone_carriage_return_ends_a_line_where_nothing_else_does(tmp_path: Path) -> None:
    assert rows(rankone.read_corpus(put(tmp_path, CONLL.replace("\n", "\r")))) == SAME
    assert rankone.read_corpus(put(tmp_path, "a\rb X\nc Y\n")).vocabulary == ("a\rb", "c")


def test_tokens_that_look_like_nothing_are_no_blank_lines(tmp_path: Path) -> None:
    words = put(tmp_path, "\u00a0\n\u3000\n\n\u2028\n", "words.txt")
    corpus = rankone.read_corpus(words, labelled=False)
    assert [s.tokens for s in corpus.sentences] == [["\u00a0", "\u3000"], ["\u2028"]]


SLOVENLY = [
    ("c.conll", "a X\t\nb\tY\n \t\nNew\tZ \n"),  # TABs among blanks
    ("c.conll", "a\tX \n b\tY\n\nNew \t Z\n"),  # blanks around TABs
    ("c.conll", "-DOCSTART- O\n\na\tX\nb\tY\n\nNew\tZ\n"),  # the mark of a document is no row
    ("c.tsv", "a\tX\nb\tY \n\nNew\tZ\n"),
    ("c.tsv", "a X\nb Y\n\nNew Z\n"),  # which the name says it is not
    ("c.csv", "a X\nb Y\n\nNew Z\n"),
    ("c.conll", "\ufeffa X\nb Y\n\n\ufeffNew Z\n"),  # two files, each with a byte order mark
    ("c.conll", "\ufeff\ufeffa X\nb Y\n\nNew Z\n"),
    (
        "c.jsonl",
        '{"tokens": ["a", "b"], "labels": ["X", "Y"]}\n\ufeff{"tokens": ["New"], "labels": ["Z"]}',
    ),
]


@pytest.mark.parametrize(("name", "text"), SLOVENLY)
def test_what_nobody_sees_makes_no_other_word_or_label(
    tmp_path: Path, name: str, text: str
) -> None:
    corpus = rankone.read_corpus(put(tmp_path, text, name))
    assert (corpus.vocabulary, corpus.label_names) == (("a", "b", "New"), ("X", "Y", "Z"))
    assert corpus.lengths.tolist() == [2, 1]


def test_a_brace_as_first_token_is_no_json(tmp_path: Path) -> None:
    assert rankone.read_corpus(put(tmp_path, "{ X\n} Y\n", "c.txt")).vocabulary == ("{", "}")


def test_conllu_without_annotation_is_unlabelled(tmp_path: Path) -> None:
    bare = "1\tgo\t_\t_\t_\t_\t_\t_\t_\t_\n"
    assert not rankone.read_corpus(put(tmp_path, bare, "c.conllu"), labelled=None).labelled
    guessed = put(tmp_path, "#newdoc\n" + bare, "c.txt")
    assert rankone.read_corpus(guessed, labelled=None).format == "conllu"
    with pytest.raises(CorpusError, match='no labels: all are "_"'):
        rankone.read_corpus(guessed)


def test_how_a_corpus_was_read_is_known(tmp_path: Path) -> None:
    corpus = rankone.read_corpus(put(tmp_path, CONLL), label_column=2, lower=1)  # type: ignore[arg-type]
    assert corpus.reading == {
        "token_column": None,
        "label_column": 2,
        "columns": 3,
        "scheme": "keep",
        "lower": True,
        "task": "tags",
    }
    assert rankone.read_corpus(put(tmp_path, "a B-X\n")).reading["scheme"] == "auto"
    assert rankone.read_corpus(put(tmp_path, CONLL), scheme="auto").label_names == ("X", "Y", "Z")


def test_invisible_and_odd_tokens_survive(tmp_path: Path) -> None:
    odd = ["\ufe0f", "a\u200bb", "\u2028", "\u0085", "\u00a0", "\u3000x"]
    text = "".join(f"{token}\tO\n" for token in odd)
    assert rankone.read_corpus(put(tmp_path, text)).vocabulary == tuple(odd)


def test_iob1_becomes_iob2_and_the_scheme_is_known(tmp_path: Path) -> None:
    tags = ["I-PER", "I-PER", "B-PER", "I-ORG", "O", "I-ORG"]
    text = "".join(f"w{i} {tag}\n" for i, tag in enumerate(tags)) + "\nw I-ORG\n"
    path = put(tmp_path, text)
    stored, converted = rankone.read_corpus(path), rankone.read_corpus(path, scheme="iob2")
    assert (stored.scheme, converted.scheme) == ("IOB1", "IOB2")
    assert stored.sentences[0].labels == tags
    assert converted.sentences[0].labels == ["B-PER", "I-PER", "B-PER", "B-ORG", "O", "B-ORG"]
    assert converted.sentences[1].labels == ["B-ORG"]


def test_iob2_is_left_alone_and_other_labels_are_no_scheme(tmp_path: Path) -> None:
    text = "a B-X\nb I-X\nc O\n"
    assert rankone.read_corpus(put(tmp_path, text), scheme="iob2").scheme == "IOB2"
    assert rankone.read_corpus(put(tmp_path, CONLL)).scheme is None
    for text, line, tag in ((CONLL, 1, "X"), ("a O\n\nb B-X\nc -X\n", 4, "-X")):
        with pytest.raises(CorpusError, match=rf"line {line}: label '{tag}' is not an IOB tag"):
            rankone.read_corpus(put(tmp_path, text), scheme="iob2")
    assert rankone.read_corpus(put(tmp_path, "a O\n"), scheme="iob2").scheme is None


def test_lower_case(tmp_path: Path) -> None:
    assert rankone.read_corpus(put(tmp_path, "The X\nthe X\n"), lower=True).vocabulary == ("the",)


def test_labels_if_there_are_any(tmp_path: Path) -> None:
    words = put(tmp_path, "a\nb\n\nc\n", "words.txt")
    corpus = rankone.read_corpus(words, labelled=None)
    assert not corpus.labelled
    assert rows(corpus) == [(("a", "b"), (), 1), (("c",), (), 4)]
    assert (corpus.label_names, corpus.label_ids.tolist()) == ((), [-1, -1, -1])
    assert not rankone.read_corpus(put(tmp_path, CONLL), label_column=4, labelled=None).labelled
    assert not rankone.read_corpus(put(tmp_path, CONLL), label_column=-4, labelled=None).labelled
    chosen = {"token_column": 2, "label_column": -3}
    assert rankone.read_corpus(put(tmp_path, CONLL), **chosen, labelled=None).labelled
    assert rankone.read_corpus(put(tmp_path, CONLL), labelled=None).labelled
    lines = put(tmp_path, '{"tokens": ["a"]}\n', "words.jsonl")
    assert not rankone.read_corpus(lines, labelled=None).labelled


REFUSED = [
    ("c.conll", "a DT X\nrose Y\n", {}, r"line 2: 2 columns where the rows before have 3"),
    ("c.conll", "a DT X\nrose  Y\n", {}, r"line 2: 2 columns where the rows before have 3"),
    ("c.conll", "", {}, "no sentence"),
    ("c.conll", "\n\n \n", {}, "no sentence"),
    ("c.conll", "-DOCSTART- _ _ O\n", {}, "no sentence"),
    ("c.conll", b"a X\nb\xff Y\n", {}, r"line 2: byte 0xff is not valid UTF-8"),
    ("c.conll", "\ufeffa X\n".encode() + b"\xe9 Y\n", {}, r"line 2: byte 0xe9"),
    ("c.conll", "a X\nb\0 Y\n", {}, r"line 2: a NUL byte"),
    ("c.conll", "\n\na X\nb\0 Y\n", {}, r"line 4: a NUL byte"),
    ("c.conll", "\0a X\n", {}, r"line 1: a NUL byte"),
    ("c.conll", b"\n\na\xff X\n", {}, r"line 3: byte 0xff"),
    ("c.conll", CONLL.encode("utf-16"), {}, "line 1: a NUL byte"),
    ("c.conll", CONLL, {"label_column": 4}, r"line 1: no column 4 for the label: the row has 3"),
    ("c.conll", CONLL, {"token_column": -4}, r"line 1: no column -4 for the token"),
    ("c.conll", CONLL, {"label_column": 999_999_999}, r"no column 999999999 for the label"),
    ("c.conll", CONLL, {"label_column": "-999999999"}, r"no column -999999999 for the label"),
    ("c.conll", CONLL, {"label_column": "ner"}, r"no label column named 'ner'"),
    ("c.conll", "a\nb\n", {}, r"line 1: only one column"),
    ("c.conll", CONLL, {"token_column": -1}, "line 1: column 3 is taken as token and as label"),
    ("c.conllu", CONLLU, {"label_column": "form"}, "column 2 is taken as token and as label"),
    ("c.conll", CONLL, {"token_column": 0}, r"line 1: no column 0 for the token"),
    ("c.conllu", CONLLU, {"token_column": 0}, "no column 0 for the token"),
    ("c.conllu", CONLLU.replace("3\tgo", "x\tgo"), {}, "line 7: 'x' is not a CoNLL-U id"),
    ("c.conllu", CONLLU.replace("3\tgo", "-1\tgo"), {}, "line 7: '-1' is not a CoNLL-U id"),
    ("c.conllu", CONLLU.replace("3\tgo", "0\tgo"), {}, "line 7: the id '0' after 2"),
    (
        "c.conllu",
        CONLLU.replace("\n\n", "\n"),
        {},
        "line 8: the id '1' after 3\n.*with a blank line",
    ),
    ("c.conllu", CONLLU.replace("3\tgo", "9" * 5000 + "\tgo"), {}, r"line 7: the id '9+\.\.\.9+'"),
    ("c.conllu", CONLLU.replace("3\tgo", "3\t"), {}, "line 7: an empty token"),
    ("c.conll", "a\tX\nb Y\n", {}, "line 2: 1 column where .* have 2, separated by TABs"),
    ("c.conll", "a X\nb\n", {}, "line 2: 1 column where .* have 2, separated by blanks"),
    ("c.csv", "token,label\na,X\n", {}, "separated by commas"),
    ("c.conllu", CONLLU.replace("INTJ", ""), {}, "line 9: an empty label"),
    ("c.tsv", "token\tx\tlabel\na\tX\n", {}, "line 2: 2 columns where the rows before have 3"),
    ("c.tsv", "token\tner\tner\na\tX\tY\n", {"label_column": "ner"}, "more than one column named"),
    ("c.jsonl", '{"tokens": ["a"], "labels": [' + "9" * 5000 + "]}", {}, "line 1: .*integer"),
    ("c.jsonl", '{"tokens": ' + "[" * 100_000, {}, "line 1: cannot be read"),
    ("c.jsonl", '{"tokens": ["a"], "labels": [NaN]}', {}, "line 1: cannot be read"),
    ("c.tsv", "a\tX\n\tY\n", {}, r"line 2: an empty token"),
    ("c.tsv", "a\tX\nb\t\n", {}, r"line 2: an empty label"),
    ("c.conllu", "1\ta\tX\n", {}, r"line 1: 3 columns where CoNLL-U has 10"),
    ("c.conllu", CONLLU, {"label_column": "pos"}, "no column named 'pos'"),
    ("c.jsonl", '{"tokens": ["a"], "labels": []}', {}, r"line 1: 1 token but 0 labels"),
    ("c.jsonl", '\n{"tokens": ["a"]', {}, r"line 2: cannot be read \(Input data was truncated\)"),
    ("c.jsonl", "[1]", {}, r"line 1: expected a mapping, got a list"),
    ("c.jsonl", "null", {}, r"line 1: expected a mapping, got nothing \(null\)"),
    ("c.jsonl", "{}", {}, r"no key 'tokens'\n  remedy: give one object per line"),
    ("c.jsonl", '{"labels": ["X"]}', {}, r"line 1: no key 'tokens'"),
    ("c.jsonl", '{"tokens": ["a"]}', {}, r"line 1: no key 'labels'"),
    ("c.jsonl", '{"tokens": "a", "labels": ["X"]}', {}, r"'tokens' is 'a', not a list"),
    ("c.jsonl", '{"tokens": [null], "labels": ["X"]}', {}, r"None among 'tokens' is not a word"),
    ("c.jsonl", '{"tokens": [""], "labels": ["X"]}', {}, "an empty word among 'tokens'"),
    ("c.jsonl", '{"tokens": ["a"], "labels": [""]}', {}, "an empty word among 'labels'"),
    ("c.jsonl", '{"tokens": ["a\\u0000"], "labels": ["X"]}', {}, "NUL"),
    ("c.jsonl", '{"tokens": ["\\ud800"], "labels": ["X"]}', {}, "line 1: .*surrogate"),
    ("c.gz", gzip.compress(CONLL.encode(), mtime=0)[:20], {}, "damaged gzip data"),
]


@pytest.mark.parametrize(("name", "text", "how", "message"), REFUSED)
def test_refusals_say_where_what_and_the_remedy(
    tmp_path: Path, name: str, text: str | bytes, how: dict[str, object], message: str
) -> None:
    with pytest.raises(CorpusError, match=message) as caught:
        rankone.read_corpus(put(tmp_path, text, name), **how)
    assert caught.value.remedy


@pytest.mark.parametrize(("name", "value"), [("format", "xml"), ("scheme", "iobes")])
def test_unknown_settings_are_refused(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(SettingError, match=f"unknown {name} '{value}'") as caught:
        rankone.read_corpus(put(tmp_path, CONLL), **{name: value})  # type: ignore[arg-type]
    assert caught.value.remedy


def test_directories_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="is a directory"):
        rankone.read_corpus(tmp_path)
    with pytest.raises(CorpusError, match="no such file"):
        rankone.read_corpus(tmp_path / "nothing")
    with pytest.raises(CorpusError, match=r"^'': no such file"):
        rankone.read_corpus("")


@pytest.mark.parametrize("how", [{"format": "conllu"}, {"label_column": 2}, {"token_column": 1}])
def test_a_built_in_corpus_takes_no_options_for_files(how: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=r"^builtin: a built-in corpus has no layout"):
        rankone.read_corpus("builtin", **how)
    assert read_other("builtin", **how).n_sentences == 2000


def test_a_built_in_corpus_takes_the_other_options() -> None:
    assert rankone.read_corpus(Path("toy")).label_names == ("odd", "even")
    corpus = rankone.read_corpus("builtin", lower=True, scheme="iob2")
    assert all(word == word.lower() for word in corpus.vocabulary)
    assert [s.tokens for s in corpus.sentences] == [
        [word.lower() for word in s.tokens] for s in rankone.builtin_corpus().sentences
    ]
    assert corpus.reading == {"scheme": "auto", "lower": True}
    with pytest.raises(CorpusError, match=r"^toy: its labels are not IOB tags"):
        rankone.read_corpus("toy", scheme="iob2")
    with pytest.raises(SettingError, match="unknown scheme"):
        rankone.read_corpus("toy", scheme="iobes")  # type: ignore[arg-type]


def test_sentences_from_python() -> None:
    pair = (["a", "rose"], ["X", "Y"])
    mapping = {"tokens": pair[0], "labels": pair[1]}
    sentence = rankone.Sentence(("a", "rose"), ("X", "Y"), 7)
    corpus = Corpus.from_sentences([pair, mapping, sentence])
    assert [s.tokens for s in corpus.sentences] == [["a", "rose"]] * 3
    assert [s.line for s in corpus.sentences] == [1, 2, 7]
    surrogate = "\ud800"
    bads = [[(["a"], [])], [{"tokens": ["a"]}], [3], [], ["ab"], [("ab", "xy")], [([None], ["X"])]]
    for bad in (*bads, [([""], ["X"])], [(["a"], [""])], [([surrogate], ["X"])]):
        with pytest.raises(CorpusError):
            Corpus.from_sentences(bad)


word = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="\t\n\r\0\ufeff"), min_size=1
).filter(
    lambda w: (
        w.strip()
        and w == w.strip(" ")
        and w != "-DOCSTART-"
        and w.lower() not in {"token", "word", "form"}
    )
)


@given(st.lists(st.lists(st.tuples(word, word), min_size=1, max_size=5), min_size=1, max_size=5))
def test_what_is_written_as_tsv_or_json_is_read_back(
    sentences: list[list[tuple[str, str]]],
) -> None:
    from rankone.corpus.layouts import rows_of
    from rankone.corpus.rows import Choice

    pairs = [([w for w, _ in s], [t for _, t in s]) for s in sentences]
    tsv = "\n".join("".join(f"{w}\t{t}\n" for w, t in s) for s in sentences).split("\n")
    lines = [json.dumps({"tokens": words, "labels": tags}) for words, tags in pairs]
    expected = [(w, t) for s in sentences for w, t in s]
    for rows in (
        rows_of(read, kind, "made", Choice()) for kind, read in (("tsv", tsv), ("jsonl", lines))
    ):
        assert list(zip(rows.tokens, rows.labels, strict=True)) == expected
        assert len(rows.starts) == len(sentences)


@given(corpora.sentences())
def test_columns_and_sentences_say_the_same(sentences: corpora.Sentences) -> None:
    corpus = Corpus.from_sentences(sentences)
    assert [(s.tokens, s.labels) for s in corpus.sentences] == sentences
    assert [corpus.vocabulary[i] for i in corpus.token_ids] == [t for w, _ in sentences for t in w]
    assert corpus.positions.tolist() == [k for w, _ in sentences for k in range(len(w))]
    assert corpus.longest == max(len(w) for w, _ in sentences)
