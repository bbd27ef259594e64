"""Theorem 2: the constants r and delta, and that its weights keep what they promise."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from rankone.errors import RankOneError
from rankone.theory import masked, theorem2


@st.composite
def constants(draw):
    r_max = draw(st.floats(1e-3, 1e3))
    r_min = r_max * draw(st.floats(1e-6, 0.999))
    epsilon = 2 * r_max * draw(st.floats(1e-6, 1))
    n = draw(st.sampled_from([2, 3, 10, 500]))
    vocabulary = n + draw(st.sampled_from([0, 1, 50, 10**5]))
    sizes = {"vocabulary": vocabulary, "n": n, "dim": draw(st.sampled_from([1, 2, 768]))}
    return (r_min, r_max, epsilon), sizes


def eq_8(numbers, *, vocabulary, n, dim):
    """log delta as the theorem prints it."""
    r_min, r_max, eps = map(mp.mpf, numbers)
    V, L = mp.mpf(vocabulary + 1) ** 4, mp.log(n)
    front = 2 * L**2 * eps**2 * r_min / (r_max**2 * V * (2 * L + 3) * mp.pi * dim)
    return mp.log(front) - V * (2 * L + 3) * mp.pi * dim * r_max**2 / (4 * eps * r_min)


@given(problem=constants())
def test_the_constants_are_those_of_the_theorem(problem):
    """Eq. 7, 8, 29, 32 and 37 at 50 digits, each rounded to its safe side by two units at most."""
    numbers, sizes = problem
    bound = theorem2(*numbers, **sizes)
    with mp.workdps(50):
        r_min, r_max, eps = map(mp.mpf, numbers)
        delta = 2 * mp.log(sizes["n"]) + 3
        scale = mp.mpf(sizes["vocabulary"] + 1) ** 4 * mp.pi * sizes["dim"] / 8 * delta
        scale = scale / (eps * r_min)
        log_delta = eq_8(numbers, **sizes)
        digits = (mp.log(r_max + eps / 4) - log_delta) / mp.log(10) + 20
        above = [
            (bound.r, r_max + eps / 4),
            (bound.scale, scale),
            (bound.logit_bound, scale * r_max**2),
        ]
        below = [
            (bound.log_delta, log_delta),
            (bound.log10_delta, log_delta / mp.log(10)),
            (bound.output_norm, eps / (4 * r_max)),
        ]
        assert log_delta < mp.log(eps / 2)  # eq. 8 is the smaller of the two for n >= 2
        for found, exact in above:
            assert 0 <= found - exact <= 2.0**-51 * found
        for found, exact in below:
            assert 0 <= exact - found <= 2.0**-51 * abs(found)
        assert 0 <= bound.digits - digits <= 1 + 2.0**-51 * digits


def test_one_token_has_no_context():
    """Eq. 8 is 0 for n = 1, but what it bounds cannot be: different tokens are epsilon/2 apart."""
    bound = theorem2(0.5, 1.0, 0.1, vocabulary=7, n=1, dim=2)
    assert bound.log_delta == pytest.approx(math.log(0.05), rel=1e-15)
    assert bound.digits == 22
    assert masked(0.5, 1.0, 0.1, vocabulary=7, n=1, dim=2).log_delta < -1e5  # there it can


def test_the_size_of_conll():
    """23,623 words, 45 tokens, 128 dimensions: 2.9e21 digits, and no overflow on the way."""
    bound = theorem2(0.5, 1.0, 0.1, vocabulary=23_623, n=45, dim=128)
    assert bound.digits == pytest.approx(2.9e21, rel=0.01)
    assert bound.log10_delta == pytest.approx(-2.9e21, rel=0.01)
    assert json.loads(json.dumps(bound.to_json()))["digits"] == bound.digits
    counted = theorem2(0.5, 1.0, 0.1, vocabulary=np.int64(23_623), n=np.int64(45), dim=128)
    assert counted == bound


@given(problem=constants())
def test_masks_change_the_factor_only(problem):
    numbers, sizes = problem
    plain, other = theorem2(*numbers, **sizes), masked(*numbers, **sizes)
    with mp.workdps(50):
        L = mp.log(sizes["n"])
        log_delta = eq_8(numbers, **sizes) + mp.log((L + 1) / L**2)
        assert 0 <= log_delta - other.log_delta <= 2.0**-51 * abs(other.log_delta)
    for name in ("r", "scale", "output_norm", "logit_bound"):
        assert getattr(plain, name) == getattr(other, name)


def context_id(token, seen, bound):
    """F(X)_k = x_k + |W^O u''| sum_l x_l p_l for tokens on a line, v = 1 and u^T u' = scale."""
    top = max(bound.scale * token * x for x in seen)
    weights = [(bound.scale * token * x - top).exp() for x in seen]
    mean = sum(w * x for w, x in zip(weights, seen, strict=True)) / sum(weights)
    return token + bound.output_norm * mean


# With d = 1 the direction v = 1 satisfies eq. 31, so the proof's weights can be written down.
TOKENS = [-1.0, 0.75, 2.0]
SEPARATION = {"r_min": 0.74, "r_max": 2.01, "epsilon": 1.24}


@pytest.mark.parametrize("masks", [False, True], ids=["all seen", "some seen"])
def test_the_weights_of_the_proof_keep_the_promise(masks):
    """Context ids of all tokens in all sets, at as many bits as it takes."""
    size = 2
    bound = (masked if masks else theorem2)(**SEPARATION, vocabulary=3, n=size, dim=1)
    with ctx.workprec(math.ceil(bound.digits / math.log10(2))):
        tokens = [arb(x) for x in TOKENS]
        ids = []
        for count in range(1 if masks else size, size + 1):
            for seen in combinations(tokens, count):
                ids += [
                    (token, seen, context_id(token, seen, bound))
                    for token in tokens
                    if masks or token in seen
                ]
        assert all(abs(number) < bound.r for _, _, number in ids)
        delta = arb(bound.log_delta).exp()
        smallest = min(
            abs(x - y) for (s, a, x), (t, b, y) in combinations(ids, 2) if s != t or a != b
        )
        assert smallest > delta
        # and the bound says something: an ulp of r is far too coarse for it
        assert smallest < arb(bound.r) * 2**-200


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"r_min": 0.0}, "r_min"),
        ({"r_min": 1.0}, "r_min"),
        ({"r_max": math.nan}, "r_max"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 2.1}, "epsilon"),
        ({"n": 0}, "n = 0"),
        ({"n": 9}, "without repeats"),
        ({"dim": 0}, "dim = 0"),
        ({"r_min": 1e-300, "epsilon": 1e-300}, "too large"),
    ],
    ids=str,
)
def test_conditions_that_are_not_met_are_refused(change, why):
    good = {"r_min": 0.5, "r_max": 1.0, "epsilon": 0.1, "vocabulary": 8, "n": 3, "dim": 2}
    theorem2(**good)
    with pytest.raises(RankOneError, match=why):
        theorem2(**{**good, **change})
