"""The steps of the construction `line` one by one."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
import rankone
from rankone import Corpus
from rankone.arrays import Floats, Ints
from rankone.construct.line import draw as drawing
from rankone.construct.line.cells import Run, _sorted, lay_dominoes
from rankone.construct.line.draw import free_line, given_line
from rankone.construct.line.readout_units import (
    Changes,
    Line,
    ReadoutUnits,
    changes_on_line,
    merged_readout,
    paper_readout,
)
from rankone.construct.problem import Problem, pose
from rankone.corpus.targets import PartTargets, Targets
from rankone.nn import Rank1Attention

ids_and_labels = st.lists(
    st.tuples(st.integers(-50, 50), st.integers(0, 4)), min_size=1, unique_by=lambda pair: pair[0]
)


def on_line(ids: Floats) -> Line:
    return Line(None, ids, None)  # type: ignore[arg-type]  # readouts look at the ids alone


def asking(labels: Ints, contexts: Ints | None = None) -> Problem:
    each = np.arange(len(labels)) if contexts is None else contexts
    return Problem((), Targets((PartTargets(each, labels),), 0, []))


def read(units: ReadoutUnits, s: Floats) -> Floats:
    """Eq. 3 along the line: the skip connection's s, plus the hidden units."""
    hidden = np.maximum(units.gain * s[:, None] + units.bias, 0.0)
    return s + hidden @ units.out_gain + units.constant


@given(ids_and_labels)
def test_merged_readout_hits_every_label(pairs: list[tuple[int, int]]) -> None:
    s, y = np.array([p[0] for p in pairs]) / 7, np.array([p[1] for p in pairs])
    changes = changes_on_line(s, y)
    units = merged_readout(changes)
    assert units is not None
    np.testing.assert_allclose(read(units, s), y + 1, atol=1e-9)
    assert len(units.gain) == 2 + 2 * len(changes.left)
    assert units.min_gap == min(changes.right - changes.left, default=math.inf)
    ordered = y[np.argsort(s)]
    assert len(changes.left) == (ordered[1:] != ordered[:-1]).sum()


@given(ids_and_labels)
def test_paper_readout_hits_every_label_with_a_unit_each(pairs: list[tuple[int, int]]) -> None:
    s, y = np.array([p[0] for p in pairs]) / 7, np.array([p[1] for p in pairs])
    units = paper_readout(on_line(s), asking(y))
    assert units is not None
    np.testing.assert_allclose(read(units, s), y + 1, atol=1e-9)
    assert len(units.gain) == len(s)
    assert units.min_gap == min(np.diff(np.sort(s)), default=math.inf)


def test_the_bend_before_the_first_id_is_no_gap() -> None:
    """It lies 1 + |s| before it, here less than the ids are apart."""
    units = paper_readout(on_line(np.array([0.5, 8.0, 3.5])), asking(np.array([0, 1, 0])))
    assert units is not None
    assert units.min_gap == 3.0
    assert -units.bias[0] == -1.0


@pytest.mark.parametrize(
    ("at", "jump", "share"),
    [
        (0.0, 1, 1 / 32),  # narrow where rounding allows it
        (-(2.0**24), 1, 2.0**-28 / 1e-7),  # so that rounding puts the output off by 1e-7
        (-(2.0**24), 3, 3 * 2.0**-28 / 1e-7),
        (-(2.0**40), 1, 1 / 2),  # never wider than half of the gap
    ],
)
def test_how_much_of_a_gap_a_ramp_takes(at: float, jump: int, share: float) -> None:
    """In its middle: all the way up from one bend to the other."""
    left, right = np.array([at - 1.0]), np.array([at])
    units = merged_readout(Changes(left, right, np.array([1]), np.array([1 + jump]), 1))
    assert units is not None
    rise, fall = -units.bias[2:]
    size = 2.0**24 + 1 if at == -(2.0**24) else 0.0
    share *= size / 2.0**24 if size else 1.0
    assert fall - rise == pytest.approx(share, rel=1e-6)
    assert rise + fall == pytest.approx(2 * at - 1.0, rel=1e-14)
    assert units.out_gain[2:] == pytest.approx([jump / share, -jump / share], rel=1e-6)


