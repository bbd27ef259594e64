"""From a corpus to its suspects.

Each token is compared with those that look alike. Windows of the same neighbours vote (`looks`,
`votes`, `polls`). A linear model that has not seen the sentence says what it expects (`linear`),
together with a model of the user's if there is one (`expectation`). Made-up noise teaches how much
each counts (`sample`, `noise`). A label is as suspicious as another one is likelier: for the token
itself and, where that is less, for the best correction of its sentence, by token that it changes
(`edits`, `candidates`). All of it is done part by part, and does not depend on how the corpus is
cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankone.arrays import Floats
from rankone.audit.findings import Suspect
from rankone.audit.suspects.candidates import candidates
from rankone.audit.suspects.edits import follow_counts, follow_odds
from rankone.audit.suspects.evidence import find_evidence
from rankone.audit.suspects.expectation import Expectation
from rankone.audit.suspects.linear import BITS, FOLDS
from rankone.audit.suspects.looks import VOTING
from rankone.audit.suspects.polls import poll
from rankone.audit.suspects.report import Change, changes_of, evidence_of, suspect_of
from rankone.audit.suspects.sample import learn
from rankone.audit.suspects.tags import Tags
from rankone.audit.suspects.view import Ground, Place, View, surveyed
from rankone.corpus.gathered import gathered
from rankone.corpus.parted import PartedCorpus
from rankone.engines import Shared, Table
from rankone.errors import SizeError
from rankone.memory import installed
from rankone.progress import Progress


def find_suspects(
    corpus: PartedCorpus,
    tokens: int,
    count: int,
    probabilities: Floats | None = None,
    *,
    above: float | None = None,
    progress: Progress = lambda *_: None,
) -> tuple[Suspect, ...]:
    """Of the first `tokens` of a corpus, the `count` likeliest to be mislabelled, and all whose
    score is above `above`; all tokens vote.

    `probabilities` are those of a model for these tokens, one column per label.
    """
    above = 1.0 if above is None else above
    seen, places = surveyed(corpus)
    kinds = len(seen.names)
    if kinds < 2 or not corpus.n_asked:  # nothing to propose
        return ()
    _check_size(corpus, kinds)
    engine, ground = corpus.engine, corpus.engine.share(seen)
    tags = Tags([*seen.names], np.empty(0, np.int32), corpus.heading.scheme)
    expectation = Expectation.of(corpus, ground, places, tags, probabilities)
    progress("suspects", 0.3)
    weights, offset = learn(corpus, ground, places, expectation)
    windows = [name for name, weight in zip(VOTING, weights, strict=False) if weight]
    progress("suspects", 0.4)
    polls = poll(corpus, ground, places, windows, kinds)
    progress("suspects", 0.8)
    follows = _follows(corpus, ground, places, seen) if tags.scheme else None
    counting = [*(weight for weight in weights[:-1].tolist() if weight), float(weights[-1])]
    refs = engine.each(
        candidates,
        [
            (
                *(ground, part.columns, place, *expectation.of_part(number), polls[number]),
                *(counting, offset, follows, (tokens, count, above)),
            )
            for number, (part, place) in enumerate(zip(corpus.parts, places, strict=True))
        ],
    )
    expectation.drop(corpus)
    for tables in polls:
        engine.drop(tables)
    listed = _likeliest([engine.take(ref) for ref in refs], count, above)
    engine.drop(refs)
    progress("suspects", 0.9)
    return _described(corpus, ground, places, tags, listed)


def _check_size(corpus: PartedCorpus, labels: int) -> None:
    need = FOLDS * 4 * labels << BITS + 1
    room = installed() / 2 if corpus.engine.name == "here" else 2 * corpus.engine.room
    if need > room:
        raise SizeError(
            f"looking for suspects among {labels:,} labels takes {need / 1e9:,.1f} GB",
            where=corpus.source,
            remedy="give more memory (--memory), or a corpus with fewer labels",
        )


def _follows(corpus: PartedCorpus, ground: Shared, places: Sequence[Place], seen: Ground) -> Floats:
    engine = corpus.engine
    calls = [
        (ground, part.columns, place) for part, place in zip(corpus.parts, places, strict=True)
    ]
    refs = engine.each(count_follows, calls)
    counts = np.sum([engine.take(ref)["counts"] for ref in refs], axis=0)
    engine.drop(refs)
    return follow_odds(counts, seen.names)


def count_follows(ground: Ground, columns: Table, place: Place) -> Table:
    """How often tags follow each other in a part."""
    view = View.of(ground, columns, place)
    return {"counts": follow_counts(view.corpus, view.tags)}


def _likeliest(tables: Sequence[Table], count: int, above: float) -> list[tuple[float, Change]]:
    """Of the changes of all parts the likeliest, the first of them first, with their scores."""
    found = [change for table in tables for change in changes_of(table)]
    odds, chances = (
        np.concatenate([table[name] for table in tables]) for name in ("odds", "chances")
    )
    order = np.argsort(-odds, kind="stable")  # of equals, the first in the corpus comes first
    listed = order[(np.arange(len(order)) < count) | (chances[order] > above)]
    return [(float(chances[i]), found[i]) for i in listed.tolist()]


def _described(
    corpus: PartedCorpus,
    ground: Shared,
    places: Sequence[Place],
    tags: Tags,
    listed: list[tuple[float, Change]],
) -> tuple[Suspect, ...]:
    """These changes as findings."""
    tokens, wanted = (
        np.array([getattr(change, name) for _, change in listed], dtype=np.int64)
        for name in ("token", "wanted")
    )
    evidence = find_evidence(corpus, ground, places, tokens, wanted, len(tags.names))
    rows = np.array([token for rows, _ in evidence for token in rows], dtype=np.int64)
    some = gathered(corpus, tokens=np.concatenate([tokens, rows]))
    tags = Tags.of(some.corpus, tags.names)
    found = []
    for (chance, change), (others, alike) in zip(listed, evidence, strict=True):
        by = int(some.token(change.token)) - change.token
        suspect, _ = suspect_of(some.corpus, tags, change.moved(by), chance)
        named = [evidence_of(some.corpus, int(some.token(token)), alike) for token in others]
        found.append(replace(suspect, evidence=tuple(named)))
    return tuple(found)
