"""Words by number: a compiled hash table of runs of bytes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

PADDING = 8  # bytes that may be read behind the end of a text
WORDS, BYTES = 1 << 12, 1 << 16  # room for words and their bytes at first
LONG = np.uint64(0xFF << 56)  # in keys that are hashes; others have the length of the word there

compiled: Any = intrinsic
Array = np.ndarray[Any, np.dtype[Any]]


class Table:
    """Words by number, in the order of their first appearance: an open hash table.

    ``text[ends[i]:ends[i + 1]]`` are the bytes of word i. A slot holds the number of a word and its
    key: its bytes and their number, if it has no more than seven, and else a hash. Slots depend on
    a seed that is new every time: no file can be made whose words collide.
    """

    def __init__(self) -> None:
        self.slots = np.full(2 * WORDS, -1, dtype=np.int32)
        self.keys = np.zeros(2 * WORDS, dtype=np.uint64)
        self.ends = np.zeros(WORDS + 1, dtype=np.int64)
        self.text = np.zeros(BYTES, dtype=np.uint8)
        self.held = np.array([0, secrets.randbits(64) | 1], dtype=np.uint64)  # words; seed

    def __len__(self) -> int:
        return int(self.held[0])

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.slots, self.keys, self.ends, self.text, self.held

    def make_room(self, longest: int) -> None:
        """Room for one more word, of at most this many bytes."""
        size = int(self.ends[len(self)])
        if len(self) + 1 == len(self.ends):
            self.ends = np.concatenate([self.ends, np.zeros(len(self.ends) - 1, dtype=np.int64)])
            self.slots = np.full(2 * len(self.slots), -1, dtype=np.int32)
            self.keys = np.zeros(len(self.slots), dtype=np.uint64)
            words, self.held[0] = len(self), 0
            none = np.empty(words, dtype=np.int32)  # numbered as before
            _number(self.text, self.ends[:words], self.ends[1 : words + 1], none, 0, *self.arrays)
        if size + longest + PADDING > len(self.text):
            more = np.zeros(max(len(self.text), longest + PADDING), dtype=np.uint8)
            self.text = np.concatenate([self.text, more])

    def add(self, words: Sequence[str]) -> Array:
        """The numbers of these words, of which some may be new."""
        data = [word.encode() for word in words]
        ends = np.cumsum([0, *map(len, data)], dtype=np.int64)
        text = np.frombuffer(b"".join(data) + bytes(PADDING), dtype=np.uint8)
        return self.number(text, ends[:-1], ends[1:])

    def number(self, text: Array, starts: Array, stops: Array) -> Array:
        """The numbers of the words ``text[starts[i]:stops[i]]``, of which some may be new. The last
        eight bytes of the text are none of them."""
        numbers, at = np.empty(len(starts), dtype=np.int32), 0
        while (at := _number(text, starts, stops, numbers, at, *self.arrays)) < len(starts):
            self.make_room(int(stops[at] - starts[at]))
        return numbers

    def words(self) -> list[str]:
        """All words, in the order of their numbers."""
        ends = self.ends[: len(self) + 1].tolist()
        text = self.text[: ends[-1]].tobytes()
        bounds = pairwise(ends)
        if text.isascii():
            spelled = text.decode()
            return [spelled[a:b] for a, b in bounds]
        return [text[a:b].decode() for a, b in bounds]


@compiled
def load(_, text, at):  # type: ignore[no-untyped-def]
    """Eight bytes as one number, of which the first is the lowest part."""

    def build(context: Any, b: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        array = context.make_array(signature.args[0])(context, b, args[0])
        return b.load(b.bitcast(b.gep(array.data, [args[1]]), ir.IntType(64).as_pointer()), align=1)

    return types.uint64(text, at), build


# Arrays are not passed on to other compiled functions: counting their references, in every call,
# would take longer than everything else.
@njit(cache=True, nogil=True)
def _number(data, starts, stops, numbers, at, slots, keys, ends, text, held):  # type: ignore[no-untyped-def]
    """Number the words from `at` on. Returns which of them there is no room for, or how many there
    are."""
    seed, one, byte, half = held[1], np.uint64(1), np.uint64(8), np.uint64(32)
    mask = np.uint64(len(slots) - 1)
    for word in range(at, len(starts)):
        a, b = np.int64(starts[word]), np.int64(stops[word])
        size, i = b - a, a
        if size < 8:
            key = load(data, a) & ((one << byte * np.uint64(size)) - one)
            key |= np.uint64(size) << np.uint64(56)
        else:
            key = np.uint64(size)
            while i + 8 <= b:
                key = (key ^ load(data, i)) * seed
                key ^= key >> half
                i += 8
            key ^= load(data, i) & ((one << byte * np.uint64(b - i)) - one)
            key *= seed
            key = (key ^ (key >> half)) | LONG
        slot = key * seed
        slot = (slot ^ (slot >> half)) & mask
        number = np.int64(-1)
        while slots[slot] >= 0:
            if keys[slot] == key:
                number = np.int64(slots[slot])
                if size < 8:
                    break
                start, i = ends[number], np.int64(0)
                if ends[number + 1] - start == size:
                    while i + 8 <= size and load(data, a + i) == load(text, start + i):
                        i += 8
                    while i < size and data[a + i] == text[start + i]:
                        i += 1
                if i == size:
                    break
                number = np.int64(-1)
            slot = (slot + one) & mask
        if number < 0:
            number = np.int64(held[0])
            start = ends[number]
            if number + 1 >= len(ends) or start + size + PADDING > len(text):
                return word
            for j in range(size):
                text[start + j] = data[a + j]
            ends[number + 1] = start + size
            slots[slot], keys[slot] = number, key
            held[0] += one
        numbers[word] = number
    return len(starts)
