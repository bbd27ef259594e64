"""What float64 cannot tell apart: which contexts, by how much, with what odds, and what helps."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

import corpora
import rankone
from rankone import Corpus, choices
from rankone.construct.line import closeness as module
from rankone.construct.line.closeness import Closeness, closeness, refusal
from rankone.construct.line.draw import free_line
from rankone.construct.line.readout_units import Changes, Line, merged_readout
from rankone.construct.memorize import DRAWS
from rankone.construct.problem import RESERVE, Problem, pose
from rankone.corpus.targets import PartTargets, Targets
from rankone.errors import PrecisionError

EPS = 2.0**-52


def text(tokens: int, words: int, seed: int = 0) -> Corpus:
    """Frequent and rare words, each labelled with the next: as many labels as words."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, words + 1)
    drawn = [f"w{i}" for i in rng.choice(words, tokens + 1, p=share / share.sum())]
    return Corpus.from_sentences(
        (drawn[i : i + 20], drawn[i + 1 : i + 21]) for i in range(0, tokens, 20)
    )


def on_line(
    ids: list[float], labels: list[int], readout: choices.Readout = "merged"
) -> tuple[Line, Problem]:
    s, y = np.array(ids), np.array(labels)
    at = np.flatnonzero(y[1:] != y[:-1])
    changes = Changes(s[at], s[at + 1], y[at] + 1, y[at + 1] + 1, int(y[0]) + 1)
    line = Line(None, s, changes)  # type: ignore[arg-type]  # the mapping is not looked at
    targets = Targets((PartTargets(np.arange(len(s)), y),), 0, [])
    return line, Problem((), targets, readout=readout)


def test_the_closest_pair_is_the_one_that_has_least_of_what_it_needs() -> None:
    """Not the smallest gap: one further from 0, or with a larger change of label, needs more."""
    found = closeness(*on_line([-8.0, -7.0, -1.0, -0.75], [0, 4, 4, 5]))
    assert (found.left, found.right) == (0, 1)
    assert (found.gap, found.needed) == (1.0, EPS * 8 * 4 / RESERVE)
    assert (found.too_close, found.changes) == (0, 2)
    ratios = np.array([1 / (EPS * 8 * 4 * 4), 0.25 / (EPS * 4)])
    assert found.rate == pytest.approx(1 / ratios.max(), abs=0)
    assert found.expected == pytest.approx(RESERVE * np.sqrt((1 / ratios**2).sum()), abs=0)


def test_all_neighbours_count_for_the_readout_of_the_paper() -> None:
    found = closeness(*on_line([-8.0, -7.0, -6.5, -0.75], [0, 4, 4, 5], "paper"))
    assert (found.left, found.right, found.changes) == (0, 1, 3)
    assert found.needed == EPS * 8 * (11 - 8) / RESERVE  # from 0 + 8 to 4 + 7
    found = closeness(*on_line([-8.0, -7.0, -7.0, -0.75], [0, 4, 4, 5], "paper"))
    assert (found.left, found.right, found.gap, found.too_close) == (1, 2, 0.0, 1)
    assert found.needed == EPS * 7 / RESERVE  # as if it went through 1 at least


def test_two_contexts_at_one_place_and_a_line_without_changes() -> None:
    found = closeness(*on_line([-2.0, -2.0, -1.0], [0, 1, 1]))
    assert (found.left, found.right, found.gap, found.too_close) == (0, 1, 0.0, 1)
    assert found.expected > 1e100
    at_zero = closeness(*on_line([0.0, 0.0], [0, 1]))
    assert at_zero.too_close == 1
    for readout in ("merged", "paper"):
        alone = closeness(*on_line([1.0], [0], readout))  # type: ignore[arg-type]
        assert alone == Closeness(0, 0, inf, 0.0, 0, 0, 0.0, 0.0)
        assert alone.odds == 1.0


def test_a_border_between_two_cells_belongs_to_no_token() -> None:
    line, problem = on_line([-2.0, -1.0], [0, 1])
    border = Changes(np.array([-1.5]), np.array([-1.5 + 1e-15]), np.array([1]), np.array([2]), 1)
    found = closeness(replace(line, changes=border), problem)
    assert found.left == found.right
    assert found.too_close == 1


def some(**values: Any) -> Closeness:
    usual = {"left": 0, "right": 1, "gap": 1e-9, "needed": 1e-8, "too_close": 1, "changes": 30}
    return Closeness(**{**usual, "expected": 1.0, "rate": 0.5, **values})


def test_odds_are_those_of_levys_distribution() -> None:
    """1 / t^2 summed over a Poisson process of rate 0.5: how often is it below 1?"""
    assert some(rate=0.0).odds == 1.0
    assert some(rate=1.0).odds == pytest.approx(0.2101, abs=1e-4)
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.exponential(1 / 0.5, (20_000, 400)), axis=1)
    assert (np.square(1 / t).sum(1) < 1).mean() == pytest.approx(some(rate=0.5).odds, abs=0.01)


def test_when_another_draw_is_worth_it() -> None:
    large, small = module.QUICK + 1, module.QUICK
    assert some(rate=1.2).hopeful(None, large)
    assert not some(rate=1.5).hopeful(None, large)
    assert some(rate=1.5).hopeful(None, small)
    assert some().hopeful(some(left=3), large)
    assert some().hopeful(some(right=3), large)
    assert some(left=4, right=5).hopeful(some(), large)
    assert not some().hopeful(some(gap=2e-9), large)
    assert some(gap=1e-7).hopeful(some(), large)


