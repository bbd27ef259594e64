"""Verification of a network on a corpus in parts: figures merge, and a sample is gathered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.construct.heads import LabelHead
from rankone.construct.parted.problem import PartedProblem
from rankone.construct.problem import Problem
from rankone.construct.verify import (
    Check,
    check_outputs,
    chosen_tokens,
    dense_outputs,
    outputs,
    sample_size,
    worst_of,
    worst_tokens,
)
from rankone.corpus import Corpus
from rankone.corpus.parted import columns_of, corpus_of
from rankone.corpus.picked import laid_end_to_end, pick
from rankone.engines import Table
from rankone.engines.engine import Tell
from rankone.nn import Evaluator, TokenClassifier


@dataclass(frozen=True)
class Worst:
    """For each part how many tokens are asked, and of those with the largest errors the number,
    among all that are asked, and the error."""

    asked: Ints
    ranks: Ints
    errors: Floats


def check_fast_parts(
    network: TokenClassifier, problem: Problem, tell: Tell = lambda _: None
) -> tuple[Check, Worst]:
    """Check every token of every part by the fast path."""
    assert isinstance(problem, PartedProblem)
    engine, count = problem.whole.engine, sample_size(network, problem)
    shared = engine.share(network)
    calls = [
        (shared, problem.shared_heading, part.columns, targets, count)
        for part, targets in zip(problem.whole.parts, problem.tables, strict=True)
    ]
    refs = engine.each(check_part, calls, tell)
    tables = [engine.take(ref) for ref in refs]
    engine.drop(refs)
    asked = np.array([int(table["asked"][0]) for table in tables])
    before = np.cumsum(asked) - asked
    ranks = np.concatenate([t["ranks"] + n for t, n in zip(tables, before, strict=True)])
    errors = np.concatenate([table["errors"] for table in tables])
    return Check.merge([check_of(table) for table in tables]), Worst(asked, ranks, errors)


def check_dense_parts(
    network: TokenClassifier,
    problem: Problem,
    fast: Worst,
    rng: np.random.Generator,
    every: bool,
    progress: Callable[[float], None],
) -> Check:
    """Check the network with all matrices multiplied out, on a sample, which is gathered in this
    process, or on every token, part by part."""
    assert isinstance(problem, PartedProblem)
    whole, engine = problem.whole, problem.whole.engine
    shared = engine.share(network)
    ends = np.cumsum(fast.asked)
    if every:
        wanted = [np.arange(n) for n in fast.asked.tolist()]
    else:
        count, total = sample_size(network, problem), int(ends[-1])
        worst = fast.ranks[worst_tokens(fast.errors, worst_of(count))]
        chosen = chosen_tokens(total, worst, rng, count)
        cuts = np.searchsorted(chosen, ends)
        starts = ends - fast.asked
        wanted = [
            part - start for part, start in zip(np.split(chosen, cuts[:-1]), starts, strict=True)
        ]
    calls = [
        (problem.shared_heading, part.columns, targets, ranks)
        for part, targets, ranks in zip(whole.parts, problem.tables, wanted, strict=True)
        if len(ranks)
    ]
    refs = engine.each(pick_asked, calls)
    if every:
        checks = engine.each(
            check_picked, [(shared, whole.heading, [ref]) for ref in refs], progress
        )
        return Check.merge([check_of(engine.take(ref)) for ref in checks])
    return check_of(check_picked(network, whole.heading, [engine.take(ref) for ref in refs]))


def check_part(
    network: TokenClassifier, heading: Corpus, columns: Table, targets: Table, count: int
) -> Table:
    """The check of a part, and its tokens with the largest errors among those that are asked."""
    part, wanted = corpus_of(heading, columns), targets["labels"].astype(np.int64)
    head = LabelHead(network.head)
    found = outputs(Evaluator(network, only=head.seen), head, part, wanted)
    errors = found.errors[found.errors != -np.inf]
    ranks = worst_tokens(errors, worst_of(count))
    check = check_outputs(found, part.label_ids, wanted)
    return {
        "asked": np.array([len(errors)]),
        "ranks": ranks,
        "errors": errors[ranks],
        **table_of(check),
    }


def pick_asked(heading: Corpus, columns: Table, targets: Table, ranks: Ints) -> Table:
    """The sentences of some of the tokens that are asked, given by their ranks among these."""
    tokens = np.flatnonzero(targets["labels"] >= 0)[ranks]
    some, at = pick(corpus_of(heading, columns), tokens)
    return {**columns_of(some), "at": at, "wanted": targets["labels"][tokens].astype(np.int64)}


def check_picked(network: TokenClassifier, heading: Corpus, tables: list[Table]) -> Table:
    """The check of the network as written on tokens of some sentences, beside the fast path."""
    some, starts = laid_end_to_end(heading, tables)
    tokens = np.concatenate([t["at"] + start for t, start in zip(tables, starts, strict=True)])
    wanted = np.concatenate([table["wanted"] for table in tables])
    head, every = LabelHead(network.head), np.full(some.n_tokens, -1)
    every[tokens] = wanted
    fast = outputs(Evaluator(network, only=head.seen), head, some, every)
    found = dense_outputs(network, some, tokens, wanted)
    return table_of(check_outputs(found, some.label_ids[tokens], wanted, fast.values[tokens]))


def table_of(check: Check) -> Table:
    return {f"check.{name}": np.array([value]) for name, value in vars(check).items()}


def check_of(table: Table) -> Check:
    return Check(**{name: table[f"check.{name}"][0].item() for name in Check.__annotations__})
