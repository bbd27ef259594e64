"""Several corpora as one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora import Sentences, sentences
from rankone import Corpus, RankOneError, read_corpus
from rankone.corpus import join


@given(st.lists(sentences(), min_size=1, max_size=3))
def test_the_whole_is_what_would_have_been_read_at_once(made: list[Sentences]) -> None:
    parts = [Corpus.from_sentences(part) for part in made]
    whole, expected = join(parts), Corpus.from_sentences([s for part in made for s in part])
    assert whole.vocabulary == expected.vocabulary
    assert whole.label_names == expected.label_names
    for column in ("token_ids", "label_ids", "offsets", "file_ids"):
        assert (getattr(whole, column) == getattr(expected, column)).all()
    assert whole.sha256 == expected.sha256
    assert whole.lines.tolist() == [i for part in parts for i in part.lines.tolist()]


def test_every_row_keeps_its_file_and_its_line(tmp_path: Path) -> None:
    texts = {"b.conll": "\na X\nb Y\n", "a.conll": "c X\n\nd Y\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    whole = join([read_corpus(tmp_path / name) for name in texts])
    places = [whole.place(i).removeprefix(str(tmp_path))[1:] for i in range(4)]
    assert places == ["b.conll, line 2", "b.conll, line 3", "a.conll, line 1", "a.conll, line 3"]
    assert [sentence.line for sentence in whole.sentences] == [2, 1, 3]
    assert whole.source == ", ".join(str(tmp_path / name) for name in texts)


def test_sentences_made_in_python_are_known_by_their_source() -> None:
    one, two = (Corpus.from_sentences([(["a"], ["X"])], source=name) for name in ("one", "two"))
    assert join([one, two]).files == ("one", "two")
    assert join([one]) is one


IOB1, IOB2 = "a I-X\nb I-X\n\nc O\n", "a B-X\nb I-X\n\nc O\n"


@pytest.mark.parametrize(
    ("one", "two", "what", "remedy"),
    [
        ("a.conll:a X\n", "b.tsv:a\tX\n", "read as conll, but .*b.tsv as tsv", "--format"),
        ("a.conll:a X\n", "b.conll:a N X\n", "tokens in column 1, labels in column 2", "column"),
        (f"a.conll:{IOB1}", f"b.conll:{IOB2}", "in IOB1, but IOB2 in .*b.conll", "--scheme iob2"),
        ("a.conll:a N\nb V\n", "b.conll:a X\nb Y\n", "labels N, V, but X, Y in", "--label-column"),
        ("a.conll:a B-PER\n", "b.conll:a B-person\nb O\n", "B-PER, but B-person in", "rename"),
    ],
)
def test_corpora_that_do_not_belong_together(
    one: str, two: str, what: str, remedy: str, tmp_path: Path
) -> None:
    corpora = []
    for given_text in (one, two):
        name, _, text = given_text.partition(":")
        (tmp_path / name).write_text(text)
        corpora.append(read_corpus(tmp_path / name))
    with pytest.raises(RankOneError, match=what) as refused:
        join(corpora)
    assert refused.value.where == str(tmp_path / "a.conll")
    assert remedy in str(refused.value.remedy)


def test_a_split_may_lack_labels() -> None:
    many = Corpus.from_sentences([(["a", "b", "c"], ["B-X", "I-X", "B-Y"])], source="train")
    few = Corpus.from_sentences([(["d", "e"], ["O", "O"])], source="dev")
    assert join([many, few]).label_names == ("B-X", "I-X", "B-Y", "O")
    assert join([many, few]).scheme == "IOB2"
