"""Several corpora as one: what fits together, and what is kept of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

import corpora
import rankone
from rankone import Corpus
from rankone.corpus import join
from rankone.errors import CorpusError


def read(tmp_path: Path, *texts: str, **how: object) -> list[Corpus]:
    paths = [tmp_path / f"{i}.conll" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return [rankone.read_corpus(path, **how) for path in paths]


@given(corpora.sentences(), corpora.sentences())
def test_sentences_are_those_of_both(one: corpora.Sentences, two: corpora.Sentences) -> None:
    parts = [(one, "one"), (two, "two")]
    # Labels in common, so that they belong together.
    parts = [([(["all"] * 4, ["L0", "L1", "L2", "L3"]), *found], name) for found, name in parts]
    whole = join([Corpus.from_sentences(found, source=name) for found, name in parts])
    assert [(s.tokens, s.labels) for s in whole.sentences] == parts[0][0] + parts[1][0]
    assert [(s.file, s.line) for s in whole.sentences] == [
        (name, i) for found, name in parts for i in range(1, len(found) + 1)
    ]
    same = Corpus.from_sentences(parts[0][0] + parts[1][0])
    assert whole.sha256 == same.sha256


def test_rows_keep_their_file_and_line(tmp_path: Path) -> None:
    whole = join(read(tmp_path, "a X\nb Y\n", "\n\nb Y\n"))
    assert [(Path(str(s.file)).name, s.line) for s in whole.sentences] == [
        ("0.conll", 1),
        ("1.conll", 3),
    ]


@pytest.mark.parametrize(
    ("texts", "how"),
    [
        (("a P X\n", "b P P X\n"), {}),  # the last column of both
        (("a X P\n", "b X P P\n"), {"label_column": 2}),
        (("P a X\n", "P P b X\n"), {"token_column": -2}),
    ],
)
def test_the_same_columns_of_files_of_different_width(
    tmp_path: Path, texts: tuple[str, str], how: dict[str, int]
) -> None:
    whole = join(read(tmp_path, *texts, **how))
    assert (whole.vocabulary, whole.label_names) == (("a", "b"), ("X",))


def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="labels X, but Y in"):
        join(read(tmp_path, "a X\n", "a Y\n"))
    with pytest.raises(CorpusError, match=r"IOB1, but IOB2 in .*1\.conll"):
        join(read(tmp_path, "a I-X\nb O\n", "a B-X\nb I-X\n\na B-X\n"))
    one, two = (tmp_path / name for name in ("a.conll", "a.jsonl"))
    one.write_text("a X\n")
    two.write_text('{"tokens": ["a"], "labels": ["X"]}\n')
    with pytest.raises(CorpusError, match=r"read as conll, but .*a\.jsonl as jsonl"):
        join([rankone.read_corpus(path) for path in (one, two)])
    one.write_text("a b X Y\n")
    corpora = [rankone.read_corpus(one, token_column=k, label_column=k + 1) for k in (1, 2)]
    with pytest.raises(CorpusError, match="tokens in column 1, labels in column 2 of 4, but"):
        join(corpora)
