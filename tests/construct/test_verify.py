"""A constructed model is verified before it is returned: every way to break it is noticed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import corpora
import rankone
from rankone import Corpus
from rankone.construct import verify
from rankone.construct.heads import LabelHead, Outputs
from rankone.construct.line.readout_units import ReadoutUnits
from rankone.construct.problem import pose
from rankone.construct.verify import (
    Check,
    batches,
    check_dense,
    check_fast,
    check_outputs,
    dense_outputs,
    sample_tokens,
)
from rankone.errors import PrecisionError
from rankone.nn import (
    Evaluator,
    FeedForward,
    Rank1Attention,
    Rank1FeedForward,
    TokenClassifier,
    evaluate,
)
from rankone.spans import spans

module = importlib.import_module("rankone.construct.line.draw")

CORPUS = Corpus.from_sentences(
    corpora.spelled("abcab xyzyx", "bacba yyxzx", "cab zxy", "aabb xxyz", "b z", "abc xzz")
)


def built(corpus: Corpus = CORPUS, **how: Any) -> TokenClassifier:
    return rankone.memorize(corpus, **how).model.network


Break = Callable[[TokenClassifier], None]


def scaled(name: str, factor: float) -> Break:
    def change(network: TokenClassifier) -> None:
        network.get_parameter(name).mul_(factor)

    return change


def moved(name: str, entry: int, by: float) -> Break:
    def change(network: TokenClassifier) -> None:
        network.get_parameter(name).view(-1)[entry] += by

    return change


def exchanged(name: str) -> Break:
    def change(network: TokenClassifier) -> None:
        rows = network.get_parameter(name)
        rows[[0, 1]] = rows[[1, 0]].clone()

    return change


def missing(value: float) -> Break:
    def change(network: TokenClassifier) -> None:
        network.get_parameter("blocks.0.feedforward.bias1").view(-1)[-1] = value

    return change


BREAKS: dict[str, Break] = {
    "no attention": scaled("blocks.0.attention.output", 0.0),
    "attention the other way round": scaled("blocks.0.attention.output", -1.0),
    "other keys": scaled("blocks.0.attention.v1", 0.5),
    "other queries": scaled("blocks.0.attention.v2", 0.5),
    "two words swapped": exchanged("table"),
    "a word in another cell": moved("table", 0, 4.0),
    "positions moved": moved("positions", 3, 1.0),
    "one unit too weak": moved("blocks.0.feedforward.out_gain", 4, 1.0),
    "one unit elsewhere": moved("blocks.0.feedforward.bias1", 4, 0.5),
    "all labels up": moved("blocks.0.feedforward.bias2", 0, 1.0),
    "labels nearly half up": moved("blocks.0.feedforward.bias2", 0, 0.26),
    "no skip undone": moved("blocks.0.feedforward.gain", 1, 0.5),
    "NaN": missing(float("nan")),
    "infinity": missing(float("inf")),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_network_that_is_broken_is_not_returned(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = module.assemble

    def broken(*args: Any) -> TokenClassifier:
        network: TokenClassifier = right(*args)
        with torch.no_grad():
            BREAKS[name](network)
        return network

    assert rankone.memorize(CORPUS).ok
    monkeypatch.setattr(module, "assemble", broken)
    with pytest.raises(PrecisionError, match="after 8 draws"), np.errstate(all="ignore"):
        rankone.memorize(CORPUS)


HEADS: dict[str, Break] = {
    "one label is never chosen": moved("head.bias", 0, -5.0),
    "two labels swapped": exchanged("head.weight"),
    "the largest label wins": moved("head.bias", 2, 4.0),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_that_decides_for_other_labels_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no head of label numbers any more, so its logits are read, not y."""
    right = module.assemble

    def broken(*args: Any) -> TokenClassifier:
        network: TokenClassifier = right(*args)
        with torch.no_grad():
            HEADS[name](network)
        return network

    monkeypatch.setattr(module, "assemble", broken)
    with pytest.raises(PrecisionError, match="should not happen"):
        rankone.memorize(CORPUS)


def unit(**changes: Callable[[Any], Any]) -> Callable[[ReadoutUnits], ReadoutUnits]:
    return lambda r: replace(r, **{name: f(getattr(r, name)) for name, f in changes.items()})


