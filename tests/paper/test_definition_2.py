"""Definition 2: who must differ, by the definition's own words; r and delta in exact arithmetic."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
from rankone import Corpus
from rankone.corpus.contexts import by_set
from rankone.errors import VectorError
from rankone.theory.contextual import contextual, definition2_contexts
from rankone.theory.pair_search import PairSearch


@given(corpora.sentences())
def test_contexts_differ_where_the_definition_says(sentences: corpora.Sentences) -> None:
    sequences = [tokens for tokens, _ in sentences]
    contexts = definition2_contexts(sequences).tolist()
    looks = [(token, set(tokens)) for tokens in sequences for token in tokens]
    assert len(contexts) == len(looks)
    for (i, (x, v)), (j, (y, w)) in combinations(enumerate(looks), 2):
        assert (contexts[i] != contexts[j]) == (v != w or x != y)
    assert all(contexts[first] == first <= i for i, first in enumerate(contexts))
    assert by_set(Corpus.from_sentences(sentences)).tolist() == contexts


class Problem(NamedTuple):
    ids: np.ndarray[Any, np.dtype[np.float64]]
    contexts: list[int]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Ids a few units in the last place apart, so that rounding could hide what is asked."""
    dim = draw(st.integers(1, 4))
    offset, step = draw(
        st.sampled_from([(0.0, 1.0), (1.0, 2.0**-52), (1e8, 2.0**-26), (0.0, 1e-9)])
    )
    row = st.lists(st.integers(-6, 6), min_size=dim, max_size=dim)
    tokens = draw(st.lists(st.tuples(row, st.integers(0, 5)), min_size=1, max_size=14))
    ids = offset + step * np.array([ids for ids, _ in tokens], dtype=float)
    return Problem(ids, [context for _, context in tokens])


@given(problems())
def test_r_and_delta_are_strict_and_exact(problem: Problem) -> None:
    found = contextual(problem.ids, problem.contexts)
    rows = [[Fraction(x) for x in row] for row in problem.ids.tolist()]
    norms = [sum(x * x for x in row) for row in rows]
    squares = {
        (i, j): sum((x - y) ** 2 for x, y in zip(rows[i], rows[j], strict=True))
        for i, j in combinations(range(len(rows)), 2)
        if problem.contexts[i] != problem.contexts[j]
    }
    # d + 8 roundings are given away, d/2 + 2 may have gone before, 5 into giving them away
    slack = Fraction(3 * problem.ids.shape[1] + 30, 2**54)
    assert Fraction(found.r) ** 2 > max(norms)
    assert found.contexts == len(set(problem.contexts))
    if not squares:
        assert (found.closest, found.distance) == (None, None)
        assert found.delta == 2 * found.r
        return
    assert found.closest in squares
    nearest, delta = min(squares.values()), Fraction(found.delta)
    assert squares[found.closest] <= nearest * (1 + slack) ** 2
    assert delta**2 >= nearest * (1 - slack) ** 2
    assert delta**2 < nearest or delta == 0 == nearest
    assert found.ok == (nearest > 0)


def test_averaging_is_no_contextual_mapping() -> None:
    """(1, 2, 6) and (1, 3, 5) have the same mean, so token 1 gets the same id in both."""
    sequences = [[1, 2, 6], [1, 3, 5]]
    ids = [[float(x), float(np.mean(sequence))] for sequence in sequences for x in sequence]
    found = contextual(ids, definition2_contexts(sequences))
    assert not found.ok
    assert (found.delta, found.distance, found.closest) == (0.0, 0.0, (0, 3))
    assert json.loads(json.dumps(found.to_json()))["ok"] is False


def test_copies_of_a_context_are_one_point_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """200,000 tokens of 40 contexts: comparing all of them would take minutes, and tiles."""
    monkeypatch.delattr(PairSearch, "tiles")
    contexts = np.random.default_rng(0).permutation(np.arange(200_000) % 40)
    ids = np.stack([contexts, contexts % 7, -contexts], axis=1).astype(float)
    found = contextual(ids, contexts)
    assert found.ok
    assert found.distance == min(
        float(np.linalg.norm([i - j, i % 7 - j % 7, i - j])) for i, j in combinations(range(40), 2)
    )


def test_one_number_per_token() -> None:
    with pytest.raises(VectorError, match="for 3 rows"):
        contextual(np.zeros((3, 2)), [0, 1])
    with pytest.raises(VectorError, match="no context ids"):
        contextual(np.zeros((0, 2)), [])
    with pytest.raises(VectorError, match="row 1"):
        contextual([[np.inf]], [0])
