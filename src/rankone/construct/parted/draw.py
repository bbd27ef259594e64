"""A draw of the construction `gated` for a corpus in parts.

Words and positions decide where a context goes: all contexts of a group meet in one bucket, which
finds the units of the group. A word with so many contexts that each position has a group of its own
is spread over buckets by its positions.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.construct.gated.draw import (
    GatedDraft,
    fits,
    fitting_for,
    heads_to_try,
    salt_of,
)
from rankone.construct.gated.labels import LabelCodes
from rankone.construct.gated.levels import fit_levelled
from rankone.construct.gated.tables import Tables, make_tables, most_frequent
from rankone.construct.gated.units import FEW, Contexts, Fitting, Groups, Units
from rankone.construct.parted.problem import PartedProblem, of_part
from rankone.construct.problem import Problem
from rankone.engines import Engine, Ref, Table
from rankone.engines.engine import bucket_of, exchanged, scattered, stacked

CONTEXT = 700  # bytes that a bucket takes for each of its contexts
TREE = 8  # tables that are merged at a time
ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio


@dataclass(frozen=True)
class PartedDraft(GatedDraft):
    """A draft of a corpus whose averages stayed with its parts; ``pairs`` are the words with the
    labels that their contexts want (`most_frequent`)."""

    pairs: Ints = None  # type: ignore[assignment] # what comes before it has defaults

    @property
    def least_units(self) -> int:
        count = self.problem.kinds
        return int(np.count_nonzero(self.pairs % count != self.usual[self.pairs // count]))

    def of_worst(self) -> tuple[Ints, Ints, Floats]:
        problem = self.problem
        assert isinstance(problem, PartedProblem)
        whole, (word, position) = problem.whole, self.worst
        shared, tables = problem.shared_problem, whole.engine.share(self.tables)
        calls = [
            (shared, part.columns, targets, tables, word, position, part.start)
            for part, targets in zip(whole.parts, problem.tables, strict=True)
        ]
        refs = whole.engine.each(pick_group, calls)
        found = stacked([whole.engine.take(ref) for ref in refs])
        return found["tokens"], found["labels"], found["averages"]


def draw_parts(problem: Problem, rng: np.random.Generator) -> PartedDraft:
    """As few heads as the precision needs, or as many as were asked for (`draw_gated`)."""
    assert isinstance(problem, PartedProblem)
    salt, words = salt_of(rng), len(problem.corpus.vocabulary)
    pairs, often = word_labels(problem)
    usual = most_frequent(pairs, often, words, problem.kinds)
    of_word = np.bincount(pairs // problem.kinds, minlength=words)
    contexts = np.bincount(pairs // problem.kinds, often, words)
    several, spread = of_word > 1, (contexts > FEW) & problem.placed
    label_codes = LabelCodes.wanted_by(problem, salt)
    failed: dict[int, str] = {}
    for heads in (problem.heads,) if problem.heads else heads_to_try(problem):
        fitting = fitting_for(problem, heads, label_codes)
        tables = make_tables(problem, salt, heads, label_codes.rows.shape[1])
        groups, units = _fitted(
            problem, tables, fitting, usual, several, spread, int(contexts[several].sum())
        )
        draft = PartedDraft(
            problem,
            tables,
            np.empty((0, heads)),
            usual,
            label_codes,
            groups,
            units,
            dict(failed),
            pairs=pairs,
        )
        if fits(groups):
            break
        failed[heads] = problem.corpus.vocabulary[draft.worst[0]]
    return draft


def word_labels(problem: PartedProblem) -> tuple[Ints, Ints]:
    """The words with the labels that their contexts want, and how many contexts do."""
    engine, shared = problem.whole.engine, problem.shared_problem
    calls = [
        (shared, part.columns, targets)
        for part, targets in zip(problem.whole.parts, problem.tables, strict=True)
    ]
    refs = engine.each(count_pairs, calls)
    while len(refs) > 1:
        some = [refs[i : i + TREE] for i in range(0, len(refs), TREE)]
        merged = engine.each(add_pairs, [(part,) for part in some])
        engine.drop(refs)
        refs = merged
    table = engine.take(refs[0])
    return table["pairs"], table["often"]


def count_pairs(problem: Problem, columns: Table, targets: Table) -> Table:
    """Word and label of every context that begins in a part, and how many have them."""
    own = of_part(problem, columns, targets)
    contexts = own.contexts
    words, labels = own.columns[0][contexts], own.wanted[contexts]
    pairs, often = np.unique(words * own.kinds + labels, return_counts=True)
    return {"pairs": pairs, "often": often}


def add_pairs(tables: list[Table]) -> Table:
    both = stacked(tables)
    pairs, back = np.unique(both["pairs"], return_inverse=True)
    return {"pairs": pairs, "often": np.bincount(back, both["often"]).astype(np.int64)}


def _fitted(
    problem: PartedProblem,
    tables: Tables,
    fitting: Fitting,
    usual: Ints,
    several: Bools,
    spread: Bools,
    contexts: int,
) -> tuple[Groups, Units]:
    """The groups and units of all words, in order."""
    whole, engine = problem.whole, problem.whole.engine
    buckets = engine.buckets(CONTEXT * contexts)
    shared = problem.shared_problem
    drawn = engine.share((tables, several, spread))
    calls = [
        (shared, part.columns, targets, drawn, buckets)
        for part, targets in zip(whole.parts, problem.tables, strict=True)
    ]
    outgoing = exchanged(engine.split(send_contexts, calls, buckets))
    settings = engine.share(
        (fitting, usual, spread, problem.length, len(problem.corpus.label_names))
    )
    refs = engine.each(fit_bucket, [(some, settings) for some in outgoing])
    for some in outgoing:
        engine.drop(some)
    groups = _in_order(engine, refs, "groups", Groups)
    units = _in_order(engine, refs, "units", Units)
    engine.drop(refs)
    return groups, units


def _in_order(engine: Engine, refs: list[Ref], name: str, kind: Any) -> Any:
    """The rows of all buckets, by word and position; those of one group are in one bucket."""
    tables = []
    for ref in refs:
        table = engine.take(ref)
        tables.append({field.name: table[f"{name}.{field.name}"] for field in fields(kind)})
    rows = stacked(tables)
    del tables
    order = np.lexsort((rows["position"], rows["word"]))
    for column in rows:  # one after the other: they may be large
        rows[column] = rows[column][order]
    return kind(**rows)


def send_contexts(
    problem: Problem, columns: Table, targets: Table, drawn: tuple[Tables, Bools, Bools], count: int
) -> list[Table]:
    """The contexts of words that have several labels, with the averages of their heads."""
    tables, several, spread = drawn
    own = of_part(problem, columns, targets)
    tokens = own.contexts[several[own.columns[0][own.contexts]]]
    found = averaged(own, tables, tokens)
    home = found.words.astype(np.uint64) * ODD
    home += np.where(spread[found.words], found.places + 1, 0).astype(np.uint64) * (
        ODD ^ (ODD << 7)
    )
    home ^= home >> np.uint64(31)
    home *= ODD
    rows: Table = {
        "words": found.words.astype(np.int32),
        "places": found.places.astype(np.int32),
        "labels": found.labels.astype(np.int32),
        "seen": found.seen.astype(np.int32),
        "averages": found.averages,
    }
    return scattered(bucket_of(home, count), count, rows)


def averaged(own: Problem, tables: Tables, tokens: Ints) -> Contexts:
    """Contexts of a part, in order of words and positions."""
    part = own.corpus
    averages = tables.averages(part.token_ids, part.positions, part.offsets, own.causal)
    return Contexts.of(own, averages, tokens)


def fit_bucket(tables: list[Table], settings: tuple[Fitting, Ints, Bools, int, int]) -> Table:
    """The groups and units of the contexts of a bucket. Words that are spread over buckets have
    more contexts than may share one group, wherever the others are."""
    fitting, usual, spread, length, labels = settings
    rows = stacked(tables)
    whole = {name: rows[name].astype(np.int64) for name in ("words", "places", "labels", "seen")}
    contexts = Contexts(averages=rows["averages"], **whole).sorted(length)
    del rows, whole
    wide, found = spread[contexts.words], []
    for which, how in ((wide, replace(fitting, few=-1)), (~wide, fitting)):
        groups, units = fit_levelled(contexts.some(which), usual, how, labels)
        columns = {f"groups.{name}": column for name, column in vars(groups).items()}
        found.append(columns | {f"units.{name}": column for name, column in vars(units).items()})
    return stacked(found)


def pick_group(
    problem: Problem,
    columns: Table,
    targets: Table,
    tables: Tables,
    word: int,
    position: int,
    start: int,
) -> Table:
    """The contexts of one group that begin in a part."""
    own = of_part(problem, columns, targets)
    tokens, (ids, places) = own.contexts, own.columns
    tokens = tokens[(ids[tokens] == word) & ((position < 0) | (places[tokens] == position))]
    part = own.corpus
    averages = tables.averages(part.token_ids, part.positions, part.offsets, own.causal)
    return {
        "tokens": tokens + start,
        "labels": own.wanted[tokens],
        "averages": np.ascontiguousarray(averages[tokens]),
    }