@pytest.mark.parametrize(
    "change",
    [
        unit(constant=lambda c: c + 1),
        unit(constant=lambda c: c - 0.3),
        unit(out_gain=lambda t: t * 1.3),
        unit(bias=lambda b: b + 0.75),
        unit(gain=lambda g: -g),
    ],
)
@pytest.mark.parametrize("readout", ["merged", "paper"])
def test_a_wrong_readout_is_not_returned(
    change: Any, readout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{readout}_readout"
    right = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args: change(right(*args)))
    with pytest.raises(PrecisionError):
        rankone.memorize(CORPUS, readout=readout)


@pytest.mark.parametrize("kind", [Rank1Attention, Rank1FeedForward])
def test_the_network_as_written_is_checked_besides(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers that are right by their fast paths and wrong when multiplied out."""
    right = kind.expand

    def wrong(self: Any, *args: Any) -> Any:
        full = right(self, *args)
        weight = full.weight2 if isinstance(full, FeedForward) else full.output
        weight.data *= 1.5
        return full

    monkeypatch.setattr(kind, "expand", wrong)
    with pytest.raises(PrecisionError, match="should not happen"):
        rankone.memorize(CORPUS)


def test_the_fast_path_is_checked_besides(monkeypatch: pytest.MonkeyPatch) -> None:
    def off(*args: Any) -> Outputs:
        found = right(*args)
        return replace(found, errors=found.errors + 0.3, rounding=0.0)

    right = verify.outputs
    monkeypatch.setattr(verify, "outputs", off)
    with pytest.raises(PrecisionError, match="should not happen"):
        rankone.memorize(CORPUS)


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        ({}, True),
        ({"unavoidable": 1}, False),
        ({"unavoidable": 3}, False),
        ({"max_error": 0.25}, True),
        ({"max_error": 0.375}, False),
        ({"max_error": 0.125, "head_error": 0.125}, True),
        ({"max_error": 0.125, "head_error": 0.25}, False),
        ({"max_error": float("nan")}, False),
    ],
)
def test_what_a_check_holds(values: dict[str, Any], holds: bool) -> None:
    usual: dict[str, Any] = {"tokens": 9, "wrong": 2, "unavoidable": 2, "max_error": 0.0}
    check = Check(**{**usual, **values})
    assert check.holds(0.25) is holds
    assert values.get("max_error") != 0.25 or check.margin == 0.25


def test_checks_of_parts_merge() -> None:
    """Counts are added, errors are the largest; what is not a number in one part stays so."""
    parts = Check(5, 2, 1, 0.125, 0.5, 0.0), Check(7, 1, 0, 0.25, 0.0, 1.5)
    assert Check.merge(parts) == Check(12, 3, 1, 0.25, 0.5, 1.5)
    assert Check.merge(parts[:1]) == parts[0]
    strange = Check(1, 0, 0, float("nan"))
    assert not any(
        Check.merge(order).holds(0.25) for order in ([strange, parts[0]], [parts[0], strange])
    )


def off_by(y: Any) -> Outputs:
    """The outputs of a head of label numbers with this y."""
    labels = CORPUS.label_ids
    return Outputs(np.rint(y) - 1, y, np.abs(y - (labels + 1)), 0.125)


def test_the_check_counts_every_token() -> None:
    labels = CORPUS.label_ids
    found = check_outputs(off_by(labels + 1.0), labels, labels)
    assert found == Check(CORPUS.n_tokens, 0, 0, 0.0, 0.125)
    for token, by in product(range(CORPUS.n_tokens), (-0.75, 0.75)):
        y = labels + 1.0
        y[token] += by
        found = check_outputs(off_by(y), labels, labels)
        assert found == Check(CORPUS.n_tokens, 1, 0, 0.75, 0.125)
        asked = np.where(np.arange(len(labels)) == token, -1, labels)
        errors = np.where(asked < 0, -np.inf, 0.0)
        found = check_outputs(replace(off_by(y), errors=errors), asked, asked)
        assert found == Check(CORPUS.n_tokens, 0, 0, 0.0, 0.125)  # nothing is asked of that token


def test_where_units_are_many_the_sample_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many tokens as the work allows, but never less than the least."""
    network, problem, taken = built(), pose([CORPUS]), list[int]()
    _, fast = verify.check_fast(network, problem)
    units = network.shape.hidden * network.shape.dim

    def choose(_: Any, __: Any, count: int) -> Any:
        taken.append(count)
        return np.arange(1)

    monkeypatch.setattr(verify, "sample_tokens", choose)
    for work in (1.0, 150.9 * units, 1e9 * units):
        monkeypatch.setattr(verify, "WORK", work)
        check_dense(network, problem, fast, np.random.default_rng(0), False, lambda _: None)
    assert taken == [100, 150, 1000]


def test_the_error_of_the_head_is_bounded_by_its_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """(d + 3) eps (2 c |p|^T |z| + c^2), c the largest label, z the largest features of all, with
    the d coordinates that the head reads."""
    network = built()
    monkeypatch.setattr(evaluate, "spans", partial(spans, size=5))
    head = LabelHead(network.head)
    assert head.seen is not None
    evaluator = Evaluator(network, only=head.seen)
    found = verify.outputs(evaluator, head, CORPUS, CORPUS.label_ids)
    y, bound = found.values, found.rounding
    ids = torch.from_numpy(CORPUS.token_ids)
    p = network.head.weight[0].detach().abs() / 2
    largest = 0.0
    for first, last in zip(CORPUS.offsets, CORPUS.offsets[1:], strict=False):
        z = network.features(ids[first:last][None])[0].detach()
        largest = max(largest, float((z.abs() @ p).max()))
    labels, dim = len(network.head.weight), len(head.seen)
    expected = (dim + 3) * 2.0**-52 * (2 * labels * largest + labels**2)
    assert bound == pytest.approx(expected, rel=1e-6, abs=0)
    assert np.abs(y - np.rint(y)).max() < 1e-6
    assert len(y) == CORPUS.n_tokens


@given(
    corpora.corpora,
    st.booleans(),
    st.booleans(),
    st.integers(1, 2),
    st.sampled_from([1, 7, 40, 1 << 20]),
    st.randoms(use_true_random=False),
)
def test_dense_outputs_are_those_of_the_forward_pass(
    corpus: Corpus, causal: bool, positions: bool, head_size: int, cells: int, random: Any
) -> None:
    """Of any tokens, in tables of any size."""
    network = built(corpus, causal=causal, positions=positions, head_size=head_size)
    tokens = sorted(random.sample(range(corpus.n_tokens), random.randint(1, corpus.n_tokens)))
    shares: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "HELD", cells)
        at = np.array(tokens)
        found = dense_outputs(network.expand(), corpus, at, corpus.label_ids[at], shares.append)
    y, labels = found.values, found.labels
    expected = torch.cat(
        [
            network.features(torch.from_numpy(corpus.token_ids[None, a:b]))[0]
            for a, b in zip(corpus.offsets, corpus.offsets[1:], strict=False)
        ]
    )[tokens]
    np.testing.assert_allclose(y, (expected @ network.head.weight[0]).detach() / 2, atol=1e-9)
    assert labels.tolist() == network.head(expected).argmax(-1).tolist()
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=12),
    st.integers(1, 200),
    st.integers(1, 9),
    st.randoms(use_true_random=False),
)
def test_batches_hold_every_token_once_and_no_more_than_fits(
    lengths: list[int], cells: int, head_size: int, random: Any
) -> None:
    corpus = Corpus.from_sentences((["a"] * n, ["x"] * n) for n in lengths)
    tokens = np.array(
        sorted(random.sample(range(corpus.n_tokens), random.randint(1, corpus.n_tokens)))
    )
    seen: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "HELD", cells)
        found = list(batches(corpus, tokens, 1, head_size))
    for sentences, asking in found:
        assert (corpus.sentence_of[tokens[asking]] == sentences[:, None]).all()
        n = corpus.lengths[sentences].max()
        rows, width = asking.shape
        assert width == 1 or rows * width * n <= cells
        assert rows == 1 or rows * max(width, head_size) * n <= cells
        seen += [int(i) for row in asking for i in np.unique(row)]
    assert sorted(seen) == list(range(len(tokens)))
    for (sentences, asking), (_, after) in pairwise(found):  # one row more would not have fitted
        rows, width = asking.shape
        more = max(width, len(np.unique(after[0])), head_size)
        assert (rows + 1) * more * corpus.lengths[sentences].max() > cells


