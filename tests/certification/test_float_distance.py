"""How far the float64 run is from the exact network: at least as far as high precision says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpmath import mpf

import corpora
import rankone
from certification import judge
from rankone import Corpus
from rankone.certification import certify
from rankone.certification.label_heads import head_of
from rankone.nn import Model


def distance(model: Model, sentences: corpora.Sentences) -> mpf:
    """The largest |run - exact| of what the head reads: nothing is added for any rounding."""
    run, _ = head_of(model.network.head).run(
        judge.float_run(model, Corpus.from_sentences(sentences)).T
    )
    truth = judge.truth(model, sentences)
    exact = truth.logits
    if len(run) == 1:
        p = [mpf(w) / 2 for w in model.network.head.weight[0].tolist()]
        exact = [[judge.dot(p, z)] for z in truth.features]
    pairs = zip(run.T.tolist(), exact, strict=True)
    return max(abs(mpf(r) - e) for row in pairs for r, e in zip(*row, strict=True))


def made_up(seed: int, labels: int) -> corpora.Sentences:
    rng = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(30)]
    return [
        (rng.choice(words, n).tolist(), [str(x) for x in rng.integers(0, labels, n)])
        for n in rng.integers(2, 9, 12)
    ]


@pytest.mark.parametrize(
    "how", [{}, {"positions": True}, {"causal": True}], ids=lambda how: " ".join(how) or "bags"
)
def test_memorized_models(how: dict[str, Any]) -> None:
    """Balls and the run agree to the last bits, so it is the radius that makes up for the rest."""
    sentences = made_up(len(how), 40)
    corpus = Corpus.from_sentences(sentences)
    model = rankone.memorize(corpus, **how).model
    found = certify(model, corpus)
    with judge.digits():
        true = distance(model, sentences)
        assert 0 < true <= mpf(found.float_distance) < 100 * true


@pytest.mark.parametrize("p", [[0.1], [0.1, 0.7], [1 / 3, 0.1, -0.7]])
def test_one_token_whose_output_is_rounded(p: list[float]) -> None:
    """Nothing but y = p . z: run and ball have the same number, half a unit from the exact one."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = np.zeros((1, 3))
        table[0, : len(p)] = rng.uniform(0.5, 1, len(p)) * 8
        zeros = [0.0] * 3
        full = [*p, *zeros][:3]
        model = judge.plain_model(
            table.tolist(), v1=zeros, v2=zeros, output=zeros, p=full, labels=6
        )
        sentences = [(["a"], ["X"])]
        found = certify(model, Corpus.from_sentences(sentences))
        with judge.digits():
            assert distance(model, sentences) <= mpf(found.float_distance)


def test_a_label_that_floats_do_not_decide() -> None:
    """Then the exact network says how far the run is off."""
    table = [[1e9 + 3, 0.0, 0.0], [0.0, 2.0, 0.0]]
    table[0][1] = 1.5 - float(np.float64(0.1) * table[0][0])
    zeros = [0.0] * 3
    model = judge.plain_model(table, v1=zeros, v2=zeros, output=zeros, p=[0.1, 1.0, 0.0])
    sentences = [(["a"], ["X"]), (["b"], ["Y"])]
    found = certify(model, Corpus.from_sentences(sentences), cap=100)
    assert found.decided == {"float": 1, "exact": 1, "undecided": 0}
    with judge.digits():
        true = distance(model, sentences)
        assert 1e-9 < true <= mpf(found.float_distance) < true * mpf("1.0001")
