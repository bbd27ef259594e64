"""Definition 2 for given weights: what certify proves is what the definition says, word by word."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from certification import judge
from rankone import Corpus
from rankone.certification import Certificate, Outcome, certify
from rankone.construct.theorem2.embedded import embed_corpus, graded_model
from rankone.construct.theorem2.weights import contextual_mapping
from rankone.nn import Model


def sequences(texts: list[str]) -> Corpus:
    return Corpus.from_sentences([(list(text), ["X"] * len(text)) for text in texts])


def check(found: Certificate, model: Model, texts: list[str]) -> None:
    """Both conditions, for all i, j, k, l, with V^(i) the set of tokens of sequence i.

    Sequences have n different tokens, as in the paper.
    """
    literal = judge.Literal(model.network)
    q = [literal([model.vocabulary.index(word) for word in text])[0] for text in texts]
    r, delta = mpf(found.r), mpf(found.delta)
    for ids in q:
        assert all(mpmath.norm(column) < r for column in ids)
    places = [(i, k) for i, text in enumerate(texts) for k in range(len(text))]
    for (i, k), (j, m) in product(places, places):
        if set(texts[i]) != set(texts[j]) or texts[i][k] != texts[j][m]:
            assert mpmath.norm([a - b for a, b in zip(q[i][k], q[j][m], strict=True)]) > delta


@given(
    st.integers(0, 10**6),
    st.lists(st.permutations("abcd").map(lambda p: "".join(p[:3])), min_size=1, max_size=5),
    st.sampled_from([("rank1", 1), ("softmax", 1), ("softmax", 2)]),
)
def test_weights_at_random(seed: int, texts: list[str], layer: tuple[str, int]) -> None:
    kind, head_size = layer
    model = judge.random_model(seed, attention=kind, head_size=head_size)
    found = certify(model, sequences(texts), cap=200)
    assert found.mapping is Outcome.CERTIFIED
    with judge.digits():
        check(found, model, texts)


GRADES: list[dict[str, Any]] = [
    {"grade": "paper"},
    {"grade": "tight"},
    {"grade": "tight", "query": "separate"},
]


@pytest.mark.parametrize("how", GRADES, ids=lambda how: " ".join(how.values()))
def test_weights_of_theorem_2(how: dict[str, Any]) -> None:
    """Certified; and what is measured is better than what the theorem promises."""
    texts = ["".join(p) for p in permutations("abc", 2)]
    corpus = sequences(texts)
    where = embed_corpus(corpus, np.array([[1.0, 0.5], [2.0, -1.0], [-0.5, 1.0]]), positions=False)
    graded = contextual_mapping(where.columns, where.n, **how)
    model = graded_model(corpus, where, graded)
    found = certify(model, corpus)
    assert found.mapping is Outcome.CERTIFIED
    assert found.decided["undecided"] == 0
    with mp.workdps(2 * graded.digits):
        check(found, model, texts)
        assert mpmath.log(mpf(found.delta)) > mpf(graded.log_bound)
        assert mpf(found.r) <= mpf(graded.r) * (1 + mpf(10) ** -5)


def with_vectors(values: list[float], **shape: Any) -> Model:
    """Words a, b, ... on the line of the vector (1, 1), no feed-forward layer, no head."""
    model = judge.random_model(0, dim=2, hidden=0, feedforward="rank1", **shape)
    with torch.no_grad():
        rows = torch.tensor([[value, value] for value in values], dtype=torch.float64)
        model.network.table[: len(values)] = rows
        model.network.head.weight.zero_()
        model.network.head.bias.zero_()
    return model


def test_averaging_is_no_contextual_mapping() -> None:
    """W^Q = 0: the mean is all that is seen, and (1, 2, 6), (1, 3, 5) have the same."""
    model = with_vectors([1.0, 2.0, 6.0, 3.0, 5.0], attention="softmax")
    with torch.no_grad():
        model.network.blocks[0].attention.query.zero_()
    found = certify(model, sequences(["abc", "ade"]), cap=200)
    assert found.mapping is Outcome.REFUTED


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_hardmax_is_no_contextual_mapping(seed: int, heads: int) -> None:
    """Theorem 1 with tokens (1, 2, 5, 6) v and (1, 3, 4, 6) v: minimum, maximum, mean agree."""
    model = with_vectors([1.0, 2.0, 5.0, 6.0, 3.0, 4.0], attention="hardmax", heads=heads)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        layer = model.network.blocks[0].attention
        for p in layer.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=torch.float64))
        if seed == 3:
            layer.key.zero_()
    found = certify(model, sequences(["abcd", "aefd"]), cap=200)
    assert found.mapping is Outcome.REFUTED
