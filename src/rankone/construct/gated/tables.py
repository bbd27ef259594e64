"""The vectors of words and positions: codes, keys and values from hashes, and the usual label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.construct.gated.codes import LARGEST, codes, coordinates_for
from rankone.construct.gated.keys import (
    Hashes,
    below,
    hash_positions,
    hash_words,
    stream,
    uniform,
)
from rankone.construct.problem import Problem
from rankone.errors import CorpusError

CODE = 48  # coordinates of the code of a word: 3e13 codes
QUERY = 2.0  # scores lie in [-3, 3]
KEY, STEP = 1.0, 0.5  # keys and values of words lie in [-1, 1], those of positions in [-1/2, 1/2]


@dataclass(frozen=True)
class Layout:
    """Where in a vector things are: the code of the word, that of the position, a constant, keys
    and values, the averages, the label."""

    word: int
    position: int
    heads: int
    label: int

    @property
    def one(self) -> int:
        return self.word + self.position

    def key(self, head: int) -> int:
        return self.one + 1 + 2 * head

    def value(self, head: int) -> int:
        return self.key(head) + 1

    @property
    def averages(self) -> Ints:
        return self.one + 1 + 2 * self.heads + np.arange(self.heads)

    @property
    def labels(self) -> Ints:
        return self.one + 1 + 3 * self.heads + np.arange(self.label)

    @property
    def dim(self) -> int:
        return self.one + 1 + 3 * self.heads + self.label


@dataclass(frozen=True)
class Tables:
    """What vectors of words (the last one for all others) and of positions are made of.

    ``own`` are the first coordinates of words, their codes or given vectors; ``numbers`` are those
    of the codes, and ``salt`` goes into every hash. ``keys`` has key and value of every word for
    one head after the other: these are coordinates, too, unless heads see them along the rows
    ``seen`` of given vectors.
    """

    layout: Layout
    own: NDArray[Any]
    keys: Floats
    positions: Floats | None
    numbers: Ints
    salt: int
    seen: Floats | None = None

    @property
    def seed(self) -> int:
        """The salt without the length of codes, which `make_tables` adds to it."""
        return self.salt - (self.layout.word << 32)

    @property
    def reach(self) -> float:
        """No average is larger."""
        if self.seen is None:
            return KEY + STEP
        most = float(np.abs(self.keys[:, 1::2]).max())
        return most * (1 + 2.0**-10) + STEP * (self.positions is not None)

    def table(self, labels: Floats) -> Floats:
        """The vectors of all words, whose usual labels have these rows."""
        layout = self.layout
        table = np.zeros((len(self.own), layout.dim))
        table[:, : layout.word] = self.own
        table[:, layout.one] = 1.0
        table[:, layout.labels] = labels
        if self.seen is None:
            table[:, layout.key(0) : layout.key(layout.heads)] = self.keys
        return table

    def averages(self, ids: Ints, places: Ints, offsets: Ints, causal: bool) -> Floats:
        """What the heads add to every token of these sentences, (tokens, heads)."""
        from rankone.kernels.compiled.averages import average  # compiled code: loaded when used

        out = np.empty((self.layout.heads, len(ids)))
        for head in range(self.layout.heads):
            keys, values = (self._column(2 * head + i, ids, places) for i in range(2))
            average(QUERY, keys, values, offsets, causal, out[head])
        return out.T

    def _column(self, i: int, ids: Ints, places: Ints) -> Floats:
        found = np.take(self.keys[:, i], ids)
        if self.positions is not None:
            found += np.take(self.positions[:, self.layout.key(0) + i], places)
        return found

    def renewed(self, rows: Ints, new: Sequence[str], length: int) -> Tables | None:
        """The tables of a changed vocabulary: `rows` of this one, of which the last is left out,
        followed by those of `new` words. None if codes clash or are too short, so that all have to
        be drawn anew."""
        changed, last = self, len(self.own) - 1
        if len(new) or not np.array_equal(rows, np.arange(last)):
            fresh = _words(new, self.salt, self.layout)  # with a row for all other words at its end
            order = np.append(rows, last + len(new))
            columns = {
                name: np.concatenate([getattr(self, name)[:-1], getattr(fresh, name)])[order]
                for name in ("own", "keys", "numbers")
            }
            if len(np.unique(columns["numbers"])) < len(order):
                return None
            changed = replace(self, **columns)
        if self.positions is not None and len(self.positions) != length:
            if coordinates_for(length) != self.layout.position:
                return None
            changed = replace(changed, positions=make_positions(length, self.salt, self.layout))
        return changed


def usual_labels(problem: Problem) -> Ints:
    """The most frequent label of every word over its contexts, and of all of them for the rest."""
    corpus, contexts = problem.corpus, problem.contexts
    words, labels = problem.columns[0][contexts], problem.wanted[contexts]
    pairs, often = np.unique(words * problem.kinds + labels, return_counts=True)
    return most_frequent(pairs, often, len(corpus.vocabulary), problem.kinds)


def most_frequent(pairs: Ints, often: Ints, words: int, labels: int) -> Ints:
    """The same, where ``often[i]`` contexts have the word and label w * `labels` + c that is
    ``pairs[i]``, in order."""
    order = np.lexsort((pairs, -often))  # of two that are equally frequent, the first
    usual = np.full(words + 1, np.bincount(pairs % labels, often).argmax())
    usual[(pairs // labels)[order][::-1]] = (pairs % labels)[order][::-1]
    return usual


def make_tables(problem: Problem, salt: int, heads: int, labels: int) -> Tables:
    """Codes, keys and values from hashes. Where two words have the same code, all are drawn anew
    with another salt, and are longer."""
    words, length = problem.corpus.vocabulary, problem.length
    placed = coordinates_for(length) if problem.placed else 0
    for size in range(CODE, LARGEST + 1, 2):
        salted = salt + (size << 32)
        tables = _words(words, salted, Layout(size, placed, heads, labels))
        if len(np.unique(tables.numbers)) == len(tables.numbers):
            positions = make_positions(length, salted, tables.layout) if placed else None
            return replace(tables, positions=positions)
    raise clash(problem)


def clash(problem: Problem) -> CorpusError:
    return CorpusError(
        "words whose hashes are the same, whatever is put before them",
        where=problem.corpus.source,
        remedy="look for words that were made to collide, or choose another construction",
    )


def _words(words: Sequence[str], salt: int, layout: Layout) -> Tables:
    """What belongs to words, with a last row for all others."""
    hashes = hash_words(words, salt)
    numbers = below(stream(hashes, 0), comb(layout.word, layout.word // 2))
    own, keys = codes(numbers, layout.word), _keys(hashes, layout.heads, KEY)
    return Tables(layout, own, keys, None, numbers, salt)


def make_positions(length: int, salt: int, layout: Layout) -> Floats:
    """Codes, keys and values of positions."""
    positions = np.zeros((length, layout.dim))
    positions[:, layout.word : layout.one] = codes(np.arange(length), layout.position)
    keys = _keys(hash_positions(length, salt), layout.heads, STEP)
    positions[:, layout.key(0) : layout.key(layout.heads)] = keys
    return positions


def _keys(hashes: Hashes, heads: int, size: float) -> Floats:
    columns = [uniform(stream(hashes, i + 1), size) for i in range(2 * heads)]
    return np.stack(columns, axis=1)