def test_how_many_tokens_fit() -> None:
    assert some(rate=0.1).fitting(12_345) == 12_000
    assert some(rate=54.0).fitting(12_345) == 1_200
    assert some(rate=0.54 * 4).fitting(26) == 13
    assert some(rate=1e150).fitting(10**6) == 0


def test_odds_agree_with_what_is_seen() -> None:
    """A long table of positions makes the line long, and with it the rounding errors.

    Units are added one after the other. BLAS adds in an order of its own, which differs from one
    processor to the next, and with it the error, by a factor of five or so.
    """
    corpus, held, expected = text(3_000, 1_500), 0, 0.0
    problem = pose([corpus], causal=True, length=1 << 21)
    for draw in range(12):
        rng = np.random.default_rng(draw)
        line = free_line(problem, rng)
        found = closeness(line, problem)
        units = merged_readout(line.changes)
        assert units is not None
        y = np.zeros(corpus.n_tokens)
        for gain, bias, out_gain in zip(units.gain, units.bias, units.out_gain, strict=True):
            y += out_gain * np.maximum(gain * line.ids + bias, 0)
        error = np.abs(line.ids + y + units.constant - (problem.labels + 1)).max()
        assert 0.2 * found.expected < error < 3 * found.expected
        held += error < RESERVE
        expected += found.odds
    assert abs(held - expected) < 5


def test_hopeless_after_the_first_draw() -> None:
    """The message names both contexts and says by how much; remedies fit what was used."""
    corpus = text(6_000, 2_000)
    with pytest.raises(PrecisionError) as caught:
        rankone.memorize(corpus, max_length=1 << 23)
    what, remedy = caught.value.what, caught.value.remedy
    assert "apart after 1 draw: 'w" in what
    assert "apart on the line of context ids and need " in what
    assert "a draw succeeds with a probability of " in what
    assert f"leave max_length out (the longest sentence has {corpus.longest} tokens)" in remedy
    assert "tokens at a time" in remedy
    assert "seed" not in remedy
    assert "vectors" not in remedy
    fewer = int(remedy.split("at most about ")[1].split(" tokens")[0].replace(",", ""))
    assert rankone.memorize(text(fewer, 2_000), max_length=1 << 23).ok


def test_the_two_contexts_of_the_message_are_those_of_the_file() -> None:
    vectors = np.array([[1.0], [1e60], [np.nextafter(1.0, 2.0)]])  # of a, c, b
    corpus = Corpus.from_sentences(corpora.spelled("ac xy", "bc zy", "abc xxy", "bac zzx"))
    with pytest.raises(PrecisionError) as caught:
        rankone.memorize(corpus, vectors=vectors)
    message = str(caught.value)
    assert f"after {DRAWS} draws: 'a' (" in message
    assert "labelled 'x') and 'b' (" in message
    assert "move the vectors of 'a' and 'b' apart, or leave vectors out" in message


def error(found: Closeness, **settings: Any) -> PrecisionError:
    corpus = Corpus.from_sentences(corpora.spelled("ab xy", "ba yy"))
    return refusal(found, pose([corpus], **{"length": 2, **settings}), 2)


@pytest.mark.parametrize(
    ("found", "settings", "remedy"),
    [
        (some(), {}, "try another seed"),
        (
            some(),
            {"vectors": np.eye(2)},
            "move the vectors of 'a' and 'b' apart, or leave vectors out",
        ),
        (some(right=3), {"vectors": np.eye(2)}, "leave vectors out"),
        (some(), {"readout": "paper"}, "use the merged readout, or try another seed"),
        (some(), {"length": 3}, r"leave max_length out \(the longest sentence has 2 tokens\), or"),
        (some(rate=2.0), {}, "memorize at most about 2 tokens at a time, or try another seed"),
        (some(rate=2.05), {}, "or try another seed$"),  # odds of 1.02 in 100
        (some(rate=2.07), {}, "tokens at a time$"),  # 0.95 in 100
        (some(rate=5.0), {"length": 3}, r"2 tokens\)$"),
        (some(rate=1e150), {}, "^try another seed$"),
        (some(expected=RESERVE / 5), {}, "this should not happen"),
    ],
)
def test_remedies_make_sense(found: Closeness, settings: dict[str, Any], remedy: str) -> None:
    assert re.search(remedy, error(found, **settings).remedy or "")


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (0.1, "about 90%"),
        (1.5, "about 6%"),
        (1.6, "about 1 in 20"),
        (3.0, "about 1 in 6,000"),
        (9.0, "less than 1 in a million"),
    ],
)
def test_odds_in_words(rate: float, words: str) -> None:
    assert words in error(some(rate=rate)).what


def test_between_two_cells_no_token_is_named() -> None:
    assert "one word and another are 1.0e-09 apart" in error(some(right=0)).what


def test_two_tokens_are_named_in_the_order_of_the_file() -> None:
    for found in (some(), some(left=1, right=0)):
        assert re.search(
            r": 'a' \(.*, labelled 'x'\) and 'b' \(.*, labelled 'y'\)", error(found).what
        )


def test_many_labels_are_named() -> None:
    problem = pose([text(300, 200)], length=20)
    names = problem.corpus.label_names
    found = refusal(some(rate=60.0), problem, 1)
    assert f"use fewer than {len(names)} labels" in (found.remedy or "")
    few = replace(problem.corpus, label_names=names[:100])
    found = refusal(some(rate=60.0), replace(problem, parts=(few,)), 1)
    assert "fewer than" not in (found.remedy or "")
