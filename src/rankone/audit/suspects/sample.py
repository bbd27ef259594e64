"""How much each window counts: learnt from what all of them say of some tokens (`noise`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.audit.suspects.expectation import Expectation, Expected
from rankone.audit.suspects.looks import VOTING
from rankone.audit.suspects.noise import PRIOR, change_labels, learn_weights
from rankone.audit.suspects.polls import AT_ONCE, voting
from rankone.audit.suspects.threads import in_threads
from rankone.audit.suspects.view import Ground, Place, View
from rankone.audit.suspects.votes import Numbers, Scores, group_of, logarithms, look_up, odds
from rankone.audit.windows import Keys
from rankone.corpus.parted import PartedCorpus
from rankone.engines import Shared, Table

SAMPLE = 100_000  # tokens to learn the weights from
CHANGED = 0.1  # of them have their label changed
SEED = 0
EXPECTED = 0.7  # the weight of the model, before noise has said anything


@dataclass(frozen=True)
class Sample:
    """Some tokens, in order: their numbers, labels, what is expected of them, and for each window
    the group that each is in, and how often the labels stand in each group."""

    tokens: Ints
    labels: Numbers
    expected: Scores
    groups: list[Numbers]
    counts: list[tuple[Ints, Ints]]  # places in a table of groups and labels, and what is there

    def votes(self, window: int, rows: Ints) -> Ints:
        """How often each label stands in the groups of these tokens."""
        group, (at, count) = self.groups[window], self.counts[window]
        table = np.zeros((int(group.max()) + 1, self.expected.shape[1]), dtype=np.int64)
        table.reshape(-1)[at] = count
        return np.asarray(table[group[rows]])

    def scores(self, weights: Floats) -> Scores:
        """The weighted sum of what the windows and the model say, the model's weight the last."""
        scores, rows = np.float32(weights[-1]) * self.expected, np.arange(len(self.tokens))
        for window, weight in enumerate(weights[:-1].tolist()):
            counts = self.votes(window, rows)
            asked = np.flatnonzero(self.labels >= 0)
            counts[asked, self.labels[asked]] -= 1
            votes = weight * logarithms(counts).astype(np.float64)
            scores = (scores + votes).astype(np.float32)
        return scores

    def features(self, rows: Ints, own: Numbers, scores: Scores) -> Scores:
        """What each window and, last, the model say against these labels of some of the tokens, and
        for the best other label."""
        ranked = scores[rows]
        ranked[np.arange(len(rows)), own] = -np.inf
        other = ranked.argmax(axis=1).astype(np.int32)
        found = np.zeros((len(self.groups) + 1, len(rows)), dtype=np.float32)
        for window, out in enumerate(found[:-1]):
            out[:] = odds(self.votes(window, rows), self.labels[rows], own, other)
        found[-1] = self.expected[rows, other] - self.expected[rows, own]
        return found.T


def learn(
    corpus: PartedCorpus, ground: Shared, places: Sequence[Place], expectation: Expectation
) -> tuple[Floats, float]:
    """The weights of all windows, the model's last, and the offset that makes log odds of what they
    say together."""
    rng = np.random.default_rng(SEED)
    chosen = rng.choice(corpus.n_asked, min(SAMPLE, corpus.n_asked), replace=False)
    sample = _sample(corpus, ground, places, expectation, np.sort(chosen))
    rows = np.arange(len(sample.tokens))
    changed = np.sort(rng.choice(rows, max(int(CHANGED * len(rows)), 1), replace=False))
    prior = np.append(np.full(len(VOTING), PRIOR), EXPECTED)
    scores = sample.scores(prior)
    into = change_labels(scores[changed], sample.labels[changed], rng)
    as_found = sample.features(rows, sample.labels, scores)
    return learn_weights(as_found, sample.features(changed, into, scores), prior)


