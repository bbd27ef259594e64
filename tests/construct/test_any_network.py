"""Verification of networks of any depth, any heads and any head, against a literal evaluation."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import nn

import corpora
import dense_truth
import rankone
from rankone import Corpus
from rankone.construct import verify
from rankone.construct.constructions import CONSTRUCTIONS, Construction
from rankone.construct.heads import LabelHead, leads
from rankone.construct.problem import Draft, Problem
from rankone.construct.verify import check_dense, check_fast
from rankone.corpus.targets import PartTargets, Targets
from rankone.errors import PrecisionError
from rankone.nn import Architecture, TokenClassifier

SENTENCES = corpora.spelled("abcab xyzyx", "bacba yyxzx", "cab zxy", "aabb xxyz", "b z", "abc xzz")


@st.composite
def architectures(draw: st.DrawFn, corpus: Corpus) -> Architecture:
    attention = draw(st.sampled_from(["rank1", "softmax", "hardmax"]))
    rank1 = attention == "rank1"
    return Architecture(
        len(corpus.vocabulary) + 1,
        len(corpus.label_names),
        dim=draw(st.integers(1, 4)),
        hidden=draw(st.integers(0, 5)),
        positions=draw(st.sampled_from([0, corpus.longest, corpus.longest + 2])),
        depth=draw(st.integers(1, 3)),
        attention=attention,
        heads=1 if rank1 else draw(st.integers(1, 3)),
        head_size=1 if rank1 else draw(st.integers(1, 2)),
        feedforward=draw(st.sampled_from(["rank1", "dense"])),
        causal=draw(st.booleans()),
    )


def asking(corpus: Corpus, wanted: Any) -> Problem:
    """For these labels, whether or not they are those of the file."""
    targets = PartTargets(np.arange(corpus.n_tokens), wanted)
    errors = int(((wanted != corpus.label_ids) & (corpus.label_ids >= 0)).sum())
    return Problem((corpus,), Targets((targets,), errors, []))


@torch.no_grad()
def literal(network: TokenClassifier, corpus: Corpus) -> Any:
    """The logits of every token, one sentence after the other."""
    bounds = zip(corpus.offsets, corpus.offsets[1:], strict=False)
    each = [network(torch.from_numpy(corpus.token_ids[None, a:b]))[0] for a, b in bounds]
    return torch.cat(each).numpy()


@given(st.data(), corpora.corpora, st.sampled_from([1, 60, 1 << 20]))
def test_labels_leads_and_errors_are_those_of_the_logits(
    data: st.DataObject, corpus: Corpus, held: int
) -> None:
    # Built here: what is imported on the way may touch `random`, and no strategy may do that.
    shape, seed = data.draw(architectures(corpus)), data.draw(st.integers(0, 1 << 20))
    network = dense_truth.randomize(TokenClassifier(shape), seed)
    logits = literal(network, corpus)
    ordered = np.sort(logits, axis=1)
    if len(corpus.label_names) > 1:  # which label it is must not depend on rounding
        assume((ordered[:, -1] - ordered[:, -2]).min() > 1e-9)
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    wanted = random.integers(0, len(corpus.label_names), corpus.n_tokens)
    unasked = random.random(corpus.n_tokens) < data.draw(st.sampled_from([0.0, 0.3]))
    wanted[unasked] = -1
    corpus = replace(corpus, label_ids=np.where(unasked, -1, corpus.label_ids))
    assume(not unasked.all())
    expected = []
    for token in np.flatnonzero(~unasked).tolist():
        others = np.delete(logits[token], wanted[token])
        lead = logits[token, wanted[token]] - others.max() if len(others) else 1.0
        expected.append((1 - lead) / 2)
    problem = asking(corpus, wanted)
    fast, outputs = check_fast(network, problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "HELD", held)
        rng = np.random.default_rng(0)
        full = check_dense(network, problem, outputs, rng, True, lambda _: None)
    assert not LabelHead(network.head).numbered or len(corpus.label_names) == 1
    np.testing.assert_allclose(outputs[0].errors[~unasked], expected, rtol=1e-9, atol=1e-9)
    decided = logits.argmax(1)
    assert outputs[0].labels.tolist() == decided.tolist()
    wrong = int((decided != corpus.label_ids)[~unasked].sum())
    assert (fast.wrong, full.wrong) == (wrong, wrong)
    assert (fast.unavoidable, full.unavoidable) == (problem.targets.unavoidable,) * 2
    assert (fast.tokens, full.tokens) == (corpus.n_tokens, int((~unasked).sum()))
    for check in (fast, full):
        assert check.max_error == pytest.approx(max(expected), rel=1e-9, abs=1e-9)
    assert full.difference < 1e-9


@given(st.integers(1, 40), st.integers(1, 4), st.integers(0, 99), st.sampled_from([1, 30, 1 << 22]))
def test_how_a_head_is_read(labels: int, dim: int, seed: int, held: int) -> None:
    """A head of label numbers by y, any other by its logits; both agree where both can be had."""
    rng = np.random.default_rng(seed)
    head, p, number = nn.Linear(dim, labels).double(), rng.normal(size=dim), np.arange(labels) + 1.0
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(2 * number[:, None] * p))
        head.bias.copy_(torch.from_numpy(-(number**2)))
    z = rng.normal(size=(dim, 50))
    z *= rng.uniform(1, max(labels, 2), 50) / (p @ z)  # so that y lies between two labels
    wanted = np.clip(np.rint(p @ z).astype(int), 1, labels) - 1
    wanted[rng.random(50) < 0.2] = -1
    read = LabelHead(head).read(z, wanted)
    assert LabelHead(head).numbered
    np.testing.assert_allclose(read.values, p @ z)
    with torch.no_grad():
        head.bias[-1] += 1e-9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankone.construct.heads.LOGITS", held)
        other = LabelHead(head).read(z, wanted)
    assert not LabelHead(head).numbered
    inner = (wanted > 0) & (wanted < labels - 1)
    np.testing.assert_allclose(read.errors[inner], other.errors[inner], rtol=1e-6, atol=1e-6)
    assert (read.errors == -np.inf).tolist() == (wanted < 0).tolist()
    np.testing.assert_array_equal(read.labels[inner], other.labels[inner])
    if labels > 2:
        assert read.rounding == pytest.approx(other.rounding, rel=1e-6)


@pytest.mark.parametrize("held", [30, 1 << 22])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_how_a_head_of_codes_is_read(
    held: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the distance from the wanted code; a lead is no less than what that leaves."""
    monkeypatch.setattr("rankone.construct.heads.LOGITS", held)
    rng = np.random.default_rng(0)
    codes = np.unique(rng.integers(-4, 4, (40, 2)), axis=0).astype(float)
    head = nn.Linear(5, len(codes), dtype=torch.float32 if dtype is np.float32 else torch.float64)
    with torch.no_grad():
        head.weight.zero_()
        head.weight[:, 1::2] = torch.from_numpy(2 * codes).to(head.weight.dtype)
        head.bias.copy_(torch.from_numpy(-(codes**2).sum(1)))
    wanted = rng.integers(len(codes), size=300)
    z = rng.normal(size=(5, 300)).astype(dtype)
    z[1::2] = codes[wanted].T + rng.uniform(-0.7, 0.7, (2, 300))
    logits = head.weight.detach().double().numpy() @ z + head.bias.detach().numpy()[:, None]
    assert LabelHead(head).seen.tolist() == [1, 3]
    found, lead = LabelHead(head).read(z[1::2], wanted), leads(logits, wanted)
    away = np.abs(z[1::2] - codes[wanted].T).max(0)
    assert (found.labels == logits.argmax(0)).all()
    assert found.errors == pytest.approx(away, rel=1e-6)
    near = found.errors < 0.5
    assert near.any()
    assert not near.all()
    assert (lead[near] >= 1 - 2 * found.errors[near] - 1e-5).all()
    assert found.labels[near].tolist() == wanted[near].tolist()
    exact = (np.abs(head.weight.detach().numpy()) @ np.abs(z)).T + (codes**2).sum(1)
    bound = found.rounding / LabelHead(head).roundings
    assert exact.max() * (1 - 1e-12) <= bound <= 4 * exact.max()
    again = LabelHead(head).read_logits(torch.from_numpy(z.T), torch.from_numpy(logits.T), wanted)
    assert again.values == pytest.approx(found.values, abs=1e-6)
    assert (again.labels == found.labels).all()
    asked = np.where(rng.random(300) < 0.3, -1, wanted)
    assert (LabelHead(head).read(z[1::2], asked).errors == -np.inf).tolist() == (asked < 0).tolist()


