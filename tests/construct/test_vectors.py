"""Vectors that are given: files in every state, and arrays that are none."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
import rankone
from rankone import read_vectors
from rankone.construct import vectors as module
from rankone.errors import RankOneError, VectorError

WORDS = ("a", "b")
TWO = corpora.spelled("ab xy", "ba yy")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "glove.txt"


def test_vectors_from_text(file: Path) -> None:
    file.write_text("\ufeff3 2\nb 1 2\n\na b 3 4\nc\t5\t6e-1\r\nb 9 9\n", encoding="utf-8")
    found = read_vectors(file, ("c", "b", "a b"))
    assert found.tolist() == [[5.0, 0.6], [1.0, 2.0], [3.0, 4.0]]
    assert read_vectors(str(file), ("b",)).tolist() == [[1.0, 2.0]]


def test_a_first_line_of_two_numbers_is_no_word_and_a_later_one_is(file: Path) -> None:
    file.write_text("1 1\na 2\n1 3\n")
    assert read_vectors(file, ("1", "a")).tolist() == [[3.0], [2.0]]
    file.write_text("1 x\n")
    with pytest.raises(VectorError, match="line 1: the vector of '1' holds something"):
        read_vectors(file, ("1",))
    file.write_text("1 1 1\na 2 2\n")
    assert read_vectors(file, ("1", "a")).tolist() == [[1.0, 1.0], [2.0, 2.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\n", r"glove.txt: no vector for 1 of 2 tokens, among them 'b'"),
        ("", "no vector for 2 of 2 tokens, among them 'a', 'b'"),
        ("a 1 2\nb 1 x\n", r"glove.txt, line 2: the vector of 'b' holds something"),
        ("a 1 2\nb 1 1_0\n", "line 2: the vector of 'b' holds something"),
        ("a 1 2\nb 1 \u0661\n", "line 2: the vector of 'b' holds something"),
        ("a 1 2\n\nb 1\n", "line 3: 1 number where the first row has 2"),
        ("a 1\nb\n", "line 2: 0 numbers where the first row has 1"),
        ("a\n", "line 1: 0 numbers\n"),
        ("a 1 2\nb nan 2\n", "line 2: the vector of 'b' is not finite"),
        ("a 1 2\nb 1e999 2\n", "line 2: the vector of 'b' is not finite"),
        ("a 1 2\nb 0 0\n", r"glove.txt: the vector of 'b' is zero"),
        ("a 1 2\nb 1 2\n", r"glove.txt: 'a' and 'b' have the same vector"),
        ("a 1 2\nb 1e300 2\n", r"glove.txt: vectors as large as 1e\+300"),
    ],
)
def test_files_that_break_the_conditions_are_refused(file: Path, text: str, message: str) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(VectorError, match=message) as caught:
        rankone.memorize(TWO, vectors=file)
    assert caught.value.remedy


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no.gz").write_text("a 1\nb 2\n")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a 1\nb 2\n" * 99)[:-9])
    (tmp_path / "latin").write_bytes(b"a 1\nb\xff 2\n")
    (tmp_path / "surrogate").write_bytes(b"a 1\nb\xed\xa0\x80 2\n")
    (tmp_path / "long").write_text("a 1\nb " + "9" * 99)
    monkeypatch.setattr(module, "LONGEST", 50)
    for name in ("missing", ".", "no.gz", "cut.gz", "latin", "surrogate", "long", "nul\0"):
        with pytest.raises(VectorError, match=r"cannot be read \(.+\)\n  remedy") as caught:
            rankone.memorize(TWO, vectors=tmp_path / name)
        assert str(tmp_path) in (caught.value.where or "")
    with pytest.raises(VectorError, match=r"caf\\udce9: cannot be read"):
        read_vectors("caf\udce9", WORDS)


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt.gz"
    path.write_bytes(gzip.compress(b"a 1\n") + gzip.compress(b"b 2\n"))
    assert read_vectors(path, WORDS).tolist() == [[1.0], [2.0]]


PIECES = (
    *(b"a", b"b", b" ", b"\t", b"\n", b"\r\n", b"1", b"nan", b"-inf", b"1e400", b"0x1p3", b"1_0"),
    *(b"\xd9\xa1", b"\xed\xa0\x80", b"\0", b"2 2\n", b"a 1 2\n", b"b 3 4\n", b"\xe2\x80\xa8"),
    *(b"\xef\xbb\xbf", b"9" * 400, b"\x1f\x8b"),
)
piece = st.one_of(st.binary(max_size=6), st.sampled_from(PIECES))


@given(st.lists(piece, max_size=12).map(b"".join), st.sampled_from(["t", "t.gz"]), st.booleans())
def test_any_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str, whole: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    data = gzip.compress(data) if name.endswith("gz") else data
    path.write_bytes(data if whole else data[:-3])
    with contextlib.suppress(VectorError):
        found = read_vectors(path, WORDS)
        assert len(found) == 2
        assert np.isfinite(found).all()


ODD: list[Any] = [
    5,
    [],
    [[]],
    [[], []],
    [1.0, 2.0],
    [["a"], ["b"]],
    [["1"], ["2"]],
    [[1.0], [1.0, 2.0]],
    [[None], [1.0]],
    [[1j], [2.0]],
    [[[1.0]], [[2.0]]],
    [[10**400], [1]],
    {"a": [1.0], "b": [2.0]},
    np.array([[Ellipsis], [1]], dtype=object),
    np.array([["2020-01-01"], ["2021-01-01"]], dtype="M8[D]"),
    np.zeros((2, 0)),
    np.full((2, 1), np.nan),
]


@pytest.mark.parametrize("vectors", ODD, ids=lambda v: repr(v)[:30])
def test_what_is_no_table_is_refused(vectors: Any) -> None:
    with pytest.raises(RankOneError) as caught:
        rankone.memorize(TWO, vectors=vectors)
    assert caught.value.remedy


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.float16, list])
def test_other_numbers_are_taken_as_they_are(kind: Any) -> None:
    rows = np.array([[1, 2], [3, -1]])
    result = rankone.memorize(TWO, vectors=rows.tolist() if kind is list else rows.astype(kind))
    assert result.model.network.table[:2].tolist() == [[1.0, 2.0], [3.0, -1.0]]