def test_two_contexts_on_one_number_have_no_readout() -> None:
    s, y = np.array([1.0, 1.0, 2.0]), np.array([0, 1, 0])
    assert merged_readout(changes_on_line(s, y)) is None
    assert paper_readout(on_line(s), asking(y)) is None
    assert paper_readout(on_line(s), asking(np.array([1, 1, 0]), np.array([0, 0, 2]))) is not None


def drift(s: Floats, y: Floats, out_gain: Floats, first_bend: float) -> float:
    """The largest error of the labels, from exact sums of the weights as they are stored."""
    bends = [Fraction(b) for b in (first_bend, *s[:-1])]
    f = slope = Fraction(0)
    worst = 0.0
    for i, w in enumerate(out_gain):
        slope += Fraction(w)
        f += slope * (Fraction(s[i]) - bends[i])
        worst = max(worst, abs(float(f + Fraction(s[i])) - y[i]))
    return worst


def test_no_drift_on_a_long_steep_line() -> None:
    """Steep clusters far apart: weights that are plain differences of slopes drift away."""
    rng = np.random.default_rng(0)
    s = np.sort((np.arange(-100, 0) * 1e5 + rng.random((30, 100)) * 1e-2).reshape(-1))
    y = rng.integers(0, 9, len(s))
    units = paper_readout(on_line(s), asking(y))
    assert units is not None
    plain = np.diff(np.diff(y + 1 - s, prepend=0) / np.diff(s, prepend=s[0] - 1), prepend=0)
    assert drift(s, y + 1.0, units.out_gain, -units.bias[0]) < 0.01
    assert drift(s, y + 1.0, plain, s[0] - 1) > 0.01


pieces = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=40)


@given(pieces, st.integers(0, 4))
def test_dominoes_are_all_laid_and_few_ends_disagree(ends: list[tuple[int, int]], end: int) -> None:
    row = lay_dominoes([(i, a, b) for i, (a, b) in enumerate(ends)], end)
    assert sorted(row) == list(range(len(ends)))
    lefts, rights = [ends[i][0] for i in row], [end, *(ends[i][1] for i in row)]
    disagree = sum(a != b for a, b in zip(rights, lefts, strict=False))
    surplus = Counter(a for a, _ in ends)
    surplus.subtract(Counter(b for _, b in ends))
    must = sum(max(0, n) for n in surplus.values())
    assert disagree <= must + 5  # one for each end: its pieces may hang together with no others


@pytest.mark.parametrize("words", [300, (1 << 16) - 1, 1 << 16, (1 << 16) + 1])
def test_tokens_are_sorted_by_word_then_along_the_line(words: int) -> None:
    """As many words with several labels as numbers of 16 bits can count, and more; and others."""
    rng = np.random.default_rng(0)
    tokens = rng.permutation(np.concatenate([np.arange(words + 5), np.arange(words + 5)]))
    run = Run(tokens, np.arange(len(tokens)), rng.random(len(tokens)))
    several = np.ones(words + 5, dtype=bool)
    several[[0, 7, 8, 100, words + 4]] = False
    found = _sorted(run, several, np.flatnonzero(several))
    kept = np.flatnonzero(several[tokens])
    order = kept[np.lexsort((run.within[kept], tokens[kept]))]
    assert np.array_equal(found.tokens, tokens[order])
    assert np.array_equal(found.labels, run.labels[order])
    assert np.array_equal(found.within, run.within[order])


def lines(corpus: Corpus, causal: bool, all_apart: bool) -> list[Line]:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((len(corpus.vocabulary), 4))
    how: Any = {"length": corpus.longest, "causal": causal, "vectors": vectors}
    problem = pose([corpus], readout="paper" if all_apart else "merged", **how)
    return [free_line(problem, rng), given_line(problem, rng)]


