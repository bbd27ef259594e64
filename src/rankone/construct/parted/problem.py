"""The problem of a corpus in parts: its words and labels here, its sentences with the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rankone.construct.problem import Problem
from rankone.corpus import Corpus
from rankone.corpus.contexts import sentences_with_repeats, visible
from rankone.corpus.parted import PartedCorpus, corpus_of, nameless
from rankone.corpus.picked import conflicts_of
from rankone.corpus.shuffle import settle
from rankone.corpus.targets import PartTargets, Targets, refuse
from rankone.engines import Ref, Table
from rankone.engines.engine import Tell
from rankone.errors import CorpusError


@dataclass(frozen=True)
class PartedProblem(Problem):
    """A problem whose only part has no sentences; those of ``whole`` have the targets in
    ``tables``, one for each part (`rankone.corpus.shuffle.Settled`)."""

    whole: PartedCorpus = None  # type: ignore[assignment] # what comes before it has defaults
    tables: tuple[Ref, ...] = ()

    @property
    def tokens(self) -> int:
        return self.whole.n_tokens

    @property
    def asked(self) -> int:
        return self.whole.n_asked

    @property
    def sentences(self) -> int:
        return self.whole.n_sentences

    @property
    def longest(self) -> int:
        return self.whole.longest

    @cached_property
    def with_repeats(self) -> int:
        engine, heading = self.whole.engine, self.shared_heading
        found = engine.each(count_repeats, [(heading, part.columns) for part in self.whole.parts])
        count = sum(int(engine.take(ref)["count"][0]) for ref in found)
        engine.drop(found)
        return count

    @cached_property
    def shared_heading(self) -> Any:
        """The heading without its words, as all workers know it."""
        return self.whole.engine.share(nameless(self.whole.heading))

    @cached_property
    def bare(self) -> Problem:
        """The problem without its corpus, as tasks get it: `of_part` gives them that of a part."""
        names = (name for name in Problem.__dataclass_fields__ if name not in ("parts", "targets"))
        settings: dict[str, Any] = {name: getattr(self, name) for name in names}
        return Problem((nameless(self.corpus),), Targets((), 0, ()), **settings)

    @cached_property
    def shared_problem(self) -> Any:
        """The same, as all workers know it."""
        return self.whole.engine.share(self.bare)

    def named(self, token: int) -> tuple[str, str]:
        number, at = self.whole.part_of(token)
        part = self.whole.part(number)
        return part.vocabulary[part.token_ids[at]], part.place(at)


def pose_parts(
    whole: PartedCorpus,
    *,
    positions: bool = True,
    strict: bool = False,
    causal: bool = False,
    tell: Tell = lambda _: None,
    **network: Any,
) -> PartedProblem:
    """The problem for a corpus in parts (`rankone.construct.problem.pose`)."""
    if not whole.n_asked:
        raise CorpusError("no token has a label", where=whole.source, remedy="label some of them")
    settled = settle(whole, visible(positions=positions, causal=causal), tell)
    conflicts = conflicts_of(whole, settled)
    if strict and conflicts:
        refuse(conflicts, whole.source)
    targets = Targets((), settled.unavoidable, conflicts)
    return PartedProblem(
        (whole.heading,), targets, causal=causal, whole=whole, tables=settled.tables, **network
    )


def of_part(problem: Problem, columns: Table, targets: Table) -> Problem:
    """The problem of one part, whose contexts are those that begin in it."""
    part = corpus_of(problem.corpus, columns)
    contexts = np.where(targets["begins"], np.arange(part.n_tokens), -1)
    own = PartTargets(contexts, targets["labels"].astype(np.int64))
    return replace(problem, parts=(part,), targets=Targets((own,), 0, ()))


def count_repeats(heading: Corpus, columns: Table) -> Table:
    return {"count": np.array([sentences_with_repeats(corpus_of(heading, columns))])}