def test_no_tokens_are_read_too() -> None:
    found = LabelHead(nn.Linear(3, 4).double()).read(np.empty((3, 0)), np.empty(0, dtype=int))
    assert (len(found.labels), len(found.values), len(found.errors)) == (0, 0, 0)
    assert found.rounding == 0.0


def test_leads_of_what_is_no_number_are_none() -> None:
    logits = np.array([[1.0, np.nan, 5.0, np.inf], [3.0, 2.0, np.nan, np.inf]])
    found = leads(logits, np.array([0, 1, 0, 1]))
    assert found[0] == -2.0
    assert np.isnan(found[1:]).all()
    alone = leads(logits[:1], np.zeros(4, dtype=int))
    assert np.isnan(alone).tolist() == [False, True, False, True]
    assert alone[0] == 1.0
    assert leads(logits[:, :1], np.array([-1])).tolist() == [2.0]  # of the largest


@dataclass(frozen=True)
class BruteForce:
    """A draft as small as can be."""

    network: TokenClassifier
    min_gap: float = 1.0

    def hopeful(self, before: BruteForce | None) -> bool:
        return before is None

    def refusal(self, draws: int) -> PrecisionError:
        return PrecisionError(f"gave up after {draws}")


@torch.no_grad()
def brute_force(problem: Problem, scale: float, seed: int) -> TokenClassifier:
    """Two blocks that do nothing: a row of its own for every word, and a head that reads it."""
    corpus = problem.corpus
    words, labels = len(corpus.vocabulary) + 1, len(corpus.label_names)
    shape = Architecture(
        words, labels, dim=words, hidden=2, depth=2, attention="softmax", heads=2, head_size=3
    )
    network = dense_truth.randomize(TokenClassifier(shape), seed)
    network.table.copy_(torch.eye(words))
    for name in ("attention.output", "feedforward.weight2", "feedforward.bias2"):
        for i in range(2):
            network.get_parameter(f"blocks.{i}.{name}").zero_()
    network.head.weight.clamp_(-0.1, 0.1)
    network.head.bias.zero_()
    rows = np.unique(np.stack([problem.labels, corpus.token_ids]), axis=1)
    network.head.weight[rows[0], rows[1]] += scale
    return network


