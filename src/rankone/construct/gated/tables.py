"""The vectors of words and positions: codes, keys and values from hashes, and the usual label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.construct.gated.codes import LARGEST, codes, coordinates_for
from rankone.construct.gated.keys import below, hash_positions, hash_words, stream, uniform
from rankone.construct.problem import Problem
from rankone.errors import CorpusError

CODE = 48  # coordinates of the code of a word: 3e13 codes
QUERY = 2.0  # scores lie in [-3, 3]
KEY, STEP = 1.0, 0.5  # keys and values of words lie in [-1, 1], those of positions in [-1/2, 1/2]
ONE_HOT = 32  # so many labels have a coordinate each; more of them share digits
BASE = 16  # of the digits


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
class LabelCodes:
    """A row per label in few coordinates, the head that reads them, and how high a peak must be."""

    rows: Floats
    weight: Floats
    bias: Floats
    height: float
    one_hot: bool

    @classmethod
    def of(cls, count: int) -> LabelCodes:
        """A coordinate per label, or digits: the label whose digits are nearest wins."""
        if count <= ONE_HOT:
            return cls(np.eye(count), np.eye(count), np.zeros(count), 2.0, True)
        size = 1
        while BASE**size < count:
            size += 1
        numbers = np.arange(count)
        digits = np.stack([numbers // BASE**i % BASE for i in range(size)], axis=1).astype(float)
        digits -= BASE // 2
        return cls(digits, 2 * digits, -(digits**2).sum(1), 1.0, False)


@dataclass(frozen=True)
class Tables:
    """The vectors of words (the last one for all others) and of positions; ``numbers`` are those of
    the words' codes, and ``salt`` goes into every hash."""

    layout: Layout
    table: Floats
    positions: Floats | None
    numbers: Ints
    salt: int

    @property
    def seed(self) -> int:
        """The salt without the length of codes, which `make_tables` adds to it."""
        return self.salt - (self.layout.word << 32)

    def averages(self, ids: Ints, places: Ints, offsets: Ints, causal: bool) -> Floats:
        """What the heads add to every token of these sentences, (tokens, heads)."""
        from rankone.kernels.compiled.averages import average  # compiled code: loaded when used

        out = np.empty((self.layout.heads, len(ids)))
        for head in range(self.layout.heads):
            at = self.layout.key(head), self.layout.value(head)
            keys, values = (self.column(i, ids, places) for i in at)
            average(QUERY, keys, values, offsets, causal, out[head])
        return out.T

    def column(self, at: int, ids: Ints, places: Ints) -> Floats:
        """A coordinate of X + E."""
        found = np.take(self.table[:, at], ids)
        if self.positions is not None:
            found += np.take(self.positions[:, at], places)
        return found

    def renewed(
        self, rows: Ints, new: Sequence[str], usual: Ints, codes_: LabelCodes, length: int
    ) -> Tables | None:
        """The tables of a changed vocabulary: `rows` of this one, of which the last is left out,
        followed by those of `new` words. None if codes clash or are too short, so that all have to
        be drawn anew."""
        table, numbers, old = self.table, self.numbers, len(self.table) - 1
        if len(new) or not np.array_equal(rows, np.arange(old)):
            fresh = _words(new, self.salt, self.layout)  # with a row for all other words at its end
            numbers = np.concatenate([numbers[:-1], fresh.numbers])
            table = np.concatenate([table[:-1], fresh.table])
            if not np.array_equal(rows, np.arange(len(numbers) - 1)):
                order = np.append(rows, len(numbers) - 1)
                numbers, table = numbers[order], table[order]
            if len(np.unique(numbers)) < len(numbers):
                return None
        if not np.array_equal(table[:, self.layout.labels], codes_.rows[usual]):
            table = table.copy() if table is self.table else table
            table[:, self.layout.labels] = codes_.rows[usual]
        positions = self.positions
        if positions is not None and len(positions) != length:
            if coordinates_for(length) != self.layout.position:
                return None
            positions = make_positions(length, self.salt, self.layout)
        return replace(self, table=table, positions=positions, numbers=numbers)


def usual_labels(problem: Problem) -> Ints:
    """The most frequent label of every word over its contexts, and of all of them for the rest."""
    corpus, contexts = problem.corpus, problem.contexts
    words = problem.columns[0][contexts]
    labels, count = problem.labels[contexts], len(corpus.label_names)
    size = len(corpus.vocabulary)
    pairs, often = np.unique(words * count + labels, return_counts=True)
    order = np.lexsort((pairs, -often))  # of two that are equally frequent, the first
    usual = np.full(size + 1, np.bincount(labels).argmax())
    usual[(pairs // count)[order][::-1]] = (pairs % count)[order][::-1]
    return usual


def make_tables(problem: Problem, salt: int, heads: int, usual: Ints, labels: LabelCodes) -> Tables:
    """Codes, keys and values from hashes. Where two words have the same code, all are drawn anew
    with another salt, and are longer."""
    words, length = problem.corpus.vocabulary, problem.length
    placed = coordinates_for(length) if problem.placed else 0
    for size in range(CODE, LARGEST + 1, 2):
        salted = salt + (size << 32)
        layout = Layout(size, placed, heads, labels.rows.shape[1])
        tables = _words(words, salted, layout)
        if len(np.unique(tables.numbers)) == len(tables.numbers):
            tables.table[:, layout.labels] = labels.rows[usual]
            positions = make_positions(length, salted, layout) if placed else None
            return replace(tables, positions=positions)
    raise CorpusError(
        "words whose hashes are the same, whatever is put before them",
        where=problem.corpus.source,
        remedy="look for words that were made to collide, or choose another construction",
    )


def _words(words: Sequence[str], salt: int, layout: Layout) -> Tables:
    """A row per word, and the last one; without labels."""
    hashes = hash_words(words, salt)
    numbers = below(stream(hashes, 0), comb(layout.word, layout.word // 2))
    table = np.zeros((len(hashes), layout.dim))
    table[:, : layout.word] = codes(numbers, layout.word)
    table[:, layout.one] = 1.0
    _fill_keys(table, layout, hashes, KEY)
    return Tables(layout, table, None, numbers, salt)


def make_positions(length: int, salt: int, layout: Layout) -> Floats:
    positions = np.zeros((length, layout.dim))
    positions[:, layout.word : layout.one] = codes(np.arange(length), layout.position)
    _fill_keys(positions, layout, hash_positions(length, salt), STEP)
    return positions


def _fill_keys(table: Floats, layout: Layout, hashes: np.ndarray, size: float) -> None:
    for head in range(layout.heads):
        for i, at in enumerate((layout.key(head), layout.value(head))):
            table[:, at] = uniform(stream(hashes, 2 * head + i + 1), size)
