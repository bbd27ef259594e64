"""One draw of the construction `line`: the token table, the line of context ids, the network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankone.arrays import Floats
from rankone.construct.contextual_mapping import ContextualMapping
from rankone.construct.line.cells import GUARD, SLOT, changes_in_cells, fill_cells, order_cells
from rankone.construct.line.closeness import Closeness, closeness, refusal
from rankone.construct.line.readout_units import (
    WIDE,
    Changes,
    Line,
    ReadoutUnits,
    changes_on_line,
    merged_readout,
    paper_readout,
)
from rankone.construct.problem import Problem, joined
from rankone.errors import PrecisionError
from rankone.nn import TokenClassifier

KEY = 1.0  # keys of tokens lie in [-1, 1],
STEP = 0.5  # those of positions in [-1/2, 1/2], so a sequence id lies in [-3/2, 3/2]
QUERY = 2.0  # scores lie in [-3, 3]
SPREAD = 1.0, 16.0  # largest difference of two scores: logits of order 1 to 10 separate best
SHARES = 4.0 ** -np.arange(12)  # of the line that context may take, next to the token's own place
ROUNDING = 1e-3  # output error by rounding that is accepted for the sake of fewer units


def free_line(problem: Problem, rng: np.random.Generator) -> Line:
    """A free table: chosen so that the readout stays small and its rounding errors too.

    A token is the vector (cell, key, 1), a position (slot, key, 0). Attention asks with the third
    coordinate, which is constant, so by footnote 3 of the paper all tokens of a sentence get the
    same softmax average of the keys, the sequence id; it is added to the first coordinate:

        s = cell of the token + slot of the position + sequence id

    Every token owns a cell of `length` slots and never leaves it, whatever the sentence (the
    structure of eq. 28), so attention has to tell apart only the contexts of one token at one
    position. The query must not be 0: a plain mean of keys would not see the order of tokens.

    If all contexts must lie apart, not just those with different labels (the readout of the paper),
    the slots of a cell overlap instead and together move a token by less than 1: the line must be
    short, for all of it is in use.
    """
    parts, length, all_apart = problem.parts, problem.length, problem.readout == "paper"
    size = len(problem.corpus.vocabulary) + 1
    slot, width = (1 / length, 2 * SLOT) if all_apart else (SLOT, SLOT * length)
    table = np.stack([np.zeros(size), rng.uniform(-KEY, KEY, size), np.ones(size)], axis=1)
    positions = None
    if length > 1:
        slots, keys = slot * np.arange(length), rng.uniform(-STEP, STEP, length)
        positions = np.stack([slots, keys, np.zeros(length)], axis=1)
    cell, key, one = np.eye(3)
    mapping = ContextualMapping(table, positions, key, QUERY * one, cell, cell, write=cell)

    within = mapping.project(parts, cell) + mapping.averages(parts, problem.causal)
    cells = fill_cells(problem, within)
    rank = order_cells(cells, all_apart)
    table[:, 0] = SLOT / 2 - width * (rank + 1)
    tokens = joined([part.token_ids for part in parts])
    ids = np.take(table[:, 0], tokens) + within
    begin = float(table[-1, 0]) - SLOT / 2
    ends = begin + GUARD / 2, begin + width - GUARD / 2
    return Line(mapping, ids, changes_in_cells(cells, table[:, 0]), ends)


def given_line(problem: Problem, rng: np.random.Generator) -> Line:
    """Given vectors: random directions for key, query and readout, as Theorem 2 has them; positions
    as in Corollary 2, repaired.

    E_k = k (4 r_max / sqrt d) (1, ..., 1): the encoding of eq. 48 puts two tokens at different
    positions too close together where d <= 3; a step of 2 r_max + epsilon does not, and epsilon
    is at most 2 r_max. The directions lean on (1, ..., 1) just so far that all positions together
    span as much as the tokens do, else the position would drown the token. They are as long as
    the vectors are short, so the size of the vectors does not matter.

    The readout gives context only a share of the line. With a small share the contexts of one token
    stay together, so that few neighbours carry different labels and few units are needed; but
    gaps shrink with it. The smallest readout wins whose rounding error stays below `ROUNDING`; if
    all contexts must lie apart, not just those with different labels, the most accurate one.

    The unknown word is the mean of the vectors.
    """
    parts, length, vectors = problem.parts, problem.length, problem.vectors
    assert vectors is not None
    all_apart, dim = problem.readout == "paper", vectors.shape[1]
    table = np.concatenate([vectors, vectors.mean(0, keepdims=True)])
    positions, reach = None, 0.0
    if length > 1:
        step = 4 * float(np.linalg.norm(vectors, axis=1).max())
        positions = np.outer(np.arange(1, length + 1), np.full(dim, step / np.sqrt(dim)))
        reach = step * length
    v1, v2, draw = rng.standard_normal((3, dim))
    v1, v2 = (_tilt(v, vectors, reach, 1.0) for v in (v1, v2))
    mapping = ContextualMapping(table, positions, v1, v2, np.zeros(dim), v1, np.zeros(dim))
    spread = np.abs(mapping.project(parts, v2)).max() * np.ptp(mapping.project(parts, v1))
    wanted = np.exp(rng.uniform(*np.log(SPREAD)))
    mapping = replace(mapping, v2=v2 * (wanted / spread if spread else 1.0))
    average = mapping.averages(parts, problem.causal)
    size = max(float(np.std(average)), float(np.abs(average).max()) * 1e-3)

    best: tuple[bool, float, Line] | None = None
    for share in SHARES.tolist():
        direction = _tilt(draw, vectors, reach, share)
        out = int(np.abs(direction).argmax())
        own = mapping.project(parts, direction)
        weight = share / size * float(np.std(own) or 1.0)
        ids = own + weight * average
        changes = changes_on_line(ids, problem.labels)
        error = _rounding(_all_gaps(ids[problem.contexts]) if all_apart else changes)
        coarse = error > ROUNDING
        cost = error if coarse or all_apart else float(len(changes.left))
        if best is None or (coarse, cost) < best[:2]:
            write = np.eye(dim)[out] / direction[out]
            placed = replace(mapping, output=weight * write, direction=direction, write=write)
            best = coarse, cost, Line(placed, ids, changes)
    assert best is not None
    return best[-1]


def _all_gaps(ids: Floats) -> Changes:
    """As if every one of these contexts had a label of its own."""
    return changes_on_line(ids, np.argsort(np.argsort(ids)) % 2)


def _rounding(changes: Changes) -> float:
    """About how far rounding puts the output off: units bend by 1 / gap at numbers of size |s|."""
    gap = changes.right - changes.left
    if not len(gap) or gap.min() <= 0:
        return np.inf if len(gap) else 0.0
    jump = np.abs(changes.after - changes.before) / (WIDE * gap)
    size = max(np.abs(changes.left).max(), np.abs(changes.right).max())
    return float(np.finfo(float).eps * size * np.linalg.norm(jump))


def _tilt(draw: Floats, vectors: Floats, reach: float, share: float) -> Floats:
    """`draw`, tilted so that tokens have standard deviation 1 on it and positions span `share`."""
    ones = np.full(len(draw), len(draw) ** -0.5)
    across = draw - (draw @ ones) * ones if reach else draw
    spread = float(np.std(vectors @ across))
    if spread <= 1e-9 * float(np.abs(vectors).max()):  # one token, or nothing but `ones` to lean on
        return draw / float(np.abs(vectors @ draw).max() or 1.0)
    return across / spread + (share / reach * ones if reach else 0.0)


@dataclass(frozen=True)
class LineDraft:
    """The line, the units of its readout (None: two contexts have one id) and the network."""

    problem: Problem
    line: Line
    units: ReadoutUnits | None
    network: TokenClassifier | None

    @property
    def min_gap(self) -> float:
        return np.inf if self.units is None else self.units.min_gap

    @cached_property
    def closest(self) -> Closeness:
        return closeness(self.line, self.problem)

    def hopeful(self, before: LineDraft | None) -> bool:
        return self.closest.hopeful(None if before is None else before.closest, self.problem.tokens)

    def refusal(self, draws: int) -> PrecisionError:
        return refusal(self.closest, self.problem, draws)


def draw_line(problem: Problem, rng: np.random.Generator) -> LineDraft:
    """Corollary 1 or 2: contextual mapping, readout, and a head of label numbers."""
    line = (free_line if problem.vectors is None else given_line)(problem, rng)
    merged = problem.readout == "merged"
    units = merged_readout(line.changes) if merged else paper_readout(line, problem)
    network = None if units is None else assemble(line.mapping, units, problem)
    return LineDraft(problem, line, units, network)


def assemble(
    mapping: ContextualMapping, readout: ReadoutUnits, problem: Problem
) -> TokenClassifier:
    """The one-layer Transformer of Corollary 1 or 2 with a linear head.

    The block puts out the number of the label, from 1, along the readout's direction p. The head's
    row for label c is 2c p with bias -c^2: 2c y - c^2 = y^2 - (y - c)^2 is largest at the c
    nearest to y.
    """
    number = np.arange(1.0, len(problem.corpus.label_names) + 1)
    return mapping.network(
        readout.layer(mapping.direction, mapping.write),
        2 * number[:, None] * mapping.direction,
        -(number**2),
        head_size=problem.head_size,
        causal=problem.causal,
    )
