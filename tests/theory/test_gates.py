"""The theorem on gates: its figures against built networks, its proof piece by piece."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankone
from rankone.construct.gated.codes import coordinates_for
from rankone.construct.gated.labels import LabelCodes
from rankone.construct.gated.tables import CODE
from rankone.errors import SettingError
from rankone.theory import bits_per_weight, code_size, gated_dimension, units_bound
from rankone.theory.gates import grid_exponent, label_size, rounded_peak


def exceptions(corpus: rankone.Corpus, positions: bool) -> int:
    """Contexts whose label is not their word's usual one, counted from the text alone; those with
    contradicting labels are counted too."""
    contexts: dict[Any, Counter[str]] = {}
    for sentence in corpus.sentences:
        n, shares = len(sentence.tokens), Counter(sentence.tokens)
        bag = frozenset((word, Fraction(often, n)) for word, often in shares.items())
        for k, (word, label) in enumerate(zip(sentence.tokens, sentence.labels, strict=True)):
            seen = (tuple(sentence.tokens), k) if positions else (bag,)
            contexts.setdefault((word, *seen), Counter())[label] += 1
    words: dict[str, Counter[str]] = {}
    for (word, *_), labels in contexts.items():
        if len(labels) == 1:
            words.setdefault(word, Counter()).update(set(labels))
    return len(contexts) - sum(max(often.values()) for often in words.values())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("positions", [True, False])
def test_built_networks_keep_to_the_figures(positions: bool, dtype: Any) -> None:
    corpus = rankone.builtin_corpus(50)
    made = rankone.memorize(corpus, construction="gated", positions=positions, dtype=dtype)
    shape = made.model.network.shape
    words = len(corpus.vocabulary)
    least = gated_dimension(words, shape.positions, shape.heads, shape.labels)
    assert shape.dim == least - code_size(words + 1) + CODE  # codes of words are hashes here
    found = exceptions(corpus, positions)
    assert 0 < made.hidden_units <= units_bound(found)
    assert units_bound(found, zigzag=True) < units_bound(found)


@given(st.integers(1, 10**9))
def test_code_size_is_smallest(count: int) -> None:
    size = code_size(count)
    assert size % 2 == 0
    assert comb(size, size // 2) >= count
    assert size == 2 or comb(size - 2, size // 2 - 1) < count
    assert size == coordinates_for(count)  # theory and construction count alike


def test_no_code_contains_another() -> None:
    for one, other in combinations(combinations(range(6), 3), 2):
        assert set(one) - set(other)
        assert set(other) - set(one)


@given(st.integers(1, 70_000))
def test_labels_have_as_many_coordinates_as_in_networks(labels: int) -> None:
    assert label_size(labels) == LabelCodes.of(labels).rows.shape[1]


def height(s: Fraction, left: Fraction, top: Fraction, right: Fraction) -> Fraction:
    """Three hidden units that add up to a peak of height 1, as in the proof."""
    first, second, third = (max(s - bend, Fraction(0)) for bend in (left, top, right))
    return (first - 2 * second + third) / (top - left)


def mantissa(x: Fraction) -> int:
    """Its bits without trailing zeros."""
    assert x.denominator & (x.denominator - 1) == 0
    top = abs(x.numerator)
    return (top // (top & -top)).bit_length() if top else 0


@given(st.floats(-1.5, 1.5), st.floats(2**-40, 4), st.floats(1, 2), st.sampled_from([2, 32, 33]))
def test_rounded_peaks(at: float, gap: float, farther: float, labels: int) -> None:
    bends = rounded_peak(at, gap, labels)
    least = Fraction(3, 4) if labels <= 32 else Fraction(63, 64)
    assert least <= height(Fraction(at), *bends) <= 1
    for side in (1, -1):
        other = Fraction(at) + side * Fraction(gap) * Fraction(farther)
        assert height(other, *bends) == 0
    assert max(map(mantissa, bends)) <= bits_per_weight(gap, labels=labels)
    assert mantissa(bends[1] - bends[0]) == 1  # so slopes are powers of two


@given(st.floats(2**-60, 1))
def test_grid_is_the_coarsest_that_will_do(gap: float) -> None:
    step = Fraction(1, 2 ** grid_exponent(gap))
    assert step <= Fraction(gap) / 4 < 2 * step


@pytest.mark.parametrize(
    "call",
    [
        lambda: code_size(0),
        lambda: gated_dimension(5, -1, 1, 2),
        lambda: units_bound(-1),
        lambda: bits_per_weight(0.0),
        lambda: bits_per_weight(float("nan")),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any) -> None:
    with pytest.raises(SettingError):
        call()
