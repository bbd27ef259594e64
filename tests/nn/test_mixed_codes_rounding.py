"""What rounding leaves in the coordinates of distributions is not a distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import rankone
from rankone.construct.gated.labels import LabelCodes
from rankone.construct.mixtures import Mixtures
from rankone.corpus import Corpus
from rankone.nn.mixed_codes import MixedCodes

NAMES = list("abcdefg")


def head_of() -> tuple[MixedCodes, np.ndarray]:
    """Seven labels and three distributions: the head, and the features of each, as rows."""
    contexts = np.array([0, 0, 1, 1, 1, 2, 2, 3])
    labels = np.array([0, 1, 2, 3, 2, 4, 5, 6])
    wanted = np.array([0, 0, 2, 2, 2, 4, 4, 6])
    mixed = Mixtures.find(contexts, labels, wanted)
    codes = LabelCodes.apart(NAMES, mixed.columns(7, mixed.leaders(wanted), 2.0**-10), salt=5)
    head = torch.nn.Linear(codes.rows.shape[1], 7, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(codes.weight))
        head.bias.copy_(torch.from_numpy(codes.bias))
    found = MixedCodes.of(head)
    assert found is not None
    return found, codes.rows


@pytest.mark.parametrize("noise", [1e-15, 1e-6, 1e-3, 0.02])
def test_a_lead_is_at_least_what_the_distance_says(noise: float) -> None:
    head, rows = head_of()
    rng = np.random.default_rng(1)
    many = np.repeat(rows, 40, 0).T
    own = np.repeat(np.arange(len(rows)), 40)
    x = many + rng.uniform(-noise, noise, many.shape)
    y, z = x[head.at], x[head.own]
    labels = np.where(own < 7, own, head.leader[np.maximum(own - 7, 0)])
    exact, logits = head.logits(many[head.at], many[head.own]), head.logits(y, z)

    def lead(logits: np.ndarray) -> np.ndarray:
        at = labels, np.arange(len(labels))
        others = logits.copy()
        others[at] = -np.inf
        return logits[at] - others.max(0)

    away = head.away(y, z, labels)
    assert (lead(logits) >= lead(exact) * (1 - 2 * away) - 1e-11).all()
    assert away[own < 7].max() < 8 * noise + 1e-14
    if noise < 1e-9:
        assert away.max() < 0.5
        found, known = head.nearest(y, z)
        assert known.all()
        assert found.tolist() == labels.tolist()


@pytest.mark.parametrize("texts", [["a", "a a a"], ["a", "a a a", "a"], ["a b", "a a", "a"]])
def test_distributions_over_all_labels_there_are(texts: list[str]) -> None:
    """Their column has as few different numbers as one of a code."""
    found = rankone.memorize(Corpus.from_texts(texts))
    assert found.margin > 0.49
    share = np.exp(next(found.model.log_probabilities([["a"]])))
    ends = sum(text == "a" for text in texts) / len(texts)
    assert share[0, found.model.labels.index("<|end|>")] == pytest.approx(ends, rel=1e-3)


def test_texts_whose_groups_round_are_memorized() -> None:
    """Units that rise and fall leave some 1e-16 of a distribution at other contexts."""
    words = "a b c d e".split()
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(words, 9)) for _ in range(60)]
    found = rankone.memorize(Corpus.from_texts(texts), construction="gated")
    assert found.wrong == found.unavoidable > 0
    assert found.margin > 0.49