@given(corpora.corpora, st.booleans(), st.booleans())
def test_the_line_is_what_the_attention_layer_puts_out(
    corpus: Corpus, causal: bool, all_apart: bool
) -> None:
    """The ids computed in one dimension equal direction^T F(X + E) of the torch module."""
    import torch

    for line in lines(corpus, causal, all_apart):
        attention, mapping = line.mapping.attention(), line.mapping
        assert isinstance(attention, Rank1Attention)
        for j in range(corpus.n_sentences):
            at = slice(corpus.offsets[j], corpus.offsets[j + 1])
            z = mapping.table[corpus.token_ids[at]]
            if mapping.positions is not None:
                z = z + mapping.positions[: len(z)]
            mask = torch.ones(len(z), len(z), dtype=torch.bool).tril() if causal else None
            ids = attention(torch.from_numpy(z), mask).detach().numpy() @ mapping.direction
            np.testing.assert_allclose(ids, line.ids[at], rtol=1e-12, atol=1e-11)
        assert mapping.direction @ mapping.write == pytest.approx(1.0, rel=1e-14)


@given(corpora.corpora, st.booleans())
def test_cells_keep_tokens_apart_and_left_of_zero(corpus: Corpus, all_apart: bool) -> None:
    line = lines(corpus, False, all_apart)[0]
    places = np.sort(line.mapping.table[:, 0]) - 2
    width = places[1] - places[0]
    cell = (line.ids - places[0]) // width
    assert line.ids.max() < 0
    assert len(set(zip(cell, corpus.token_ids, strict=True))) == len(set(cell))
    assert np.allclose(np.diff(places), width)


@pytest.mark.parametrize("all_apart", [False, True])
def test_labels_change_in_the_middle_between_two_cells(all_apart: bool) -> None:
    """With a guard of 1/2 on either side, so that no sentence carries a token into the ramp."""
    corpus = Corpus.from_sentences(corpora.spelled("abc xyx", "cab xxy", "d z"))  # all have one
    line = lines(corpus, False, all_apart)[0]
    begins = np.sort(line.mapping.table[:, 0]) - 2
    borders = (line.changes.left + line.changes.right) / 2
    assert len(borders) >= 2
    assert set(borders) <= set(begins)
    assert (line.changes.right - line.changes.left == 1).all()
    own, width = line.mapping.table[-1, 0] - 2, begins[1] - begins[0]
    assert line.unknown == (own + 0.5, own + width - 0.5)


def test_given_directions_let_positions_span_as_much_as_tokens() -> None:
    """Else the position would drown the token, or the other way round."""
    corpus = rankone.builtin_corpus(50)
    rng = np.random.default_rng(2)
    vectors = rng.standard_normal((len(corpus.vocabulary), 4))
    mapping = given_line(pose([corpus], length=corpus.longest, vectors=vectors), rng).mapping
    assert mapping.positions is not None
    for v in (mapping.v1, mapping.direction):
        assert np.std(vectors @ (v - v.mean())) == pytest.approx(1.0)  # v without (1, ..., 1)
    assert mapping.positions[-1] @ mapping.v1 == pytest.approx(1.0)
    shares = 4.0 ** -np.arange(12)
    assert np.abs(mapping.positions[-1] @ mapping.direction / shares - 1).min() < 1e-6
    scores = np.abs(mapping.project([corpus], mapping.v2)).max()
    assert 1 <= scores * np.ptp(mapping.project([corpus], mapping.v1)) <= 16


def given_problem(readout: Any = "merged", *, positions: bool = True) -> Problem:
    corpus = rankone.builtin_corpus(50)
    vectors = np.random.default_rng(2).standard_normal((len(corpus.vocabulary), 4))
    length = corpus.longest if positions else 0
    return pose([corpus], positions=positions, length=length, vectors=vectors, readout=readout)