def _sample(
    corpus: PartedCorpus,
    ground: Shared,
    places: Sequence[Place],
    expectation: Expectation,
    chosen: Ints,
) -> Sample:
    """The asked tokens of these numbers, counted among those that are asked."""
    engine, calls, before = corpus.engine, list[Sequence[Any]](), 0
    for number, (part, place) in enumerate(zip(corpus.parts, places, strict=True)):
        mine = chosen[(chosen >= before) & (chosen < before + part.asked)] - before
        calls.append((ground, part.columns, place, *expectation.of_part(number), mine))
        before += part.asked
    refs = engine.each(look_at, calls)
    tables = [engine.take(ref) for ref in refs]
    engine.drop(refs)
    windows = np.concatenate([table["keys"] for table in tables], axis=1)
    tokens, labels, expected = (
        np.concatenate([table[name] for table in tables])
        for name in ("tokens", "labels", "expected")
    )
    groups, counts = [], []
    names = list(VOTING)
    kinds = expected.shape[1]
    for first in range(0, len(names), AT_ONCE):
        some = names[first : first + AT_ONCE]
        wanted = {}
        for k, name in enumerate(some, first):
            group, first_of = group_of(windows[k])
            wanted[name] = windows[k][first_of]
            groups.append(group)
        shared = engine.share(wanted)
        refs = engine.each(
            count_votes,
            [
                (ground, part.columns, place, shared)
                for part, place in zip(corpus.parts, places, strict=True)
            ],
        )
        sums = {name: np.zeros(len(wanted[name]) * kinds, dtype=np.int64) for name in some}
        for ref in refs:
            part_votes = engine.take(ref)
            for name, table in sums.items():
                table[part_votes[f"at {name}"]] += part_votes[f"count {name}"]
        engine.drop(refs)
        for table in sums.values():
            at = np.flatnonzero(table)
            counts.append((at, table[at]))
    return Sample(tokens, labels, expected, groups, counts)


def look_at(
    ground: Ground,
    columns: Table,
    place: Place,
    folds: Table,
    models: list[Table],
    given: Table | None,
    share: float,
    chosen: Ints,
) -> Table:
    """These of the asked tokens of a part: numbers, labels, what is expected, and all windows."""
    view, model = View.of(ground, columns, place), Expected.of(folds, models, given, share)
    tokens = np.flatnonzero(view.tags.ids >= 0)[chosen]
    kinds = len(ground.names)
    found: dict[str, NDArray[Any]] = {
        "tokens": tokens + place.start,
        "labels": view.tags.ids[tokens],
        "expected": np.empty((len(tokens), kinds), np.float32),
        "keys": np.empty((len(VOTING), len(tokens)), np.uint64),
    }
    sentences = np.unique(view.corpus.sentence_of[tokens])

    def look(what: tuple[slice, slice, View]) -> None:
        here, _, some = what
        first, last = found["tokens"].searchsorted(some.numbers[[0, -1]] + [0, 1])
        rows = slice(first, last)
        own = some.numbers.searchsorted(found["tokens"][rows])
        scores = model.scores(some, sentences[here], some.numbers - place.start)
        found["expected"][rows] = scores[own]
        for k, keys in enumerate(some.looks.voting().values()):
            found["keys"][k, rows] = keys[own]

    deque(in_threads(look, view.picked(sentences).slices()), maxlen=0)
    return found


def count_votes(
    ground: Ground, columns: Table, place: Place, wanted: dict[str, Keys]
) -> dict[str, Ints]:
    """How often each label stands in these groups of the windows, in a part."""
    view, kinds = View.of(ground, columns, place), len(ground.names)
    found = voting(view, list(wanted))

    def count(name: str) -> dict[str, Ints]:
        group = look_up(found.pop(name), wanted[name]).astype(np.int64)
        group = (group * kinds + view.tags.ids)[(group >= 0) & (view.tags.ids >= 0)]
        table = np.bincount(group, minlength=1)
        at = np.flatnonzero(table)
        return {f"at {name}": at, f"count {name}": table[at]}

    return {k: v for table in in_threads(count, list(wanted)) for k, v in table.items()}
