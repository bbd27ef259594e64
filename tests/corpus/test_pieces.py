"""Pieces of files: laid end to end they are the corpus, wherever it was cut."""

from __future__ import annotations

import gzip
import io
import pickle
import sys
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankone
from hostile_files import columns, conllu
from rankone import Corpus
from rankone.corpus import borders, source
from rankone.corpus.piece_rows import PieceRows, as_iob2
from rankone.corpus.pieces import Piece, plan, read_piece
from rankone.corpus.rows import Words
from rankone.errors import CorpusError, SizeError

CONLL = "-DOCSTART- O\n\na I-X\nb I-X\n \t\nc B-X\r\n\r\nrose I-Y\né O\n\n\n\nd O\n"
JSON = '{"tokens": ["a", "b"], "labels": [1, 2]}\n\n{"tokens": ["é"], "labels": [3]}\n'


def put(tmp_path: Path, text: str | bytes, name: str = "c.conll") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def all_rows(found: list[tuple[Piece, PieceRows]]) -> Any:
    """Words and labels of all sentences, with the lines of the files."""
    sentences = []
    for _, group in groupby(found, key=lambda pair: pair[0].file):
        before = 0
        for _, rows in group:
            words = [rows.vocabulary[i] for i in rows.token_ids]
            labels = [rows.label_names[i] for i in rows.label_ids]
            for a, b in pairwise([*rows.starts, len(words)]):
                lines = (rows.lines[a:b] + before).tolist()
                sentences.append((words[a:b], labels[a:b], lines))
            before += rows.n_lines
    return sentences


def expected(corpus: Corpus) -> Any:
    bounds = corpus.offsets.tolist()
    lines = corpus.lines.tolist()
    each = zip(corpus.sentences, pairwise(bounds), strict=True)
    return [(s.tokens, s.labels, lines[a:b]) for s, (a, b) in each]


def read_all(source: Any, size: int, **how: Any) -> list[tuple[Piece, PieceRows]]:
    """Every piece goes through a pickle, as if another process read it; the last one first."""
    found = [pickle.loads(pickle.dumps(piece)) for piece in plan(source, size=size, **how)]
    read = [read_piece(piece) for piece in reversed(found)]
    return list(zip(found, reversed(read), strict=True))


@pytest.mark.parametrize("size", [1, 9, 30, 1000])
@pytest.mark.parametrize(
    ("name", "text", "how"),
    [
        ("c.conll", CONLL, {}),
        ("c.conll", "\ufeff" + CONLL, {"lower": True}),
        ("c.conll", CONLL.replace("\n", "\r"), {}),
        ("c.conll", CONLL.rstrip("\n"), {"labelled": False}),
        ("c.conll.gz", gzip.compress(CONLL.encode(), mtime=0), {}),
        ("c.tsv", "form\tx\tner\n\n" + "A b\tx\tO\n\n" * 5, {"label_column": "x"}),
        ("c.conllu", "# a\n1\ta" + "\tX" * 8 + "\n\n# b\n1\tb" + "\tY" * 8 + "\n", {}),
        ("c.jsonl", JSON, {}),
        ("c.txt", "a b\n\nc d e\n", {"format": "text", "labelled": None}),
    ],
)
def test_pieces_laid_end_to_end(
    tmp_path: Path, size: int, name: str, text: str | bytes, how: dict[str, Any]
) -> None:
    path = put(tmp_path, text, name)
    how = {"labelled": None, **how}
    corpus = rankone.read_corpus(path, **how)
    found = read_all(path, size, **how)
    assert all_rows(found) == expected(corpus)
    if size == 1 and "\r" not in str(text).replace("\r\n", ""):
        assert len(found) >= corpus.n_sentences - 1
    assert (len(found) == 1) or size < 1000


@given(text=columns() | conllu(), size=st.integers(1, 60), packed=st.booleans())
def test_wherever_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, text: str, size: int, packed: bool
) -> None:
    data = gzip.compress(text.encode()) if packed else text.encode()
    path = put(tmp_path_factory.getbasetemp(), data, "pieces.conll" + ".gz" * packed)

    def outcome(read: Any) -> Any:
        try:
            return read()
        except CorpusError as error:
            return error.where, error.what, error.remedy

    def in_order() -> Any:
        found = [(piece, read_piece(piece)) for piece in plan(path, size=size, labelled=None)]
        sentences = all_rows(found)
        if {label for _, labels, _ in sentences for label in labels} == {"_"}:  # as the whole says
            return [(words, [], lines) for words, _, lines in sentences]
        return sentences

    whole = outcome(lambda: expected(rankone.read_corpus(path, labelled=None)))
    assert outcome(in_order) == whole