def with_shares(problem: Problem, shares: Floats) -> Line:
    """Given vectors, the same draw, and only these shares to choose from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "SHARES", shares)
        return given_line(problem, np.random.default_rng(3))


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.25, 4.0**-11])
def test_context_takes_its_share_of_the_line(share: float, positions: bool) -> None:
    """As standard deviations, of what attention adds and of what was there before."""
    problem = given_problem(positions=positions)
    line = with_shares(problem, np.array([share]))
    own = line.mapping.project(problem.parts, line.mapping.direction)
    assert np.std(line.ids - own) == pytest.approx(share * np.std(own), rel=1e-8)


def test_context_that_is_nearly_the_same_for_all_is_not_blown_up() -> None:
    """One word in one context: the standard deviation is 0, and a thousandth of the size is taken
    instead."""
    corpus = Corpus.from_sentences(corpora.spelled("a x"))
    line = with_shares(pose([corpus], vectors=np.array([[0.5, -3.0]])), np.array([0.25]))
    own = line.mapping.project([corpus], line.mapping.direction)
    assert np.abs(line.ids - own) == pytest.approx(250.0)


def off_by(left: Floats, right: Floats, jump: Floats) -> float:
    """2^-52 |s| times the slopes of ramps over half of each gap, added up like a random walk."""
    slopes = 2 * jump / (right - left)
    return float(2.0**-52 * max(np.abs(left).max(), np.abs(right).max()) * np.sqrt(slopes @ slopes))


@pytest.mark.parametrize("readout", ["merged", "paper"])
def test_of_all_shares_the_best_is_taken(readout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fewest units that rounding allows, or, where all contexts must lie apart or no share is
    good enough, the smallest error."""
    problem, shares = given_problem(readout), 4.0 ** -np.arange(12)
    each, errors = [with_shares(problem, shares[i : i + 1]) for i in range(12)], []
    for line in each:
        if readout == "paper":
            s = np.sort(line.ids[problem.contexts])
            errors.append(off_by(s[:-1], s[1:], np.ones(len(s) - 1)))
        else:
            changes = line.changes
            jump = np.abs(changes.after - changes.before)
            errors.append(off_by(changes.left, changes.right, jump))
            assert drawing._rounding(changes) == pytest.approx(errors[-1], rel=1e-12)
    units = [len(line.changes.left) for line in each]
    assert len(set(units)) > 4
    assert len(set(errors)) == 12
    for limit in (0.0, *np.sort(errors)[:-1], 1.0):
        monkeypatch.setattr(drawing, "ROUNDING", limit * (1 + 1e-12))
        good = [i for i in range(12) if errors[i] <= limit]
        fewest = min(good, key=units.__getitem__, default=None)
        if fewest is None or readout == "paper":
            fewest = int(np.argmin(errors))
        assert np.array_equal(with_shares(problem, shares).ids, each[fewest].ids)


def test_a_direction_on_which_tokens_cannot_differ_is_only_scaled() -> None:
    """Vectors that are multiples of (1, ..., 1), on which positions lie too."""
    vectors, draw = np.outer([1.0, -3.0, 2.0], np.ones(4)), np.array([2.0, 1.0, 0.5, 1.5])
    tilted = drawing._tilt(draw, vectors, 8.0, 0.25)
    np.testing.assert_allclose(tilted, draw / 15, rtol=1e-15)
    alone = drawing._tilt(draw, vectors, 0.0, 0.25)  # without positions they can
    np.testing.assert_allclose(alone, draw / np.std(5 * vectors[:, 0]), rtol=1e-15)


def test_tokens_with_most_contexts_lie_nearest_to_zero() -> None:
    sentences = [(["the", f"w{i}"], [f"L{i % 2}", f"L{i % 2}"]) for i in range(40)]
    corpus = Corpus.from_sentences(sentences)
    line = lines(corpus, False, False)[0]
    assert line.mapping.table[:, 0].argmax() == corpus.vocabulary.index("the")


def test_given_positions_are_the_repaired_encoding() -> None:
    """Eq. 48 repaired: E_k = k (4 r_max / sqrt d) 1, so no two (token, position) come close."""
    corpus = rankone.builtin_corpus(50)
    vectors = np.random.default_rng(1).standard_normal((len(corpus.vocabulary), 2))
    network = rankone.memorize(corpus, vectors=vectors).model.network
    assert network.positions is not None
    e = network.positions.detach().numpy()
    r_max = np.linalg.norm(vectors, axis=1).max()
    k = np.arange(1, corpus.longest + 1)
    np.testing.assert_allclose(e, np.outer(k, np.full(2, 4 * r_max / np.sqrt(2))), rtol=1e-12)
    epsilon = min(np.linalg.norm(a - b) for i, a in enumerate(vectors) for b in vectors[:i])
    shifted = (vectors[:, None] + e).reshape(-1, 2)
    gaps = np.linalg.norm(shifted[:, None] - shifted, axis=-1) + np.eye(len(shifted)) * 1e9
    assert gaps.min() >= epsilon - 1e-12
