"""The vectors of words and positions: codes, keys and values from hashes, and the usual label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
from rankone.construct.mixtures import LEAD
from rankone.construct.problem import Problem
from rankone.errors import CorpusError, SizeError

CODE = 48  # coordinates of the code of a word: 3e13 codes
QUERY = 2.0  # scores lie in [-3, 3]
KEY, STEP = 1.0, 0.5  # keys and values of words lie in [-1, 1], those of positions in [-1/2, 1/2]
ONE_HOT = 32  # so many labels have a coordinate each; more of them share digits
BASE = 16  # of the digits
SHARP = 8.0  # a code leads by so much for every coordinate in which another one differs
LABELS = 1 << 20  # the number of the stream of hashes for codes of labels: no head has it
DRAWS = 8  # of codes of labels: two are the same once in a hundred million draws
FADED = 4.0  # the first token of a window has this exponent, about, in the slowest heads
MODEST = 64  # distributions that always fit
NUMBERS = 1 << 27  # in a table with a coordinate for each distribution: a gigabyte


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
class WindowLayout(Layout):
    """The same for a window: heads share the coordinate of the step as their key."""

    @property
    def step(self) -> int:
        return self.one + 1

    def key(self, head: int) -> int:  # noqa: ARG002
        return self.step

    def value(self, head: int) -> int:
        return self.step + 1 + head

    @property
    def averages(self) -> Ints:
        return self.value(self.heads) + np.arange(self.heads)

    @property
    def labels(self) -> Ints:
        return self.value(2 * self.heads) + np.arange(self.label)

    @property
    def dim(self) -> int:
        return self.value(2 * self.heads) + self.label


@dataclass(frozen=True)
class LabelCodes:
    """A row per label in few coordinates, the head that reads them, and how high a peak must be."""

    rows: Floats
    weight: Floats
    bias: Floats
    height: float
    one_hot: bool
    sharp: float = 1.0

    @classmethod
    def wanted_by(cls, problem: Problem, salt: int) -> LabelCodes:
        """Those that a problem needs: with distributions, labels have codes that are far apart."""
        names, mixtures = problem.corpus.label_names, problem.mixtures
        if mixtures is None:
            return cls.of(len(names))
        check_distributions(problem)
        leaders, lead = mixtures.leaders(problem.labels), LEAD[problem.dtype]
        return cls.apart(names, mixtures.columns(len(names), leaders, lead), salt)

    @classmethod
    def apart(cls, names: Sequence[str], mixed: Floats, salt: int) -> LabelCodes:
        """A code for each label, with as many ones as zeros, and a coordinate for each column of
        `mixed`, which has the logits of a distribution.

        With the features y in the coordinates of codes, the logit of code c is SHARP (2 c . y -
        |c|^2): for a code it leads by SHARP for every coordinate in which the other one differs,
        and for y = 0 all are equal. `Mixtures` are read there.
        """
        size = LARGEST
        for more in range(DRAWS):
            hashes = stream(hash_words(names, salt + (more << 32))[:-1], LABELS)
            numbers = below(hashes, comb(size, size // 2))
            if len(np.unique(numbers)) == len(names):
                break
        own = codes(numbers, size).astype(float)
        rows = np.zeros((len(names) + mixed.shape[1], size + mixed.shape[1]))
        rows[: len(names), :size] = own
        rows[len(names) :, size:] = np.eye(mixed.shape[1])
        weight = np.concatenate([2 * SHARP * own, mixed], axis=1)
        bias = np.full(len(names), -SHARP * size / 2)
        return cls(rows, weight, bias, 1.0, False, SHARP)

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


def check_distributions(problem: Problem) -> None:
    """Refuse as many distributions as would not fit in memory."""
    assert problem.mixtures is not None
    count, labels = len(problem.mixtures), len(problem.corpus.label_names)
    if (labels + count) * (count + LARGEST) > NUMBERS and count > MODEST:
        longer = "give a longer window (memorize --window)"
        raise SizeError(
            f"{count:,} distributions over {labels:,} next tokens: each takes a coordinate, in all "
            f"{(labels + count) * count / 1e9 * 8:.1f} GB, of at most {NUMBERS / 1e9 * 8:.1f}",
            where=problem.corpus.source,
            remedy=f"{longer if problem.window else 'give fewer documents, or longer ones'}, so "
            "that fewer contexts have several next tokens (rankone inspect --task next counts "
            "them); or take less text",
        )


@dataclass(frozen=True)
class WindowTables(Tables):
    """The same for a `window`: ``keys`` are the values of words, and head h averages them with
    weights e^(-``decays[h]`` j) for the token j places back."""

    decays: Floats = field(default_factory=lambda: np.empty(0))
    window: int = 1

    @property
    def reach(self) -> float:
        """No average is larger."""
        return KEY

    def table(self, labels: Floats) -> Floats:
        layout = self.layout
        table = np.zeros((len(self.own), layout.dim))
        table[:, : layout.word] = self.own
        table[:, layout.one] = 1.0
        table[:, layout.labels] = labels
        table[:, layout.value(0) : layout.value(layout.heads)] = self.keys
        return table

    def averages(self, ids: Ints, places: Ints, offsets: Ints, causal: bool) -> Floats:  # noqa: ARG002
        """What the heads add to every token, (tokens, heads)."""
        from rankone.kernels.compiled import threads  # compiled code: loaded when used
        from rankone.kernels.compiled.window_sums import window_averages

        out = np.empty((self.layout.heads, len(ids)))

        def average(head: int, decay: float) -> None:
            values = np.take(self.keys[:, head], ids)
            window_averages(values, decay, self.window, offsets, out[head])

        threads.run(average, enumerate(self.decays.tolist()))
        return out.T


def decays_for(window: int, heads: int) -> Floats:
    """1, 3/4, 1/2, 3/8, ... down to where the first token of the window has faded to e^-`FADED`,
    about. With mantissas of two bits, their products with positions are exact in float32."""
    octaves = max(1, int(np.ceil(np.log2(max(FADED, window) / FADED))))
    scales = np.outer(2.0 ** -np.arange(octaves + 1), [1.0, 0.75]).ravel()[:-1]
    return np.asarray(np.resize(scales, heads))


def unfaded(window: int) -> int:
    """How many tokens the slowest head averages over, about: sum_j e^(-decay j) = 1 / decay."""
    slowest = decays_for(window, window + 2).min()  # there are fewer scales than heads
    return min(window, int(np.ceil(1 / slowest)))


def make_window_tables(problem: Problem, salt: int, heads: int, labels: int) -> WindowTables:
    """Codes and values from hashes; where two words have the same code, longer codes."""
    words, decays = problem.corpus.vocabulary, decays_for(problem.window, heads)
    for size in range(CODE, LARGEST + 1, 2):
        layout = WindowLayout(size, 0, heads, labels)
        hashes = hash_words(words, salt + (size << 32))
        numbers = below(stream(hashes, 0), comb(size, size // 2))
        if len(np.unique(numbers)) == len(numbers):
            values = np.stack([uniform(stream(hashes, i + 1), KEY) for i in range(heads)], axis=1)
            salted = salt + (size << 32)
            own = codes(numbers, size)
            return WindowTables(
                layout, own, values, None, numbers, salted, None, decays, problem.window
            )
    raise clash(problem)


def usual_labels(problem: Problem) -> Ints:
    """The most frequent label of every word over its contexts, and of all of them for the rest."""
    corpus, contexts = problem.corpus, problem.contexts
    words = problem.columns[0][contexts]
    labels, count = problem.wanted[contexts], problem.kinds
    size = len(corpus.vocabulary)
    pairs, often = np.unique(words * count + labels, return_counts=True)
    order = np.lexsort((pairs, -often))  # of two that are equally frequent, the first
    usual = np.full(size + 1, np.bincount(labels).argmax())
    usual[(pairs // count)[order][::-1]] = (pairs % count)[order][::-1]
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
