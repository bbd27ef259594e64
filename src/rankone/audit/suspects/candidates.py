"""The likeliest suspects of each part: tokens that something better is proposed for."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankone.arrays import Floats
from rankone.audit.suspects.edits import NEVER, Edits, best_edits
from rankone.audit.suspects.expectation import Expected
from rankone.audit.suspects.noise import sigmoid
from rankone.audit.suspects.report import Change, changes, table_of
from rankone.audit.suspects.threads import in_threads
from rankone.audit.suspects.view import Ground, Place, View
from rankone.audit.suspects.votes import Ballots, Numbers, Scores
from rankone.engines import Table
from rankone.spans import SPAN

CORRECTION = 0.75  # the share of the correction in what is suspicious, not of the token itself
LABELS = 16  # with more of them, fewer tokens are judged at once
Judged = tuple[slice, View, Edits, Floats]


def candidates(
    ground: Ground,
    columns: Table,
    place: Place,
    folds: Table,
    models: list[Table],
    given: Table | None,
    share: float,
    polls: list[Table],
    weights: list[float],
    offset: float,
    follows: Floats | None,
    listed: tuple[int, int, float],
) -> dict[str, np.ndarray[Any, Any]]:
    """The changes of a part that may be among the `count` likeliest of the first `tokens` of the
    corpus, or above a score: numbers of tokens, odds, scores, and what is proposed.

    `polls` and `weights` are those of the windows that count, the last weight that of the model.
    """
    tokens, count, above = listed
    view, model = View.of(ground, columns, place), Expected.of(folds, models, given, share)
    votes = [(table["number"], Ballots.of_table(table)) for table in polls]

    def judge(what: tuple[slice, slice, View]) -> Judged:
        sentences, here, some = what
        scores = np.float32(weights[-1]) * model.scores(some, sentences, here)
        for (number, ballots), weight in zip(votes, weights, strict=False):
            ballots.add(number[here], weight, some.tags.ids, scores)
        edits = best_edits(some.corpus, some.tags.ids, scores, follows)
        odds = suspicion(margins(scores, some.tags.ids), edits.odds / edits.length)
        return here, some, edits, odds

    found: list[tuple[float, float, Change]] = []
    least = -np.inf if count else np.inf  # odds that make a token one of the likeliest
    size = max(SPAN * LABELS // max(LABELS, len(ground.names)), 1)
    for here, some, edits, odds in in_threads(judge, view.slices(size)):
        own = odds[: max(tokens - place.start - here.start, 0)]
        chances = sigmoid(own + offset)
        some_tokens = np.flatnonzero((own >= least) | (chances > above))
        order = some_tokens[np.argsort(-own[some_tokens], kind="stable")]
        for more, change in enumerate(changes(some.corpus, some.tags, edits, order)):
            chance = float(chances[change.token])
            if more >= count and chance <= above:
                break
            found.append((float(own[change.token]), chance, change.moved(int(some.numbers[0]))))
        if 0 < count <= len(found):
            least = np.sort([odd for odd, _, _ in found])[-count]
            found = [each for each in found if each[0] >= least or each[1] > above]
    return {
        "odds": np.array([odd for odd, _, _ in found], np.float64),
        "chances": np.array([chance for _, chance, _ in found], np.float64),
        **table_of([change for _, _, change in found]),
    }


def suspicion(alone: Floats, corrected: Floats) -> Floats:
    """The log odds for the token alone, drawn towards those for its correction if these are less.

    >>> suspicion(np.array([4.0, 4.0]), np.array([0.0, 8.0])).tolist()
    [1.0, 4.0]
    """
    return (1 - CORRECTION) * alone + CORRECTION * np.minimum(alone, corrected)


def margins(scores: Scores, labels: Numbers) -> Floats:
    """By how much the best other label is ahead of the given one."""
    rows, own = np.arange(len(labels)), np.maximum(labels, 0)
    others = scores.astype(np.float64)
    given = others[rows, own]
    others[rows, own] = NEVER
    return np.asarray(others.max(axis=1) - given)
