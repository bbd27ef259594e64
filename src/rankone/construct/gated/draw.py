"""One draw of the construction `gated`: codes and keys from hashes, averages, groups, network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.construct.gated.assemble import assemble
from rankone.construct.gated.given import (
    GivenGates,
    given_tables,
    rounding_of_keys,
    with_usual,
)
from rankone.construct.gated.labels import LabelCodes
from rankone.construct.gated.levels import fit_levelled
from rankone.construct.gated.solitary import fit_solitary, fit_unmingled
from rankone.construct.gated.tables import Tables, make_tables, usual_labels
from rankone.construct.gated.units import (
    Contexts,
    Fitting,
    Groups,
    Units,
    directions_for,
    least_units,
    with_exceptions,
)
from rankone.construct.gated.windows import make_window_tables
from rankone.construct.problem import Problem, end_to_end, joined
from rankone.errors import PrecisionError
from rankone.nn import Model, TokenClassifier
from rankone.nn.memory import COLUMNS, Made, Memory
from rankone.plural import plural

HEADS = (2, 3, 4, 6, 8, 12, 16)  # tried one after the other where the user does not say
WINDOW_HEADS = (16, 32, 48, 64)  # of which one is tried first for so many contexts of a word:
CROWDED = (512, 4096, 1 << 17)
CROWDED_PREFIXES = (128, 512, 4096)  # the same for those at one position
LAGS = 16  # ranks apart, in one head, at most, of contexts that are compared
OFF = 0.2  # how far the function of a group may be off, relative to its height


@dataclass(frozen=True)
class GatedDraft:
    """Units and groups, and the network where none of them is too far off.

    ``averages`` is what the heads add to every token. ``failed`` names, for every smaller number of
    heads that was tried, a word whose groups it cannot hold. ``given`` are the gates of given
    vectors.
    """

    problem: Problem
    tables: Tables
    averages: Floats
    usual: Ints
    label_codes: LabelCodes
    groups: Groups
    units: Units
    failed: Mapping[int, str]
    given: GivenGates | None = None

    @property
    def penalty(self) -> Floats:
        """A power of two, at least twice what a unit can see besides its gates."""
        units = self.units
        most = np.abs(units.slopes).sum(1) * self.tables.reach + np.abs(units.bias)
        return np.asarray(2.0 ** np.ceil(np.log2(np.maximum(2 * most, 1.0))))

    @property
    def min_gap(self) -> float:
        return self.units.widest(self.label_codes.height)

    @property
    def fits(self) -> bool:
        return fits(self.groups, 0.0 if self.given is None else self.given.off)

    @property
    def least_units(self) -> int:
        contexts, (ids, _) = self.problem.contexts, self.problem.columns
        return least_units(ids[contexts], self.problem.wanted[contexts], self.usual)

    @cached_property
    def network(self) -> TokenClassifier | None:
        return assemble(self) if self.fits else None

    def hopeful(self, before: GatedDraft | None) -> bool:
        return before is None

    @property
    def worst(self) -> tuple[int, int]:
        """The word and the position (-1: any) of the group that is furthest off."""
        worst = int(self.groups.off.argmax())
        return int(self.groups.word[worst]), int(self.groups.position[worst])

    def of_worst(self) -> tuple[Ints, Ints, Floats]:
        """The contexts of the worst group: tokens, labels, averages."""
        (word, position), tokens = self.worst, self.problem.contexts
        ids, places = self.problem.columns
        mine = (ids[tokens] == word) & ((position < 0) | (places[tokens] == position))
        tokens = tokens[mine]
        return tokens, self.problem.wanted[tokens], self.averages[tokens]

    def refusal(self, draws: int) -> PrecisionError:
        """Name the two contexts of the worst group that are closest."""
        if self.given is not None and self.given.off > self.groups.off.max(initial=0.0):
            return self.given.refusal(self.problem)
        name = "float32" if self.problem.dtype == "float32" else "float64"
        heads = self.tables.layout.heads
        one, two, distance = closest(*self.of_worst())
        (word, here), (_, there) = self.problem.named(one), self.problem.named(two)
        most = WINDOW_HEADS[-1]
        ways = [f"give more heads ({min(most, 2 * heads)})"] if heads < most else []
        ways += ["choose float64"] if name == "float32" else []
        remedy = ", or ".join(ways or ["try another seed, or a smaller corpus"])
        return PrecisionError(
            f"{name} cannot hold this corpus with {plural(heads, 'head')}, drawn "
            f"{plural(draws, 'time')}: two contexts of {word!r} with different labels are "
            f"{distance:.1e} apart, at {here} and {there}; rounding could put the "
            f"output there off by {self.groups.off.max(initial=0.0):.2g} times its height",
            where=self.problem.corpus.source,
            remedy=remedy,
        )


def closest(tokens: Ints, labels: Ints, a: Floats) -> tuple[int, int, float]:
    """Two contexts of a group with different labels, and their distance: of all that are almost
    neighbours in one head, those that are closest in all."""
    best = (int(tokens[0]), int(tokens[-1]), np.inf)
    for h in range(a.shape[1]):
        order = np.argsort(a[:, h], kind="stable")
        for lag in range(1, min(LAGS, len(order))):
            left, right = order[:-lag], order[lag:]
            distance = np.abs(a[left] - a[right]).max(1)
            distance[labels[left] == labels[right]] = np.inf
            i = int(distance.argmin())
            if distance[i] < best[2]:
                best = int(tokens[left[i]]), int(tokens[right[i]]), float(distance[i])
    return best


def fits(groups: Groups, more: float = 0.0) -> bool:
    """Whether no function is too far off; `more` is what gates add to that."""
    return bool(groups.off.max(initial=0.0) + more <= OFF)


def fitting_for(problem: Problem, heads: int, labels: LabelCodes) -> Fitting:
    directions = directions_for(heads, problem.directions)
    return Fitting(problem.dtype, directions, labels.height, labels.one_hot, problem.placed)


def salt_of(rng: np.random.Generator) -> int:
    """What goes into the hashes of a draw."""
    return int(rng.integers(1 << 31))


def draw_gated(problem: Problem, rng: np.random.Generator) -> GatedDraft:
    """As few heads as the precision needs, or as many as were asked for."""
    salt = salt_of(rng)
    usual = usual_labels(problem)
    label_codes = LabelCodes.wanted_by(problem, salt)
    (ids, places), mixed = problem.columns, len(problem.corpus.label_names)
    failed: dict[int, str] = {}
    given: GivenGates | None = None
    tables: Tables
    for heads in (problem.heads,) if problem.heads else heads_to_try(problem):
        fitting = fitting_for(problem, heads, label_codes)
        if problem.window:
            tables = make_window_tables(problem, salt, heads, label_codes.rows.shape[1])
        elif problem.vectors is None:
            tables = make_tables(problem, salt, heads, label_codes.rows.shape[1])
        else:
            tables = given_tables(problem, salt, heads, label_codes.rows.shape[1])
            given = given or GivenGates.of(problem, tables.own, usual, problem.heads or HEADS[-1])
            fitting = replace(fitting, more=rounding_of_keys(tables))
        averages = tables.averages(ids, places, end_to_end(problem.parts), problem.causal)
        contexts = Contexts.of(problem, averages, with_exceptions(problem, usual))
        if problem.window:
            groups, units = fit_solitary(contexts, usual, fitting, mixed)
        elif fine(problem):
            groups, units = fit_unmingled(contexts, usual, fitting, mixed)
        else:
            groups, units = fit_levelled(contexts, usual, fitting, mixed)
        if given is not None:
            units = with_usual(units, usual)
        draft = GatedDraft(
            problem, tables, averages, usual, label_codes, groups, units, dict(failed), given
        )
        if given is not None:
            height = label_codes.height
            draft = replace(draft, given=given.measured(units, draft.penalty, height))
        if draft.fits:
            break
        worst = groups.word[groups.off.argmax()] if len(groups.off) else 0
        failed[heads] = problem.corpus.vocabulary[worst]
    return draft


def fine(problem: Problem) -> bool:
    """Whether there are distributions, and few digits."""
    return problem.dtype == "float32" and problem.mixtures is not None and len(problem.mixtures) > 0


def heads_to_try(problem: Problem) -> tuple[int, ...]:
    """Where each context has a unit of its own there are more of them, and as many more as a group
    has contexts: with few heads, fewer of these lie beyond all others."""
    if not problem.window and not fine(problem):
        return HEADS
    ids, places = (column[problem.contexts] for column in problem.columns)
    groups = ids * problem.length + places if problem.placed else ids
    most = int(np.unique(groups, return_counts=True)[1].max())
    crowded = CROWDED if problem.window else CROWDED_PREFIXES
    return WINDOW_HEADS[sum(most > n for n in crowded) :]


def model_of(draft: GatedDraft, reading: Mapping[str, Any], made: Made, *, editable: bool) -> Model:
    """The model of a draft; an editable one holds its corpus, and the draft for the next change."""
    network, parts = draft.network, draft.problem.parts
    assert network is not None
    memory = None
    if editable:
        ids, labels = (joined([getattr(part, name) for part in parts]) for name in COLUMNS[:2])
        memory = Memory(ids, labels, end_to_end(parts), draft if len(parts) == 1 else None)
    first = parts[0]
    contexts = draft.problem.fingerprints
    return Model(network, first.vocabulary, first.label_names, reading, made, memory, contexts)