def test_a_sample_has_the_worst_tokens_and_is_in_order() -> None:
    error = np.random.default_rng(1).permutation(2500) / 2500
    worst = np.argsort(error)[-25:].tolist()
    found = sample_tokens(error, np.random.default_rng(0))
    assert set(worst) <= set(found.tolist())
    assert len(found) == len(set(found.tolist())) == 1000
    assert found.tolist() == sorted(found.tolist())
    others = np.setdiff1d(found, worst)
    assert 0.3 < (others < 1250).mean() < 0.7
    for n in (999, 1000, 1001):
        assert len(sample_tokens(error[:n], np.random.default_rng(0))) == min(n, 1000)
    error[:1000] = -np.inf  # nothing is asked of these
    assert sample_tokens(error, np.random.default_rng(0)).min() >= 1000
    assert sample_tokens(error[:1400], np.random.default_rng(0)).tolist() == list(range(1000, 1400))


def test_the_dense_check_is_of_the_tokens_it_says() -> None:
    """Wrong labels, unavoidable ones, errors and differences, each of the sampled tokens only."""
    conflicts = corpora.spelled("ab xy", "ab xz", "ab xy", "ba xy", "cc zy", "cc zy", "cc zx")
    corpus = Corpus.from_sentences(conflicts)  # one label is above the majority's, one below
    problem, network = pose([corpus], length=2), built(corpus)
    _, (fast,) = check_fast(network, problem)
    rng, shares = np.random.default_rng(0), list[float]()
    values = fast.values.copy()
    values[5] += 0.5
    values[2] -= 0.5
    fast = replace(fast, values=values, errors=np.abs(values - (problem.labels + 1)))
    check = check_dense(network, problem, [fast], rng, True, shares.append)
    assert (check.tokens, check.wrong, check.unavoidable) == (14, 2, 2)
    assert check.max_error < 1e-6
    assert check.difference == pytest.approx(0.5, abs=1e-6)
    assert shares[-1] == 1.0
    errors: list[Any] = []

    def choose(error: Any, *_: Any) -> Any:
        errors.append(error)
        return np.array([0, 1, 6])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "sample_tokens", choose)
        some = check_dense(network, problem, [fast], rng, False, shares.append)
    assert (some.tokens, some.wrong, some.unavoidable) == (3, 0, 0)
    assert some.difference < 1e-6
    np.testing.assert_allclose(errors[0], np.isin(np.arange(14), [2, 5]) / 2, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_as_many_hidden_activations_as_there_is_room_for(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, held, right = built(), list[int](), FeedForward.forward

    def forward(self: FeedForward, h: torch.Tensor) -> torch.Tensor:
        held.append(len(h))
        return right(self, h)

    monkeypatch.setattr(FeedForward, "forward", forward)
    monkeypatch.setattr(verify, "HELD", rows * network.shape.hidden + 1)
    dense_outputs(network.expand(), CORPUS, np.arange(CORPUS.n_tokens), CORPUS.label_ids)
    assert max(held) == rows
    assert sum(held) == CORPUS.n_tokens


def test_errors_are_those_of_the_dense_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of the fast path: what is wrong in one token is counted, and measured, there."""
    problem, network = pose([CORPUS], length=5), built()
    fast = off_by(CORPUS.label_ids + 1.0)
    y = fast.values.copy()
    y[7] -= 0.25
    decided = CORPUS.label_ids.copy()
    decided[3] = (decided[3] + 1) % 3
    found = replace(off_by(y), labels=decided, rounding=0.0)
    monkeypatch.setattr(verify, "dense_outputs", lambda *_: found)
    rng = np.random.default_rng(0)
    check = check_dense(network, problem, [fast], rng, True, lambda _: None)
    assert check == Check(CORPUS.n_tokens, 1, 0, 0.25, 0.0, 0.25)
