"""Windows: the neighbours of a token, and which tokens have the same ones."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Ints
from rankone.corpus.corpus import Corpus

Keys = NDArray[np.uint64]
ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio, as hashes often take it
MIXER = np.uint64(0xFF51AFD7ED558CCD)
HALF = np.uint64(32)


class Neighbourhood:
    """The columns of a corpus, and windows over them, as keys of 64 bits.

    Tokens with equal windows have equal keys. That two of a million different windows have equal
    keys has a chance of one in ten million; a window is evidence, not proof, so that is enough.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.size = corpus.n_tokens
        self._moved: dict[tuple[int, int], tuple[Ints, Ints]] = {}

    @cached_property
    def behind(self) -> Ints:
        """How many tokens of the sentence follow each token."""
        lengths = self.corpus.lengths[self.corpus.sentence_of]
        return lengths - 1 - self.corpus.positions

    def at(self, column: Ints, shift: int) -> Ints:
        """The column as seen from `shift` places before; -1 and -2 where the sentence has ended."""
        if shift == 0:
            return column
        moved, known = self._moved.get((id(column), shift), (None, None))
        if moved is None or known is not column:
            moved = np.full(self.size, -1 if shift < 0 else -2)
            inside = self.corpus.positions >= -shift if shift < 0 else self.behind >= shift
            moved[inside] = column[np.flatnonzero(inside) + shift]
            self._moved[id(column), shift] = moved, column
        return moved

    def window(self, first: int, last: int, column: Ints | None = None) -> Keys:
        """The words from `first` to `last` places after the token, as one key."""
        column = self.corpus.token_ids if column is None else column
        return mixed(*(self.at(column, shift) for shift in range(first, last + 1)))


def mixed(*columns: Ints | Keys) -> Keys:
    """Several numbers of each token as one key."""
    key = np.zeros(len(columns[0]), dtype=np.uint64)
    room = np.empty_like(key)
    for column in columns:
        key ^= np.add(column.view(np.uint64), ODD, out=room)
        key *= MIXER
        key ^= np.right_shift(key, HALF, out=room)
    return key
