"""How much each window counts, learnt from made-up noise.

Some labels are changed on purpose, each into one that is plausible where it stands. What the
windows say against a changed label, and against one as it was found, is then told apart by logistic
regression; its weights are those of the windows, and the probability it gives is the score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Floats

RATE = 0.01  # the share of labels that is taken to be wrong
PRIOR, PULL = 0.2, 300.0  # the weight of a window that noise says nothing of, and how firmly
STEPS = 30


def learn_weights(
    found: NDArray[np.float32], changed: NDArray[np.float32], prior: Floats
) -> tuple[Floats, float]:
    """Weights and offset of the log odds that a label is wrong.

    Rows of `found` are labels as they are, rows of `changed` are labels that were changed; together
    they count as a corpus of which the share RATE was changed. Weights are not negative: no window
    speaks for a label by speaking against it. They are drawn to `prior`.
    """
    rows = np.concatenate([found, changed]).astype(np.float64)
    rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    truth = np.repeat([0.0, 1.0], [len(found), len(changed)])
    share = RATE * len(found) / ((1 - RATE) * len(changed))
    counts = np.repeat([1.0, share], [len(found), len(changed)])
    pull = np.append(np.full(len(prior), PULL), 1.0)
    goal = np.append(prior, np.log(RATE / (1 - RATE)))

    def loss(weights: Floats) -> float:
        odds = rows @ weights
        misfit = counts @ (np.logaddexp(0.0, odds) - truth * odds)
        return float(misfit + 0.5 * pull @ (weights - goal) ** 2)

    weights = goal.copy()
    now = loss(weights)
    for _ in range(STEPS):  # Newton's method on the weights that are not held at 0
        chance = sigmoid(rows @ weights)
        slope = rows.T @ (counts * (chance - truth)) + pull * (weights - goal)
        bend = (rows * (counts * chance * (1 - chance))[:, None]).T @ rows + np.diag(pull)
        free = (weights > 0) | (slope < 0)
        free[-1] = True  # the offset may be anything
        step = np.zeros_like(weights)
        step[free] = np.linalg.solve(bend[np.ix_(free, free)], slope[free])
        for size in 0.5 ** np.arange(20):
            moved = weights - size * step
            moved[:-1] = np.maximum(moved[:-1], 0.0)
            if (then := loss(moved)) < now:
                break
        if now - then < 1e-9 * now:
            break
        weights, now = moved, then
    return weights[:-1], float(weights[-1])


def change_labels(
    scores: NDArray[np.float32], labels: NDArray[np.int32], rng: np.random.Generator
) -> NDArray[np.int32]:
    """Another label for each token: the more plausible, the more often."""
    chances = 0.5 * scores
    chances[np.arange(len(labels)), labels] = -np.inf
    drawn = chances + rng.gumbel(size=scores.shape)
    return np.asarray(drawn.argmax(axis=1), dtype=np.int32)


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + e^-x), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * values))
