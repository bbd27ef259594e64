"""One draw of the construction `line`: a line of context ids, its readout, and the network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankone.construct.contextual_mapping import ContextualMapping
from rankone.construct.line.closeness import Closeness, closeness, refusal
from rankone.construct.line.readout_units import Line, ReadoutUnits, merged_readout, paper_readout
from rankone.construct.line.tables import free_line, given_line
from rankone.construct.problem import Problem
from rankone.errors import PrecisionError
from rankone.nn import TokenClassifier


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

    The block puts the number of the label, from 1, out along the readout's direction p. The head's
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
