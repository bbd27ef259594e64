"""The run that a certificate speaks of is the one in the type of the weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import rankone
from certification import judge
from rankone import Corpus
from rankone.certification import Outcome, certify, check_certificate
from rankone.certification.label_heads import head_of
from rankone.errors import ModelError
from rankone.nn import Model

CORPUS = Corpus.from_sentences([(["a"], ["X"]), (["b"], ["Z"])])


@torch.no_grad()
def lost_in_float32(dtype: torch.dtype) -> Model:
    """Words a and b of 1e8 plus 1 and 3, less 1e8; float32 has 0 for both. All weights are exact
    in both types."""
    model = judge.plain_model(
        [[1.0, 1e8], [3.0, 1e8]],
        v1=[1.0, 0.0],
        v2=[0.0, 0.0],
        output=[0.0, 1.0],
        p=[0.0, 1.0],
        labels=4,
    )
    model.network.blocks[0].feedforward.bias2[1] = -1e8
    model.network.to(dtype)
    return model


def test_a_label_that_only_float32_gets_wrong() -> None:
    wide, narrow = lost_in_float32(torch.float64), lost_in_float32(torch.float32)
    assert wide.predict([["a"], ["b"]]) == [["X"], ["Z"]]
    assert narrow.predict([["a"], ["b"]]) == [["X"], ["X"]]
    assert certify(wide, CORPUS).ok
    found = certify(narrow, CORPUS)
    assert (found.dtype, found.labels, found.float_labels) == ("float32", Outcome.CERTIFIED, False)
    assert not found.ok
    assert found.reason == (
        "line 2 (sentence 2, position 1) gets the label Z in exact arithmetic, but X in float32"
    )
    assert float(found.float_distance) >= 3.0
    assert check_certificate(found, narrow, CORPUS).ok


def test_a_certificate_that_takes_float64_for_the_run_is_refuted() -> None:
    wide, narrow = (lost_in_float32(dtype) for dtype in (torch.float64, torch.float32))
    claimed = replace(certify(wide, CORPUS), hashes=certify(narrow, CORPUS).hashes)
    found = check_certificate(claimed, narrow, CORPUS)
    assert not found.ok
    assert any("float_labels" in text for text in found.reasons)
    assert any("float_distance" in text for text in found.reasons)


@pytest.mark.parametrize("labels", [2, 50, 3000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_nearest_label_is_that_of_the_largest_logit(dtype: type, labels: int) -> None:
    """Where the shortcut is taken, logits of the same type decide for the same label."""
    number = np.arange(1.0, labels + 1)
    head = torch.nn.Linear(2, labels, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(number[:, None] * [[2.0, 4.0]]))
        head.bias.copy_(torch.from_numpy(-(number**2)))
    head = head.to(torch.float32 if dtype is np.float32 else torch.float64)
    rng = np.random.default_rng(0)
    z = np.stack([rng.uniform(-1, labels + 2, 4000), np.zeros(4000)]).astype(dtype)
    z[0, :2000] = np.round(z[0, :2000] * 2) / 2 + rng.normal(size=2000) * 1e-6  # close to a tie
    z[1] = rng.normal(size=4000) * labels
    z[0] -= 2 * z[1]
    values, found = head_of(head).run(z)
    weight, bias = head.weight.detach().numpy(), head.bias.detach().numpy()
    assert values.dtype == weight.dtype == dtype
    assert (found == (weight @ z + bias[:, None]).argmax(0)).all()


def test_a_run_that_overflows_has_no_label() -> None:
    """In exact arithmetic every label is right; `predict` refuses, so this is not certified."""
    corpus = rankone.read_corpus("toy")
    for scale, outcome in ((1e307, Outcome.CERTIFIED), (3e307, Outcome.REFUTED)):
        model = rankone.memorize(corpus).model
        with torch.no_grad():
            model.network.head.weight.mul_(scale)
            model.network.head.bias.mul_(scale)
        with np.errstate(over="ignore", invalid="ignore"):
            found = rankone.certify(model, corpus)
        assert found.labels is Outcome.CERTIFIED
        assert found.outcome is outcome
        assert found.float_labels is (outcome is Outcome.CERTIFIED)
    assert "its logits overflow float64" in str(found.reason)
    with pytest.raises(ModelError, match="overflow"):
        model.predict(corpus)