def register(patch: pytest.MonkeyPatch, scale: float) -> None:
    def draw(problem: Problem, rng: np.random.Generator) -> Draft:
        return BruteForce(brute_force(problem, scale, int(rng.integers(1 << 30))))

    patch.setitem(CONSTRUCTIONS, "brute force", Construction("none", "none", draw))


WORDS = corpora.spelled("ab xy", "cba zyx", "d z")


def test_a_new_construction_needs_no_more_than_a_place_in_the_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    register(monkeypatch, 1.0)
    settings: Any = {"construction": "brute force", "positions": False}
    result = rankone.memorize(WORDS, verify="dense", **settings)
    assert result.ok
    assert result.settings["construction"] == "brute force"
    assert (result.wrong, result.hidden_units, result.draws, result.min_gap) == (0, 4, 1, 1.0)
    assert 0.35 < result.margin < 0.65  # half of a lead of 1, give or take 0.2
    assert result.dense_error == pytest.approx(result.max_error)
    result.save(tmp_path)
    loaded = rankone.load(tmp_path)
    assert loaded.predict([words for words, _ in WORDS]) == [labels for _, labels in WORDS]


def test_a_construction_that_is_wrong_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, 0.05)  # labels are drowned by what the head was drawn with
    settings: Any = {"construction": "brute force", "positions": False}
    with pytest.raises(PrecisionError, match="gave up after 2"):
        rankone.memorize(WORDS, **settings)


def test_leads_of_what_is_wanted_or_else_of_the_largest() -> None:
    logits = np.array([[5.0, 5.0, 5.0], [3.0, 3.0, 3.0], [4.0, 4.0, 4.0]])
    assert leads(logits, np.array([0, 1, -1])).tolist() == [1.0, -2.0, 1.0]
    assert leads(logits[:1], np.array([0, -1, 0])).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("depth", [1, 2])
def test_whole_sentences_are_counted_where_a_block_runs_over_them(
    depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded by the scores of whole sentences from the second block on."""
    corpus = Corpus.from_sentences([(["w0", "w1"], ["L0", "L1"])])
    network = TokenClassifier(Architecture(3, 2, dim=2, hidden=2, depth=depth))
    seen, batches = [], verify.batches

    def watched(*given: Any, whole: bool) -> Any:
        seen.append(whole)
        return batches(*given, whole=whole)

    monkeypatch.setattr(verify, "batches", watched)
    verify.dense_outputs(network.expand(), corpus, np.arange(2), corpus.label_ids)
    assert seen == [depth > 1]


def test_pieces_of_the_dense_network_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small numbers kept between large activations keep the memory of those from being reused: a
    gigabyte, for a million tokens."""
    corpus = Corpus.from_sentences([([f"w{i % 3}" for i in range(40)], ["L0", "L1"] * 20)])
    network = TokenClassifier(Architecture(4, 2, dim=2, hidden=8))
    pieces, read = list[weakref.ref[Any]](), LabelHead.read_logits

    def watched(*given: Any) -> Any:
        assert all(piece() is None for piece in pieces[:-1])
        found = read(*given)
        pieces.append(weakref.ref(found))
        return found

    monkeypatch.setattr(LabelHead, "read_logits", watched)
    monkeypatch.setattr(verify, "HELD", 64)
    verify.dense_outputs(network.expand(), corpus, np.arange(40), corpus.label_ids)
    assert len(pieces) > 3
