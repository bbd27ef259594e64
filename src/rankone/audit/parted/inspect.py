"""The audit of a corpus in parts, before any model."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rankone.audit.findings import Suspect
from rankone.audit.parted.figures import figures_of_parts
from rankone.audit.parted.leaks import compare_parts
from rankone.audit.result import Audit
from rankone.corpus.contexts import by_sequence
from rankone.corpus.joined import join_parts
from rankone.corpus.parted import PartedCorpus
from rankone.corpus.picked import conflicts_of
from rankone.corpus.shuffle import settle
from rankone.corpus.tasks import of_texts
from rankone.errors import SettingError
from rankone.progress import Progress


def inspect_parts(
    own: PartedCorpus,
    others: Sequence[PartedCorpus],
    suspects: int,
    above: float | None,
    progress: Progress,
) -> Audit:
    """`inspect`, of corpora that one engine keeps."""
    if of_texts(own.heading.task):
        raise SettingError(
            "texts are inspected in memory",
            where=own.source,
            remedy="leave out memory, scratch and the engine (--memory, --scratch, --engine)",
        )
    seconds = {"read": own.heading.seconds + sum(other.heading.seconds for other in others)}
    started = time.perf_counter()
    progress("inspect", 0.0)
    figures = figures_of_parts(own, lambda share: progress("inspect", share))
    whole = join_parts([own, *others])
    sides, first = [], 0
    for corpus in (own, *others):
        mine = whole.parts[first : first + len(corpus.parts)]
        sides.append(PartedCorpus(whole.heading, mine, own.engine))
        first += len(corpus.parts)
    if others:
        settled = settle(whole, by_sequence)
        figures["conflicts"] = conflicts_of(whole, settled, before=own.n_tokens)
        own.engine.drop(settled.tables)
    comparisons = []
    for i, other in enumerate(others, 1):
        progress("compare", (i - 1) / len(others))
        comparisons.append(compare_parts(sides[0], sides[i], other.source))
    seconds["inspect"] = time.perf_counter() - started
    found: tuple[Suspect, ...] = ()
    if suspects or above is not None:
        from rankone.audit.suspects import find_suspects  # which compiles its loops

        progress("suspects", 0.0)
        started = time.perf_counter()
        found = find_suspects(whole, own.n_tokens, suspects, above=above, progress=progress)
        seconds["suspects"] = time.perf_counter() - started
    kept = {part.columns for corpus in (own, *others) for part in corpus.parts}
    own.engine.drop(part.columns for part in whole.parts if part.columns not in kept)
    return Audit(**figures, against=tuple(comparisons), suspects=found, seconds=seconds)
