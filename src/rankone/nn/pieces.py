"""Sentences that are longer than the table of positions: labelled in pieces as long as it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def in_pieces(lengths: Ints, longest: int) -> int:
    """How many sentences have to be cut (`longest` 0: none)."""
    return int((lengths > longest).sum()) if longest else 0


def cut(offsets: Ints, longest: int) -> Ints:
    """Where the pieces begin and end: of a sentence, as many of `longest` tokens as it has, and
    one with the rest.

    >>> cut(np.array([0, 2, 9]), 3).tolist()
    [0, 2, 5, 8, 9]
    """
    lengths = np.diff(offsets)
    if not in_pieces(lengths, longest):
        return offsets
    pieces = np.maximum(1, -(-lengths // longest))
    last = np.cumsum(pieces)
    number = np.arange(last[-1]) - np.repeat(last - pieces, pieces)  # of a piece in its sentence
    return np.append(np.repeat(offsets[:-1], pieces) + number * longest, offsets[-1])
