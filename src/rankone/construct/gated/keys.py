"""Numbers that belong to a word or a position, the same in every model: a hash of its name.

So a word keeps its code and its keys when other words come and go, and what a group of units looks
like depends on its own contexts only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints

Hashes = NDArray[np.uint64]

BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # of FNV-1a
STEP = np.uint64(0x9E3779B97F4A7C15)  # of splitmix64
MIX1, MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
GRID = 1 << 15  # keys are multiples of 1 / GRID: their sums and differences are exact in float32


def mixed(numbers: Hashes) -> Hashes:
    """The finalizer of splitmix64: every bit of the result depends on every bit of the number."""
    z = numbers + STEP
    z = (z ^ (z >> np.uint64(30))) * MIX1
    z = (z ^ (z >> np.uint64(27))) * MIX2
    return z ^ (z >> np.uint64(31))


def hash_words(words: Sequence[str], salt: int) -> Hashes:
    """A number per word, FNV-1a over its bytes; the last one is for all other words."""
    data = [word.encode("utf-8", "surrogatepass") for word in words]
    data.append(b"\xff")  # which no word has
    lengths = np.array([len(word) for word in data])
    letters = np.frombuffer(b"".join(data), np.uint8)
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    found = np.full(len(data), BASIS ^ mixed(np.array([salt], np.uint64))[0])
    with np.errstate(over="ignore"):
        for i in range(int(lengths[0])):
            alive = int(np.searchsorted(-lengths, -i))
            found[:alive] ^= letters[starts[:alive] + i]
            found[:alive] *= PRIME
        back = np.empty_like(found)
        back[order] = mixed(found)
    return back


def hash_positions(count: int, salt: int) -> Hashes:
    """A number per position."""
    with np.errstate(over="ignore"):
        seed = mixed(np.array([salt], np.uint64) ^ MIX2)
        return mixed(np.arange(count, dtype=np.uint64) * STEP + seed)


def stream(hashes: Hashes, number: int) -> Hashes:
    """The numbers of this number that belong to the hashes, as if drawn anew."""
    with np.errstate(over="ignore"):
        return mixed(hashes + mixed(np.array([number], np.uint64))[0])


def below(hashes: Hashes, count: int) -> Ints:
    """Whole numbers from 0 to `count` - 1."""
    return np.asarray(hashes % np.uint64(count), dtype=np.int64)


def uniform(hashes: Hashes, size: float) -> Floats:
    """Numbers from -`size` to `size`, multiples of `size` / GRID."""
    return ((hashes >> np.uint64(48)).astype(np.float64) - GRID) * (size / GRID)