def test_pieces_have_about_the_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"word{i} X\n" * 3 + "\n" for i in range(3000))
    monkeypatch.setattr(borders, "WINDOW", 16)
    for data in (text.encode(), gzip.compress(text.encode())):
        found = list(plan(put(tmp_path, data), size=10_000))
        sizes = [len(p.data) if p.data is not None else p.last - p.first for p in found]
        assert sum(sizes) == len(text)
        assert all(10_000 <= size < 10_100 for size in sizes[:-1])
        sentences = all_rows([(piece, read_piece(piece)) for piece in found])
        assert [words for words, _, _ in sentences] == [[f"word{i}"] * 3 for i in range(3000)]


def test_standard_input_comes_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CONLL.encode())))
    found = list(plan("-", size=10))
    assert all(piece.data for piece in found)
    assert len(found) > 2
    assert len(all_rows([(piece, read_piece(piece)) for piece in found])) == 4


def test_what_is_wrong_has_the_line_of_the_file(tmp_path: Path) -> None:
    text = ("a X\nb Y\n\n" * 50_000) + "broken\n"
    for data in (text.encode(), gzip.compress(text.encode())):
        *sound, last = plan(put(tmp_path, data), size=100_000)
        assert sum(read_piece(piece).n_lines for piece in sound) + read_lines(last) == 150_000
        with pytest.raises(CorpusError, match="line 150001: 1 column where the rows before have 2"):
            read_piece(last)


def read_lines(piece: Piece) -> int:
    """The lines of a piece but for the last, which is broken."""
    if piece.data is not None:
        return piece.data.count(b"\n") - 1
    return Path(piece.source).read_bytes()[piece.first : piece.last].count(b"\n") - 1


def test_more_than_memory_allows_can_be_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "most_bytes", lambda _: 100)
    path = put(tmp_path, CONLL * 50)
    with pytest.raises(SizeError, match="more than"):
        rankone.read_corpus(path)
    assert len(all_rows(read_all(path, 80))) == 200
    assert len(all_rows(read_all(put(tmp_path, gzip.compress(CONLL.encode() * 50)), 80))) == 200


def test_several_files_are_checked_against_each_other(tmp_path: Path) -> None:
    one, two = put(tmp_path, "a X\n", "one.conll"), put(tmp_path, "b X\n\nc Y\n", "two.conll")
    found = read_all([one, two], 1)
    assert [(piece.file, piece.name) for piece, _ in found] == [
        (0, str(one)),
        (1, str(two)),
        (1, str(two)),
    ]
    for text, name, what in (
        ("b\tX\n", "b.tsv", "read as conll, but .*b.tsv as tsv"),
        ("b N X\n", "b.conll", "labels in column 2 of 2, but .*labels in column 3 of 3"),
        ("\n\n", "empty.conll", "no sentence in it"),
        ("b X\0", "nul.conll", "a NUL byte"),
    ):
        with pytest.raises(CorpusError, match=what):
            plan([one, put(tmp_path, text, name)])


def test_iob1_becomes_iob2_in_every_piece(tmp_path: Path) -> None:
    path = put(tmp_path, CONLL)
    whole = rankone.read_corpus(path, scheme="iob2")
    found = [(piece, as_iob2(rows)) for piece, rows in read_all(path, 1)]
    assert all_rows(found) == expected(whole)


@given(st.lists(st.integers(-1, 4), max_size=30))
def test_words_are_renumbered_by_their_first_appearance(ids: list[int]) -> None:
    names = ["a", "b", "a", "c", "d"]
    words = Words.renamed(names, np.array(ids, dtype=np.int64))
    wanted = [names[i] if i >= 0 else None for i in ids]
    assert [list(words.index)[i] if i >= 0 else None for i in words.ids] == wanted
    assert list(words.index) == list(dict.fromkeys(word for word in wanted if word is not None))
