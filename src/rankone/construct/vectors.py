"""Given token vectors: how to read them, and the conditions that the theorem puts on them."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from rankone.arrays import Floats
from rankone.corpus.source import printable
from rankone.errors import VectorError
from rankone.plural import plural
from rankone.theory.closest import as_table

FORM = "give a word and its numbers, separated by single blanks"
LONGEST = 1 << 22  # characters of a line: a word and some hundred thousand numbers
SMALLEST, LARGEST = 1e-100, 1e100  # squares and products of positions must not leave float64


def read_vectors(path: str | os.PathLike[str], words: Sequence[str]) -> Floats:
    """Vectors for `words` from a text file in GloVe format: a word and its numbers per line.

    A first line with two whole numbers, as word2vec writes it, is skipped; so are other words,
    repeated words, and blank lines.
    """
    rows: dict[str, Floats] = {}
    wanted, dim, name = set(words), 0, printable(os.fspath(path))
    for number, line in enumerate(_lines(path), start=1):
        cells = line.rstrip("\r\n \t").replace("\t", " ").split(" ")
        header = number == 1 and len(cells) == 2 and all(cell.isdigit() for cell in cells)
        if header or cells == [""]:
            continue
        dim = dim or len(cells) - 1
        if not len(cells) > dim >= 1:
            first = f" where the first row has {dim}" if dim else ""
            what = f"{plural(len(cells) - 1, 'number')}{first}"
            raise VectorError(what, where=f"{name}, line {number}", remedy=FORM)
        # GloVe has a few words with blanks in them, so count the numbers from the end.
        word = " ".join(cells[: len(cells) - dim])
        if word in wanted and word not in rows:
            rows[word] = _numbers(cells[-dim:], word, f"{name}, line {number}")
    missing = [word for word in words if word not in rows]
    if missing:
        raise VectorError(
            f"no vector for {len(missing)} of {plural(len(words), 'token')}, among them "
            f"{', '.join(map(repr, missing[:5]))}",
            where=name,
            remedy="add them to the file, or leave --vectors out and let the table be free "
            "(--lower reads the corpus in lower case, as most GloVe files are)",
        )
    return np.stack([rows[word] for word in words])


def _numbers(cells: list[str], word: str, where: str) -> Floats:
    text = "".join(cells)
    try:
        # Python would also read 1_000 and the digits of other scripts.
        if not text.isascii() or "_" in text:
            raise ValueError
        found = np.array(cells, dtype=np.float64)
    except ValueError:
        what = f"the vector of {word!r} holds something that is not a number"
        raise VectorError(what, where=where, remedy=FORM) from None
    if not np.isfinite(found).all():
        raise VectorError(f"the vector of {word!r} is not finite", where=where, remedy=FORM)
    return found


def check_vectors(given: ArrayLike, words: Sequence[str]) -> Floats:
    """Definition 1 for given vectors: finite, not 0 (r_min > 0), no two alike (epsilon > 0)."""
    vectors = np.ascontiguousarray(as_table(given))
    if len(vectors) != len(words):
        raise VectorError(
            f"an array of shape {vectors.shape} for {plural(len(words), 'token')}",
            remedy="give one row per token, in the order of corpus.vocabulary",
        )
    for bad, what in (
        (~np.isfinite(vectors).all(1), "is not finite"),
        (~vectors.any(1), "is zero, and the theorem needs r_min > 0"),
    ):
        if bad.any():
            row = int(bad.argmax())
            raise VectorError(
                f"the vector of {words[row]!r} {what} ({int(bad.sum())} such)",
                where=f"row {row + 1}",
                remedy="give it a vector of its own, with finite numbers that are not all 0",
            )
    size = float(np.abs(vectors).max())
    if not SMALLEST < size < LARGEST:
        raise VectorError(
            f"vectors as large as {size:.0e} leave no room for rounding",
            remedy="scale all of them by one number, so that their entries are of order 1",
        )
    _, first, back = np.unique(vectors, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[back.reshape(-1)] != np.arange(len(vectors)))
    if len(again):
        row, other = int(again[0]), int(first[back.reshape(-1)[again[0]]])
        raise VectorError(
            f"{words[other]!r} and {words[row]!r} have the same vector ({len(again)} such), "
            "so no function of the vectors can tell them apart",
            where=f"rows {other + 1} and {row + 1}",
            remedy="give them different vectors, or make them one token",
        )
    return vectors


def _lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Lines, one at a time: such files are large, and most of their words are not needed."""
    opened = gzip.open if os.fspath(path).endswith(".gz") else open
    try:
        with opened(Path(path), "rt", encoding="utf-8-sig", newline="\n") as file:
            while line := file.readline(LONGEST + 1):
                if len(line) > LONGEST:
                    raise ValueError(f"a line of more than {LONGEST:,} characters")
                yield line
    except (OSError, ValueError, EOFError, zlib.error) as error:  # a name with a NUL: ValueError
        raise VectorError(
            f"cannot be read ({getattr(error, 'strerror', None) or error})",
            where=printable(os.fspath(path)),
            remedy="give a text file of vectors in UTF-8",
        ) from None
