"""PiecewiseLinear against the sum of ReLU units that it stands for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dense_truth as truth
from rankone.nn import PiecewiseLinear


def units(gain, bias, out_gain):
    return tuple(np.array(part, dtype=np.float64) for part in (gain, bias, out_gain))


def direct(gain, bias, out_gain, s):
    return np.array([out_gain @ truth.relu(gain * number + bias) for number in s])


# Gains are powers of two and all else small integers, so that every bend, slope and value is a
# binary fraction and the two ways of summing must agree to the last bit.
powers = st.sampled_from([-4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0])
numbers = st.integers(-6, 6).map(float)
unit = st.tuples(powers, numbers, numbers)


def split(drawn):
    return units(*zip(*drawn, strict=True)) if drawn else units([], [], [])


def places(gain, bias):
    """Every bend, a step to either side of it, and points far away from all."""
    bends = -bias[gain != 0] / gain[gain != 0]
    return np.concatenate([bends, bends - 0.25, bends + 0.25, [-1000.0, 0.0, 1000.0]])


@given(drawn=st.lists(unit, max_size=8))
def test_equals_the_sum_of_units_to_the_last_bit(drawn):
    gain, bias, out_gain = split(drawn)
    s = places(gain, bias)
    f = PiecewiseLinear.from_units(gain, bias, out_gain)
    np.testing.assert_array_equal(f(s), direct(gain, bias, out_gain, s))


@given(drawn=st.lists(unit, min_size=1, max_size=3), times=st.integers(2, 4))
def test_repeated_knots_add_their_bends(drawn, times):
    gain, bias, out_gain = split(drawn * times)
    s = places(gain, bias)
    f = PiecewiseLinear.from_units(gain, bias, out_gain)
    np.testing.assert_array_equal(f(s), direct(gain, bias, out_gain, s))


@given(drawn=st.lists(unit, min_size=1, max_size=8))
def test_knots_are_sorted_and_carry_the_values_there(drawn):
    gain, bias, out_gain = split(drawn)
    f = PiecewiseLinear.from_units(gain, bias, out_gain)
    assert (np.diff(f.knots) >= 0).all()
    assert len(f.knots) == len(f.values) == len(f.slopes) - 1
    np.testing.assert_array_equal(f.values, direct(gain, bias, out_gain, f.knots))


@given(seed=st.integers(0, 10_000), count=st.integers(0, 60))
def test_random_units_agree_up_to_rounding(seed, count):
    generator = np.random.default_rng(seed)
    gain = generator.uniform(0.1, 2, count) * generator.choice([-1, 1], count)
    bias, out_gain = generator.normal(size=(2, count))
    s = generator.normal(size=30) * 3
    f = PiecewiseLinear.from_units(gain, bias, out_gain)
    truth.assert_close(f(s), direct(gain, bias, out_gain, s))


@pytest.mark.parametrize(
    ("gain", "bias", "out_gain", "s", "expected"),
    [
        ([1], [0], [1], [-1, 0, 2], [0, 0, 2]),
        ([-1], [0], [1], [-2, 0, 1], [2, 0, 0]),
        ([2, -2], [-2, 2], [1, 1], [0, 1, 3], [2, 0, 4]),
        ([1, 1], [0, 0], [1, -1], [-3, 0, 3], [0, 0, 0]),
    ],
    ids=["faces right", "faces left", "a valley", "two that cancel"],
)
def test_examples_by_hand(gain, bias, out_gain, s, expected):
    f = PiecewiseLinear.from_units(*units(gain, bias, out_gain))
    np.testing.assert_array_equal(f(np.array(s, dtype=np.float64)), expected)


def test_no_units_are_zero_everywhere():
    f = PiecewiseLinear.from_units(*units([], [], []))
    np.testing.assert_array_equal(f(np.array([-1e9, 0.0, 1e9])), 0.0)


def test_units_without_gain_are_a_constant():
    f = PiecewiseLinear.from_units(*units([0, 0, 0], [3, -5, 1], [2, 7, -1]))
    np.testing.assert_array_equal(f(np.array([-1e9, 0.0, 1e9])), 5.0)


def test_units_without_gain_lift_the_others():
    f = PiecewiseLinear.from_units(*units([0, 1], [3, 0], [2, 1]))
    np.testing.assert_array_equal(f(np.array([-1.0, 0.0, 4.0])), [6.0, 6.0, 10.0])


MANY = 70_000


def test_very_many_units_equal_their_sum_to_the_last_bit():
    generator = np.random.default_rng(0)
    gain = generator.choice([-2.0, -1.0, 0.0, 0.5, 1.0], MANY)
    bias, out_gain = generator.integers(-900, 900, (2, MANY)).astype(np.float64)
    s = generator.integers(-4000, 4000, 50) / 4
    f = PiecewiseLinear.from_units(gain, bias, out_gain)
    np.testing.assert_array_equal(f(s), direct(gain, bias, out_gain, s))


@pytest.mark.parametrize("count", [1, MANY])
@pytest.mark.parametrize("shape", [(0,), (5,), (), (2, 3)], ids=str)
def test_the_result_has_the_shape_of_the_numbers(shape, count):
    f = PiecewiseLinear.from_units(np.full(count, 1.0), np.zeros(count), np.full(count, 1 / count))
    out = f(np.full(shape, 2.0))
    assert out.shape == shape
    np.testing.assert_allclose(out, 2.0)


def test_the_units_are_left_as_they_were():
    given_units = units([1, 0, -1], [3, 2, 1], [1, 1, 1])
    kept = [part.copy() for part in given_units]
    PiecewiseLinear.from_units(*given_units)
    for part, before in zip(given_units, kept, strict=True):
        np.testing.assert_array_equal(part, before)


def test_a_unit_that_is_all_but_switched_off_does_not_spoil_the_others():
    # Weight decay leaves such gains behind. Its bend is far away, but what it adds is 1.
    gain, bias, out_gain = units([1e-40, -1], [1, 0], [1, 1])
    s = np.array([-2.0, 0.5])
    f = PiecewiseLinear.from_units(gain, bias, out_gain)
    truth.assert_close(f(s), direct(gain, bias, out_gain, s))
