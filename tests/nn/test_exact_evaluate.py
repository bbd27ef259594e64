"""Exact networks over sentences: the equations written out, fraction by fraction or in balls."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx, fmpq
from hypothesis import assume, given
from hypothesis import strategies as st

import exact_truth
from exact_truth import fraction, holds, random_network
from rankone.nn.exact import evaluate as evaluate_module
from rankone.nn.exact.evaluate import Evaluation, evaluate
from rankone.nn.exact.network import (
    ExactAttention,
    ExactBlock,
    ExactFeedForward,
    ExactNetwork,
    Sparse,
)
from rankone.nn.exact.numbers import exact
from rankone.nn.layers import Head

F = Fraction
Sentences = list[tuple[int, ...]]
Shape = dict[str, Any]


def agrees(found: Evaluation, network: ExactNetwork, sentences: Sentences) -> None:
    """Every id and logit is the true one, or a ball that holds it."""
    assert list(found.seen) == exact_truth.read_later(network)
    for j, sentence in enumerate(sentences):
        ids = exact_truth.context_ids(network, sentence)
        logits = exact_truth.logits(network, sentence)
        for k, i in enumerate(found.where[j]):
            for mine, true in ((found.ids[i], ids[k]), (found.logits[i], logits[k])):
                assert len(mine) == len(true)
                assert all(map(holds, mine, true)), (sentence, k, mine, true)


def numbers(found: Evaluation) -> list[fmpq | arb]:
    return [x for vector in (*found.ids, *found.logits) for x in vector]


@given(exact_truth.shapes(kinds=("hardmax",), activations=("relu",)), exact_truth.sentences())
def test_hardmax_and_relu_are_fractions(shape: Shape, sentences: Sentences) -> None:
    network = random_network(**shape)
    found = evaluate(network, sentences)
    assert all(isinstance(x, fmpq) for x in numbers(found))
    agrees(found, network, sentences)


@given(
    exact_truth.shapes(kinds=("softmax",), activations=("relu",), uniform=1.0),
    exact_truth.sentences(),
)
def test_equal_scores_are_an_average(shape: Shape, sentences: Sentences) -> None:
    network = random_network(**shape)
    found = evaluate(network, sentences)
    assert all(isinstance(x, fmpq) for x in numbers(found))
    agrees(found, network, sentences)


@given(exact_truth.shapes(), exact_truth.sentences(), st.sampled_from([30, 53, 128]))
def test_balls_hold_the_truth(shape: Shape, sentences: Sentences, bits: int) -> None:
    network = random_network(**shape)
    with ctx.workprec(bits):
        agrees(evaluate(network, sentences), network, sentences)


@given(exact_truth.shapes(kinds=("softmax",), density=0.9), exact_truth.sentences())
def test_balls_of_softmax_are_small(shape: Shape, sentences: Sentences) -> None:
    """Without hardmax, and but for bends of relu that lie just at a number, nothing is unknown."""
    network = random_network(**shape)
    scale = [
        abs(exact_truth.real(x))
        for sentence in sentences
        for Z in exact_truth.states(network, sentence)
        for z in Z
        for x in z
    ]
    assume(max(scale) < 1000)
    with ctx.workprec(400):
        found = [x for x in numbers(evaluate(network, sentences)) if isinstance(x, arb)]
    for x in found:
        assert not x.is_finite() or x.rad() < 2.0**-100


@given(exact_truth.shapes(), exact_truth.sentences())
def test_tokens_with_one_column_look_the_same(shape: Shape, sentences: Sentences) -> None:
    """One column for one word that sees the same words, and no column without a token."""
    network = random_network(**shape)
    found = evaluate(network, sentences)
    assert [len(row) for row in found.where] == [len(sentence) for sentence in sentences]
    used = {i for row in found.where for i in row}
    assert used == {*range(len(found.ids))} == {*range(len(found.logits))}
    looks: dict[int, set[Any]] = {}
    for sentence, row in zip(sentences, found.where, strict=True):
        for k, i in enumerate(row):
            seen = sentence[: k + 1] if network.causal else sentence
            bag = seen if network.positions is not None else tuple(sorted(seen))
            place = k if network.positions is not None else 0
            looks.setdefault(i, set()).add((sentence[k], place, bag))
    if network.count.attentions:  # a causal network may tell prefixes apart that are one bag
        assert all(len(seen) == 1 for seen in looks.values())


@given(exact_truth.shapes(kinds=("hardmax",), activations=("relu",)), exact_truth.sentences())
def test_sentences_do_not_touch_each_other(shape: Shape, sentences: Sentences) -> None:
    network = random_network(**shape)
    together = evaluate(network, sentences)
    for j, sentence in enumerate(sentences):
        alone = evaluate(network, [sentence])
        for i, k in zip(together.where[j], alone.where[0], strict=True):
            assert (together.ids[i], together.logits[i]) == (alone.ids[k], alone.logits[k])


def plain(
    table: Sequence[Sequence[Any]],
    *blocks: ExactBlock,
    head: Sequence[Sequence[Any]] | None = None,
    **more: Any,
) -> ExactNetwork:
    """A network that shows all coordinates, unless a head is given."""
    dim = len(table[0])
    shown = [[int(i == j) for j in range(dim)] for i in range(dim)] if head is None else head
    bias = (exact(0),) * len(shown)
    positions = more.pop("positions", None)
    blank = Sparse.dense(table, dim), positions, blocks, Sparse.dense(shown, dim), bias
    return ExactNetwork(*blank, **more)


def attend(key: Any, query: Any, value: Any, output: Any, kind: str = "softmax") -> ExactBlock:
    """One head of size 1: rows, and the column of W^O."""
    rows = [Sparse.dense([row], len(row)) for row in (key, query, value)]
    column = Sparse.dense([[x] for x in output], 1)
    return ExactBlock(ExactAttention((Head(*rows, column),), kind))


def test_hardmax_shares_between_ties() -> None:
    """Scores are 0, 5, 5: the value is the mean of those of the second and the third word."""
    network = plain(
        [[0, 10, 0, 1], [5, 20, 0, 1], [5, 60, 0, 1]],
        attend([1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], "hardmax"),
    )
    found = evaluate(network, [(0, 1, 2), (1, 1, 2), (0,)])
    average = [fraction(found.logits[row[0]][2]) for row in found.where]
    assert average == [40, F(100, 3), 10]


def test_hardmax_shares_between_keys_that_differ() -> None:
    """Keys (5, 0), (0, 5) and (1, 1) score 5, 5 and 2 with the query (1, 1)."""
    both = Sparse.of([{0: 1}, {1: 1}], 4)
    one = Sparse.of([{3: 1}, {3: 1}], 4)
    head = Head(both, one, Sparse.of([{2: 1}], 4), Sparse.of([{}, {}, {0: 1}, {}], 1))
    table = [[5, 0, 10, 1], [0, 5, 30, 1], [1, 1, 70, 1]]
    found = evaluate(plain(table, ExactBlock(ExactAttention((head,), "hardmax"))), [(0, 1, 2)])
    assert [fraction(found.logits[i][2]) for i in found.where[0]] == [30, 50, 90]


def test_causal_attention_sees_the_prefix() -> None:
    network = plain([[1], [4]], attend([0], [0], [1], [1]), causal=True)
    found = evaluate(network, [(0, 1, 1)])
    assert [fraction(found.logits[i][0]) for i in found.where[0]] == [2, F(5, 2) + 4, 7]


def test_positions_are_added() -> None:
    network = plain([[1], [4]], positions=Sparse.dense([[10], [20]], 1))
    found = evaluate(network, [(0, 0), (1, 0)])
    assert [[fraction(found.ids[i][0]) for i in row] for row in found.where] == [[11, 21], [14, 21]]
    assert found.where[0][1] == found.where[1][1]  # one word at one place


def test_ids_are_those_of_the_last_attention_in_what_is_read_later() -> None:
    """The second of two attentions; the feed-forward layers before and after it do not count."""
    mean = attend([0, 0, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0])
    double = ExactFeedForward.of([({0: 1}, 0, {0: 1})], 3)
    network = plain(
        [[1, 0, 5], [2, 0, 5]],
        ExactBlock(mean.attention, double),
        ExactBlock(mean.attention, ExactFeedForward.of([({1: 1}, 0, {2: 1})], 3)),
        head=[[1, 0, 0]],
    )
    found = evaluate(network, [(0, 1)])
    assert found.seen == (0, 1)
    assert [[fraction(x) for x in found.ids[i]] for i in found.where[0]] == [
        [2, F(3, 2) + 3],
        [4, F(3, 2) + 3],
    ]


def test_without_attention_ids_are_the_input() -> None:
    network = plain([[3, 1], [4, 1]], head=[[1, 0]])
    found = evaluate(network, [(1, 0)])
    assert (found.seen, [found.ids[i] for i in found.where[0]]) == ((0,), [[4], [3]])


def test_a_large_score_is_a_small_ball() -> None:
    """exp(10^6) and exp(-10^6) have no float, but balls know them."""
    network = plain([[1000, 1], [-1000, 0]], attend([1000, 0], [0, 1], [1, 0], [1, 0]))
    with ctx.workprec(128):
        found = evaluate(network, [(0, 1)])
        at = found.logits[found.where[0][0]][0]
    assert abs(at - 2000).abs_upper() < 1e-30


def softened(kind: str) -> ExactNetwork:
    """Hardmax over what softmax has made: scores of words 0 and 1 are the same true number where
    both are in the sentence, that of word 2 is less."""
    first = attend([1, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0])
    second = attend([0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 1, 0], kind)
    return plain([[0, 0, 8, 1], [0, 0, 16, 1], [1, -5, 32, 1]], first, second)


def test_hardmax_of_balls() -> None:
    """Unknown where scores of different columns overlap, decided where they do not."""
    with ctx.workprec(64):
        found = evaluate(softened("hardmax"), [(0, 2), (0, 1, 2), (0, 0, 2)])
    clear, tied, same = ([found.logits[i] for i in row] for row in found.where)
    assert clear[0][2] == 16
    assert not tied[0][2].is_finite()
    assert same[0][2] == 16
    assert all(arb(x).is_finite() for x in tied[0][:2])  # nothing else is lost


def test_exact_ties_among_balls_are_shared() -> None:
    """Words 0 and 1 have the score 7 exactly, word 2 a ball that is surely less."""
    network = plain(
        [[7, 0, 8, 1], [7, 0, 16, 1], [0, 1, 32, 1]],
        ExactBlock(None, ExactFeedForward.of([({1: 1}, 0, {0: 1})], 4, activation="tanh")),
        attend([1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 1, 0], "hardmax"),
    )
    with ctx.workprec(64):
        found = evaluate(network, [(0, 1, 2)])
    logit = found.logits[found.where[0][0]][2]
    assert logit == 8 + 12


def test_progress_rises() -> None:
    shares: list[float] = []
    network = random_network(3, blocks=4, missing=0.0)
    evaluate(network, [(0, 1)], shares.append)
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert all(0 <= share <= 1 for share in shares)


@pytest.mark.parametrize("sentences", [[], [()], [(), (0, 1)]])
def test_empty_sentences(sentences: Sentences) -> None:
    network = random_network(0, blocks=2, missing=0.0)
    found = evaluate(network, sentences)
    assert [len(row) for row in found.where] == [len(sentence) for sentence in sentences]


def test_the_clock_is_read_for_every_token_of_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long sentence has n^2 scores: one look per sentence would be too few."""
    ticks = []
    monkeypatch.setattr(evaluate_module, "tick", lambda: ticks.append(None))
    table = Sparse.dense([[k + 1] for k in range(40)], 1)
    one = Sparse.dense([[1]], 1)
    block = ExactBlock(ExactAttention((Head(one, one, one, one),)))
    network = ExactNetwork(table, None, (block,), one, (exact(0),))
    evaluate(network, [tuple(range(40))])
    assert len(ticks) >= 40


def test_few_weights_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a long sentence would take gigabytes; what is not kept is computed again."""
    network = random_network(3, kinds=("softmax",), missing=0.0)
    sentences = [(0, 1, 2), (2, 1), (0, 3, 3)]
    whole = evaluate(network, sentences)
    monkeypatch.setattr(evaluate_module, "KEPT", 2)
    few = evaluate(network, sentences)
    assert [list(map(str, x)) for x in few.logits] == [list(map(str, x)) for x in whole.logits]
