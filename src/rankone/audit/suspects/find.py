"""From a corpus to its suspects.

Each token is compared with those that look alike. Windows of the same neighbours vote (`looks`,
`votes`). A linear model that has not seen the sentence says what it expects (`linear`), together
with a model of the user's if there is one. Made-up noise teaches how much each counts (`noise`).
A label is as suspicious as another one is likelier: for the token itself and, where that is less,
for the best correction of its sentence, by token that it changes (`edits`).
"""

from __future__ import annotations

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.audit.findings import Suspect
from rankone.audit.suspects.edits import NEVER, best_edits, follow_odds
from rankone.audit.suspects.linear import held_out_scores
from rankone.audit.suspects.looks import Looks
from rankone.audit.suspects.noise import PRIOR, change_labels, learn_weights, sigmoid
from rankone.audit.suspects.report import Reporter
from rankone.audit.suspects.tags import Tags
from rankone.audit.suspects.votes import Groups, Numbers, Queries, Scores
from rankone.corpus.corpus import Corpus
from rankone.errors import SizeError
from rankone.memory import installed

SAMPLE = 100_000  # tokens to learn the weights from
CHANGED = 0.1  # of them have their label changed
SEED = 0
EXPECTED = 0.7  # the weight of the model, before noise has said anything
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of another model in what is expected
BYTES = 24  # for each token and label: scores in float32, some of them twice
CORRECTION = 0.75  # the share of the correction in what is suspicious, not of the token itself
LEAST = 1e-5  # probabilities below it count as this


def find_suspects(
    corpus: Corpus,
    tokens: int,
    count: int,
    probabilities: Floats | None = None,
    *,
    above: float | None = None,
) -> tuple[Suspect, ...]:
    """Of the first `tokens` of a corpus, the `count` likeliest to be mislabelled, and all whose
    score is above `above`; all tokens vote.

    `probabilities` are those of a model for these tokens, one column per label.
    """
    tags, looks = Tags.of(corpus), Looks(corpus)
    if len(tags.names) < 2:  # nothing to propose
        return ()
    _check_size(corpus, len(tags.names))
    windows = {name: Groups.of(keys) for name, keys in looks.voting().items()}
    expected = normalised(
        held_out_scores(looks.linear(), tags.ids, len(tags.names), corpus.sentence_of, SEED)
    )
    if probabilities is not None:
        model = tags.expert(probabilities, LEAST)
        expected[: len(model)] = blend(expected[: len(model)], model, tags.ids[: len(model)])
    scores, offset = _judge(tags, windows, expected)
    follows = None if tags.scheme is None else follow_odds(corpus, tags)
    edits = best_edits(corpus, tags.ids, scores, follows)
    odds = suspicion(margins(scores, tags.ids), edits.odds / edits.length)
    chances = sigmoid(odds + offset)
    return Reporter(corpus, tags, windows, edits).report(
        chances[:tokens], odds[:tokens], count, 1.0 if above is None else above
    )


def _check_size(corpus: Corpus, labels: int) -> None:
    need = BYTES * corpus.n_tokens * labels
    if need > installed() / 2:
        raise SizeError(
            f"looking for suspects among {labels:,} labels takes {need / 1e9:,.1f} GB",
            where=corpus.source,
            remedy="give fewer files, or a corpus with fewer labels",
        )


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


def normalised(scores: Scores) -> Scores:
    """The logarithms of the probabilities that scores stand for."""
    return np.asarray(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))


def blend(one: Scores, two: Scores, labels: Numbers) -> Scores:
    """The mixture of two models' log probabilities that explains the labels best: a model that
    knows nothing has no say, and two that know the same have half."""
    asked = np.flatnonzero(labels >= 0)

    def misfit(share: float) -> float:
        mixed = normalised((1 - share) * one[asked] + share * two[asked])
        return -float(mixed[np.arange(len(asked)), labels[asked]].sum())

    share = min(SHARES, key=misfit)
    return normalised((1 - share) * one + share * two)


def _judge(tags: Tags, windows: dict[str, Groups], expected: Scores) -> tuple[Scores, float]:
    """The scores of all labels for each token, and the offset that makes odds of them."""
    rng = np.random.default_rng(SEED)
    prior = np.append(np.full(len(windows), PRIOR), EXPECTED)
    scores = _scores(tags, windows, expected, prior)
    asked = np.flatnonzero(tags.ids >= 0)
    found = np.sort(rng.choice(asked, min(SAMPLE, len(asked)), replace=False))
    changed = np.sort(rng.choice(found, max(int(CHANGED * len(found)), 1), replace=False))
    into = change_labels(scores[changed], tags.ids[changed], rng)
    as_found = _features(tags, windows, expected, scores, found, tags.ids[found])
    as_changed = _features(tags, windows, expected, scores, changed, into)
    weights, offset = learn_weights(as_found, as_changed, prior)
    return _scores(tags, windows, expected, weights), offset


def _scores(tags: Tags, windows: dict[str, Groups], expected: Scores, weights: Floats) -> Scores:
    """The weighted sum of what the windows and the model say, the model's weight the last."""
    scores = np.float32(weights[-1]) * expected
    for groups, weight in zip(windows.values(), weights[:-1].tolist(), strict=True):
        if weight:
            groups.add(weight, tags.ids, scores)
    return np.asarray(scores)


def _features(
    tags: Tags,
    windows: dict[str, Groups],
    expected: Scores,
    scores: Scores,
    sample: Ints,
    own: Numbers,
) -> Scores:
    """What each window and, last, the model say against these labels of the tokens of a sample,
    and for the best other label."""
    ranked = scores[sample]
    ranked[np.arange(len(sample)), own] = -np.inf
    other = ranked.argmax(axis=1).astype(np.int32)
    asked = Queries.of(sample, own, other, len(tags.ids))
    found = np.zeros((len(windows) + 1, len(sample)), dtype=np.float32)
    for groups, out in zip(windows.values(), found, strict=False):
        groups.odds(asked, tags.ids, out)
    found[-1] = expected[sample, other] - expected[sample, own]
    return found.T
