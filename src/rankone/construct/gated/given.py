"""Given token vectors in the construction `gated`: their own inner products are the gates.

The vector of word v is (x_v, 0, 1, 0, ...): the given one, and what is the same for all words. So

- key and value of a word are what its vector has in directions that are drawn, of the whitened
  vectors, scaled to the spread of the free table;
- all words start with one label, the most frequent; a word whose usual label is another has a unit
  without slope that writes the difference, and every other unit works on top of that;
- the gate of word w is g_w . x - theta_w (`halfspaces`), which is 0 for x_w up to rounding.

That rounding, times a penalty, is seen by the units of the word itself. With roundings of size u
and terms of size T_w in the gate's sum of k terms, unit j is off by at most B_j k u T_w, and what
it writes by |o_j| times that: `GivenGates.off` is the largest sum of that over a group, relative to
the height of its function.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from rankone.arrays import Floats, Ints
from rankone.construct.gated.halfspaces import Gates, find_gates, whitening
from rankone.construct.gated.units import Units
from rankone.construct.problem import Problem, joined
from rankone.errors import PrecisionError, VectorError
from rankone.nn import SelfAttention

SPREAD = 3**-0.5  # of keys and values: that of uniform numbers in [-1, 1]
FURTHEST = 2.0  # no key or value of a word is larger
FLOOR = 1e-3  # of the largest variance is added to all: little ones must not be blown up
LARGEST32 = 1e15  # of the entries of vectors, so that float32 has room for their products
ROUNDINGS = 8  # besides those of products with vectors and averages
USUAL = 1.0  # the bias of units that write usual labels


def held_type(problem: Problem) -> type[np.floating]:
    return np.float32 if problem.dtype == "float32" else np.float64


def given_table(problem: Problem) -> Floats:
    """The vectors as the network holds them; the last row, for all other words, is their mean."""
    vectors = problem.vectors
    assert vectors is not None
    held = held_type(problem)
    size = float(np.abs(vectors).max())
    if held is np.float32 and not 1 / LARGEST32 < size < LARGEST32:
        raise VectorError(
            f"float32 has no room for vectors as large as {size:.0e}",
            remedy="scale all of them by one number, or choose float64",
        )
    rows = np.concatenate([vectors, vectors.mean(0, keepdims=True)])
    return rows.astype(held).astype(np.float64)


def projections(table: Floats, heads: int, salt: int, held: type[np.floating]) -> Floats:
    """Rows of weights for the key of every head and its value, one after the other: a direction,
    and what is added to it. Head h has the same ones whatever the number of heads."""
    centred = table[:-1] - table[:-1].mean(0)
    whiten = whitening(centred, FLOOR)
    rows = []
    for head in range(heads):
        for drawn in np.random.default_rng([salt, head]).standard_normal((2, whiten.shape[1])):
            row = whiten @ drawn
            along = centred @ row
            spread, furthest = float(along.std()), float(np.abs(along).max())
            row *= min(SPREAD / spread, FURTHEST / furthest) if spread else 0.0
            row = row.astype(held).astype(np.float64)
            rows.append(np.append(row, -np.float64(held(table[:-1].mean(0) @ row))))
    return np.stack(rows)


def rounding_of_keys(table: Floats, rows: Floats) -> float:
    """How much more than that of a grid the rounding of keys and values puts averages off, in units
    of roundoff: a value is off by k roundings of its terms, and an average moves by no more than
    the scores, times the largest value."""
    terms = np.abs(table) @ np.abs(rows[:, :-1].T) + np.abs(rows[:, -1])
    most = terms.max()
    count = rows.shape[1] + 2
    return float(count * most * (1 + 2 * FURTHEST))


@dataclass(frozen=True)
class GivenGates:
    """The gates of words that have units, and how a group is put off by their rounding."""

    gates: Gates
    rounded: float  # roundings of a gate's sum, times the unit roundoff
    off: float = 0.0
    word: int = 0  # whose group is put off most

    @classmethod
    def of(cls, problem: Problem, table: Floats, usual: Ints, heads: int) -> GivenGates:
        """For words whose usual label is not the default, or that have other labels too."""
        contexts = problem.contexts
        words = joined([part.token_ids for part in problem.parts])[contexts]
        several = words[problem.labels[contexts] != usual[words]]
        wanted = np.union1d(np.flatnonzero(usual != usual[-1]), several)
        held = held_type(problem)
        terms = table.shape[1] + heads + ROUNDINGS
        names = problem.corpus.vocabulary
        gates = find_gates(table, wanted.astype(np.int64), held, terms, names)
        return cls(gates, terms * float(np.finfo(held).eps) / 2)

    def measured(self, units: Units, penalty: Floats, height: float) -> GivenGates:
        """With `off` for these units."""
        at = np.searchsorted(self.gates.words, units.word)
        each = np.abs(units.amplitude) * penalty * self.rounded * self.gates.size[at] / height
        keys = np.stack([units.word, units.position], axis=1)
        found, back = np.unique(keys, axis=0, return_inverse=True)
        off = np.bincount(back.reshape(-1), each, len(found))
        if not len(off):
            return self
        worst = int(off.argmax())
        return replace(self, off=float(off[worst]), word=int(found[worst, 0]))

    def rows(self, words: Ints, dim: int, one: int) -> Floats:
        """The gates of these words as rows of the layer."""
        found = self.gates.rows[np.searchsorted(self.gates.words, words)]
        out = np.zeros((len(words), dim))
        out[:, : found.shape[1] - 1], out[:, one] = found[:, :-1], found[:, -1]
        return out

    def refusal(self, problem: Problem) -> PrecisionError:
        """Name the word whose group is put off most, and the one that is nearest to it."""
        name, names = problem.dtype, problem.corpus.vocabulary
        i = int(np.searchsorted(self.gates.words, self.word))
        near = int(self.gates.nearest[i])
        other = repr(names[near]) if near < len(names) else "the mean of all vectors"
        remedy = "give vectors that are further apart" + ", choose float64" * (name == "float32")
        return PrecisionError(
            f"{name} cannot hold this corpus with these vectors: the gate of "
            f"{names[self.word]!r} has a margin of {self.gates.share[i]:.1e} of its terms to "
            f"{other}, and its rounding may put labels off by {self.off:.1e} of their height",
            where=problem.corpus.source,
            remedy=f"{remedy}, or choose another way (memorize --construction line)",
        )


def with_usual(units: Units, usual: Ints) -> Units:
    """Units, and for every word whose usual label is not the default one that writes it."""
    words = np.flatnonzero(usual != usual[-1])
    none, ones = np.zeros((len(words), units.slopes.shape[1])), np.ones(len(words))
    more = Units(
        words,
        np.full(len(words), -1),
        np.full(len(words), usual[-1]),
        usual[words],
        none,
        USUAL * ones,
        ones / USUAL,
    )
    names = Units.__dataclass_fields__
    return Units(*(np.concatenate([getattr(units, x), getattr(more, x)]) for x in names))


@torch.no_grad()
def look_along(attention: SelfAttention, rows: Floats, one: int) -> None:
    """Heads see the key and value of words along these rows, those of positions as they did."""
    dim, dtype = rows.shape[1] - 1, attention.key.dtype
    for i, row in enumerate(torch.from_numpy(rows).to(dtype)):
        weight = (attention.value if i % 2 else attention.key)[i // 2, 0]
        weight[:dim], weight[one] = row[:-1], row[-1]
