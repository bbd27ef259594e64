"""Whole certificates of networks with gates: what they claim is so, whatever the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.certification import judge
from tests.certification.gated_models import changed, layer_of, model_of, sentences_of

import rankone
from rankone.certification.certificate import Outcome
from rankone.certification.gated_balls import GatedBalls
from rankone.nn import Model, TokenClassifier
from rankone.nn.gatekeeper import Gatekeeper


def check(model: Model, sentences: Any) -> rankone.Certificate:
    """No claim goes beyond what mpmath finds, and nothing is left undecided."""
    found = rankone.certify(model, sentences)
    with judge.digits():
        truth = judge.truth(model, sentences)
        least = min(truth.distances().values(), default=judge.mpf("inf"))
        if found.mapping is Outcome.CERTIFIED:
            assert judge.mpf(found.delta) < least
            assert judge.mpf(found.delta) >= least * (1 - judge.mpf(2) ** -13)  # six digits
        else:
            assert least == 0
        assert found.labels is not Outcome.UNDECIDED
        assert found.wrong == len(truth.wrong)
    longest = max(sum(x * x for x in q) ** 0.5 for q in truth.context_ids)
    assert longest <= float(found.r) <= longest * (1 + 1e-4)
    return found


def equal_words(network: TokenClassifier) -> None:
    """Two words are one."""
    network.table[1] = network.table[0]


def equal_codes(network: TokenClassifier) -> None:
    """Two words have one code, but other keys."""
    network.table[1, :48] = network.table[0, :48]


def equal_positions(network: TokenClassifier) -> None:
    assert network.positions is not None
    network.positions[1] = network.positions[0]


def weak_penalties(network: TokenClassifier) -> None:
    """Units leak into other groups."""
    layer_of(network).penalty.mul_(2.0**-6)


def written_codes(network: TokenClassifier) -> None:
    """A head writes to the codes, so that they are no longer what the table says."""
    network.blocks[0].attention.output[0, :48] = 0.25  # type: ignore[union-attr, index]


def cancelled_codes(network: TokenClassifier) -> None:
    """The second head writes half of what the first one writes, to the same coordinate."""
    output = network.blocks[0].attention.output
    output[1] = output[0] / 2  # type: ignore[index, operator, union-attr]


def wrong_slopes(network: TokenClassifier) -> None:
    layer_of(network).slopes.mul_(-1)


def halved_codes(network: TokenClassifier) -> None:
    network.table[:, :48] *= 0.5


CORRUPT: list[tuple[Callable[[TokenClassifier], None], bool]] = [
    (equal_words, True),
    (equal_codes, True),
    (equal_positions, True),
    (weak_penalties, False),
    (written_codes, False),
    (cancelled_codes, True),
    (wrong_slopes, True),
    (halved_codes, True),  # inner products prove what codes do not
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("labels", [3, 40])
def test_a_model_that_memorize_made(dtype: str, labels: int) -> None:
    sentences = sentences_of(3, labels=labels)
    if labels > 3:
        sentences += [([f"w{i}"], [f"M{i}"]) for i in range(40)]
    assert check(model_of(sentences, dtype), sentences).ok


@pytest.mark.parametrize(("corrupt", "quick"), CORRUPT)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_corrupt_weights(
    corrupt: Callable[[TokenClassifier], None], quick: bool, dtype: str
) -> None:
    sentences = sentences_of(4, 8)
    one, other = model_of(sentences).vocabulary[:2]
    for words in ([one], [other], [one, one]):  # what nothing but the corrupted weights tells apart
        sentences = [*(s for s in sentences if s[0] != words), (words, ["L00"] * len(words))]
    model = changed(model_of(sentences, dtype), corrupt)
    assert model.vocabulary[:2] == (one, other)
    assert (GatedBalls.of(model.network) is not None) == quick
    found = check(model, sentences)
    if corrupt in (equal_words, equal_positions):
        assert found.mapping is Outcome.REFUTED
    if corrupt is wrong_slopes:
        assert found.labels is Outcome.REFUTED


def test_a_gate_that_opens_for_two_words() -> None:
    """On the coordinates that gates fine, a word may have fewer ones: then all units are added."""
    sentences = sentences_of(4, 8)

    def fewer(network: TokenClassifier) -> None:
        ones = np.flatnonzero(network.table[0, :48].numpy())
        fined = layer_of(network).gates.numpy().any(0)[ones]
        network.table[1, :48] = network.table[0, :48]
        network.table[1, int(ones[fined][0])] = 0

    model = changed(model_of(sentences), fewer)
    assert Gatekeeper.of(model.network) is None
    check(model, sentences)


def test_the_time_limit_is_kept() -> None:
    corpus = rankone.builtin_corpus(20)
    model = rankone.memorize(corpus, construction="gated").model
    found = rankone.certify(model, corpus, seconds=0)
    assert found.outcome is Outcome.UNDECIDED
    assert found.any_order is None
    assert torch.is_grad_enabled()
