"""Definition 3 and eq. 80 to 83, 97: the Boltzmann operator and what belongs to it."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import example, given
from hypothesis import strategies as st

from paper.problems import bits, boltz, derivatives
from rankone.errors import VectorError
from rankone.theory import (
    boltzmann,
    entropy,
    gradient,
    log_partition,
    second_derivative,
    softmax,
)

UNIT = 2.0**-53
FUNCTIONS = [softmax, boltzmann, log_partition, entropy, gradient, second_derivative]
each_function = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)

MODEST = [1e-300, 1e-3, 1.0, 30.0, 700.0]
ANY = [*MODEST, 1e5, 1e300]


@st.composite
def logits(draw, scales=ANY):
    scale = draw(st.sampled_from(scales))
    entries = draw(st.lists(st.floats(-1, 1), min_size=1, max_size=7))
    return np.array(entries) * scale


def terms(a):
    """For every function, by its name: the true values, and the sums of sizes of what adds up."""
    x = [arb(float(number)) for number in a]
    top = max(x)
    weights = [(y - top).exp() for y in x]
    total = sum(weights)
    p = [w / total for w in weights]
    mean = sum(q * (top - y) for q, y in zip(p, x, strict=True))
    log_total = total.log()
    # the logarithm of p_i itself, not of a number that may have underflowed
    shannon = -sum(q * (y - top - log_total) for q, y in zip(p, x, strict=True))
    first, second = zip(*(derivatives(x, i) for i in range(len(x))), strict=True)
    slopes = [q * (1 + (top - y) + mean) for q, y in zip(p, x, strict=True)]
    others = [sum(p[:i] + p[i + 1 :]) for i in range(len(p))]
    bends = [q * (2 * r + (top - y) + mean) for q, r, y in zip(p, others, x, strict=True)]
    return {
        "softmax": (p, p),
        "boltzmann": ([boltz(x)], [abs(top) + mean]),
        "log_partition": ([top + log_total], [abs(top) + log_total]),
        "entropy": ([shannon], [shannon]),
        "gradient": (first, slopes),
        "second_derivative": (second, bends),
    }


@each_function
@given(a=logits())
@example(a=np.array([0.0, -740.0]))
@example(a=np.array([0.0, -1e-12, -745.0, -1000.0]))
@example(a=np.array([1e308, -1e308, 1e308]))
@example(a=np.array([-1e308]))
def test_float64_is_right_to_rounding(function, a):
    """An exponential e^t is off by |t| + 4 units at most, as t is rounded; sums add n units more.

    Entries more than 1500 below the largest leave nothing. Results may underflow, gracefully.
    """
    with np.errstate(over="ignore"):
        spread = min(float(np.ptp(a)), 1500.0)
    units = 2 * (2 * spread + len(a) + 16)
    found = np.atleast_1d(function(a))
    with ctx.workprec(1500):
        truth, sizes = terms(a)[function.__name__]
        for x, y, size in zip(found.tolist(), truth, sizes, strict=True):
            assert abs(arb(x) - y) <= units * UNIT * size + arb(2e-323), (x, y)


@each_function
@given(a=logits(MODEST))
def test_arb_contains_the_truth_and_little_else(function, a):
    """Of 250 bits it keeps more than 200, however small the number."""
    with ctx.workprec(bits(a)):
        truth, sizes = terms(a)[function.__name__]
    with ctx.workprec(250):
        found = function([arb(x) for x in a.tolist()])
        found = found if isinstance(found, list) else [found]
        for x, y, size in zip(found, truth, sizes, strict=True):
            assert x.overlaps(y)
            assert x.rad() <= size * arb(2) ** -200


@given(counts=st.lists(st.integers(1, 10**6), min_size=1, max_size=8))
def test_logits_that_are_logarithms_have_rational_weights(counts):
    """a_i = log k_i: p_i = k_i / sum k exactly, L = log sum k and boltz = log prod k_i^(p_i)."""
    total = sum(counts)
    with ctx.workprec(300):
        a = [arb(k).log() for k in counts]
        exact = [arb(fmpq(k, total)) for k in counts]
        assert all(p.overlaps(q) for p, q in zip(softmax(a), exact, strict=True))
        assert log_partition(a).overlaps(arb(total).log())
        mean = sum(q * x for q, x in zip(exact, a, strict=True))
        assert boltzmann(a).overlaps(mean)
        assert entropy(a).overlaps(arb(total).log() - mean)  # eq. 85
        assert boltzmann(a).rad() < 1e-80
    floats = np.log(counts)
    shares = [float(Fraction(k, total)) for k in counts]
    assert softmax(floats) == pytest.approx(shares, rel=1e-14)


@given(a=logits(), shift=st.sampled_from([-1e3, -1.0, 0.25, 1e4]))
def test_a_shift_of_the_logits_shifts_the_average(a, shift):
    """boltz(a + c) = boltz(a) + c, so the gradient sums to 1: an identity with no tolerance."""
    with ctx.workprec(300):
        x = [arb(number) for number in a.tolist()]
        assert boltzmann([y + shift for y in x]).overlaps(boltzmann(x) + shift)
        assert sum(gradient(x)).overlaps(arb(1))


@each_function
def test_works_over_the_last_axis(function):
    batch = np.random.default_rng(0).normal(size=(3, 2, 5)) * 20
    one_by_one = [[function(row) for row in rows] for rows in batch]
    np.testing.assert_array_equal(function(batch), one_by_one)


@each_function
@given(a=logits(), masked=st.lists(st.booleans(), min_size=1, max_size=7))
def test_masked_entries_contribute_nothing(function, a, masked):
    """Eq. 133: as if the entry were not there."""
    hidden = np.resize(masked, len(a))
    if hidden.all():
        hidden[0] = False
    found = function(np.where(hidden, -np.inf, a))
    if np.ndim(found):
        assert (found[hidden] == 0).all()
        found = found[~hidden]
    np.testing.assert_allclose(found, function(a[~hidden]), rtol=1e-13, atol=0)


def test_a_saturated_softmax_keeps_its_digits():
    """p_2 = e^-700: the entropy is about 701 e^-700, and the derivatives are as small."""
    with ctx.workprec(2000):
        tiny = float(arb(-700).exp())
    assert entropy([0.0, -700.0]) == pytest.approx(701 * tiny, rel=1e-12)
    assert gradient([0.0, -700.0])[1] == pytest.approx(-699 * tiny, rel=1e-12)
    assert second_derivative([0.0, -700.0])[0] == pytest.approx(-698 * tiny, rel=1e-12)


def test_one_entry():
    assert softmax([7.0]) == boltzmann([7.0]) - 6 == gradient([7.0]) == 1
    assert log_partition([7.0]) == 7
    assert entropy([7.0]) == second_derivative([7.0]) == 0


@each_function
@pytest.mark.parametrize(
    "a",
    [[], [np.nan], [0.0, np.inf], [-np.inf, -np.inf], [[0.0], [-np.inf]], [arb("nan")], ["1", 2j]],
    ids=str,
)
def test_what_has_no_average_is_refused(function, a):
    with pytest.raises(VectorError):
        function(np.array(a, dtype=object) if a and isinstance(a[0], str) else a)
