"""The line of context ids, and the readout: a feed-forward layer that sends every context id to its
label (Corollary 1). It needs units where the label changes on the line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.construct.contextual_mapping import ContextualMapping, tensor
from rankone.construct.problem import Problem
from rankone.nn.feedforward import Rank1FeedForward

NARROW, WIDE = 1 / 32, 1 / 2  # the least and the largest share of a gap that a ramp takes
TOLERATED = 1e-7  # output error by rounding for which a ramp is made wider than the least


@dataclass(frozen=True)
class Changes:
    """Label `before` up to `left`, label `after` from `right` on; `first` is left of them all.

    Only here does a readout need units. Labels count from 1, as in the paper.
    """

    left: Floats
    right: Floats
    before: Ints
    after: Ints
    first: int

    @property
    def min_gap(self) -> float:
        """The smallest gap in which a label changes, infinite if none does."""
        return float((self.right - self.left).min()) if len(self.left) else np.inf


@dataclass(frozen=True)
class Line:
    """A contextual mapping with the number s of every token, and the changes.

    ``unknown`` are the ends of the cell of the unknown word, where tokens have cells.
    """

    mapping: ContextualMapping
    ids: Floats
    changes: Changes
    unknown: tuple[float, ...] = ()


def changes_on_line(ids: Floats, labels: Ints) -> Changes:
    """Sort the context ids with a label (from 0); neighbours that differ in it make a change."""
    asked = labels >= 0
    if not asked.all():
        ids, labels = ids[asked], labels[asked]
    order = np.argsort(ids)
    s, y = ids[order], labels[order] + 1
    at = np.flatnonzero(y[1:] != y[:-1])
    return Changes(s[at], s[at + 1], y[at], y[at + 1], int(y[0]))


@dataclass(frozen=True)
class ReadoutUnits:
    """Units of f(s) = constant + sum_j out_gain_j relu(gain_j s + bias_j), to be added to s.

    ``min_gap`` is the smallest distance between two context ids on the line that the readout has
    to tell apart.
    """

    gain: Floats
    bias: Floats
    out_gain: Floats
    constant: float
    min_gap: float

    def layer(self, direction: Floats, write: Floats) -> Rank1FeedForward:
        """Eq. 3 with W1 = gain direction^T and W2 = write out_gain^T."""
        return Rank1FeedForward.assemble(
            gain=tensor(self.gain),
            direction=tensor(direction),
            bias1=tensor(self.bias),
            out_direction=tensor(write),
            out_gain=tensor(self.out_gain),
            bias2=tensor(self.constant * write),
        )


def merged_readout(changes: Changes) -> ReadoutUnits | None:
    """Two units per change of label: a ramp in the middle of the gap where it happens::

        after  ........______          left and right are the context ids on either side, so
                      /                every context id, also one not seen, gets the label of
        before ______/.........        its nearest neighbour, but for the ramp itself
              left       right

    A ramp is as narrow as rounding allows: a steep one that bends at theta puts the output off by
    about 2^-52 |theta| times its slope, everywhere to the right.

    Two more units, relu(s) and relu(-s), take away the s that the skip connection of eq. 3 brings
    along: s - relu(s) + relu(-s) = 0, without rounding.
    None if there is no room for a ramp: two contexts with different labels have one id.
    """
    gap, jump = changes.right - changes.left, changes.after - changes.before
    size = np.maximum(np.abs(changes.left), np.abs(changes.right))
    needed = np.finfo(np.float64).eps * size * np.abs(jump) / TOLERATED
    middle, half = changes.left + gap / 2, np.clip(needed, NARROW * gap, WIDE * gap) / 2
    rise, fall = middle - half, middle + half
    if not (fall > rise).all():
        return None
    slope = jump / (fall - rise)
    ones = np.ones(2 * len(gap))
    return ReadoutUnits(
        gain=np.concatenate([[1.0, -1.0], ones]),
        bias=np.concatenate([[0.0, 0.0], np.stack([-rise, -fall], axis=1).reshape(-1)]),
        out_gain=np.concatenate([[-1.0, 1.0], np.stack([slope, -slope], axis=1).reshape(-1)]),
        constant=float(changes.first),
        min_gap=changes.min_gap,
    )


def paper_readout(line: Line, problem: Problem) -> ReadoutUnits | None:
    """One unit per context id, after Zhang et al.: f is linear between neighbouring context ids.

    With the ids s_i of the different contexts in order and their labels y_i (from 1), unit i bends
    at b_i, where b_1 < s_1 and b_i = s_(i-1), and takes f through y_i - s_i, so that the skip
    connection makes it y_i:

        w_i = (y_i - s_i - sum_(j<i) w_j (s_i - b_j)) / (s_i - b_i)

    which is the change of slope at b_i. None if two different contexts have one id. The unknown
    word counts as two contexts, the ends of its cell, with the most frequent label.
    """
    each, labels = problem.contexts, problem.labels
    usual = np.full(len(line.unknown), np.bincount(labels[labels >= 0]).argmax())
    s, y = np.append(line.ids[each], line.unknown), np.append(labels[each], usual) + 1
    order = np.argsort(s)
    s, y = s[order], y[order]
    bends = np.concatenate([s[:1] - 1 - np.abs(s[:1]), s[:-1]])  # so far off that unit 1 is flat
    gaps = s - bends
    if not gaps.min() > 0:
        return None
    slopes = _slopes(gaps, y - s)
    return ReadoutUnits(
        gain=np.ones(len(s)),
        bias=-bends,
        out_gain=np.diff(slopes, prepend=0.0),
        constant=0.0,
        min_gap=float(gaps[1:].min()) if len(s) > 1 else np.inf,
    )


def _slopes(gaps: Floats, values: Floats) -> Floats:
    """Slopes that take f from 0 through `values`, each after its gap: the forward substitution.

    They are multiples of one power of two, so that their differences, which become the weights,
    add up again without rounding; and each is aimed from where the ones before really lead.
    Otherwise f would drift: on a line of 10^7 with pieces as steep as 10^9, by more than a label.
    """
    _, exponent = np.frexp(np.abs(np.diff(values, prepend=0.0) / gaps).max())
    quantum = float(np.ldexp(1.0, exponent - 51))
    slopes, f = [], 0.0
    for gap, value in zip(gaps.tolist(), values.tolist(), strict=True):
        slope = round((value - f) / gap / quantum) * quantum
        slopes.append(slope)
        f += slope * gap
    return np.array(slopes)
