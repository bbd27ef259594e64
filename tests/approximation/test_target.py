"""How f is asked, what it is compared with, and what a refusal shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rankone import approximate
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.problem import probes
from rankone.approximation.target import PROBES, RETRIED, Target, ask, check_function, compare
from rankone.arrays import Floats
from rankone.errors import FunctionError


def test_probes_are_in_the_domain_with_equal_tokens_and_corners() -> None:
    low, high = np.array([-1.0, 2.0]), np.array([3.0, 2.5])
    x = probes(CellGrid(1, 3, low, high), seed=4)
    assert x.shape == (PROBES, 3, 2)
    assert ((x >= low) & (x <= high)).all()
    assert [len(np.unique(each, axis=0)) == 1 for each in x] == [False] * 50 + [True] * 2 + [
        False
    ] * 4 + [True] * 8
    assert (x[-14] == low).all()
    assert (x[-13] == high).all()
    assert ((x[-12:-8] == low) | (x[-12:-8] == high)).all()
    assert len(np.unique(x[-12:-8], axis=0)) > 1
    assert len(np.unique(x[:-14], axis=0)) == 50
    assert not np.array_equal(x, probes(CellGrid(1, 3, low, high), seed=5))


def test_f_is_asked_for_one_sequence_all_and_each_alone() -> None:
    """Twice for all of them, and for two permutations, which make up all others."""
    asked = []

    def f(x: Floats) -> Floats:
        asked.append(x.copy())
        return x

    given = np.arange(12.0).reshape(4, 3, 1)
    check_function(f, given, "f")
    shapes = [len(x) for x in asked]
    assert shapes == [1, 1, 4, 4, 1, 1, 1, 1, 4, 4]
    assert [x[0, 0, 0] for x in asked[4:8]] == [0.0, 3.0, 6.0, 9.0]
    assert asked[8][0, :, 0].tolist() == [1.0, 0.0, 2.0]
    assert asked[9][0, :, 0].tolist() == [1.0, 2.0, 0.0]
    asked.clear()
    check_function(f, given, "f", positions=True)
    assert [len(x) for x in asked] == shapes[:8]


@pytest.mark.parametrize("exact", [False, True])
def test_the_sequence_that_is_furthest_off_is_shown(exact: bool) -> None:
    target, x = Target(lambda x: x, "f", 1), np.array([[[0.1], [0.2]], [[0.3], [0.4]]])
    y = np.array([[[1.0], [2.0]], [[3.0], [5.0]]])
    allowed = 1e-9 * 4 + 64 * 2.0**-52 * 5
    near, far = y.copy(), y.copy()
    near[0, 1] += 0.5 * allowed
    near[1, 0] -= 0.99 * allowed
    far[0, 1] += 0.5 * allowed
    far[1, 0] -= 1.01 * allowed
    compare(target, x, y, y.copy(), "odd", "repair it", exact=exact)
    if not exact:
        compare(target, x, y, near, "odd", "repair it")
    with pytest.raises(FunctionError) as refused:
        compare(target, x, y, far, "odd", "repair it", then="and then", exact=exact)
    shown = r"odd: at [[0.3], [0.4]] it returns [[3.], [5.]], and then [["
    assert refused.value.what.startswith(shown)
    assert (refused.value.where, refused.value.remedy) == ("f", "repair it")
    if exact:
        with pytest.raises(FunctionError, match="then"):
            compare(target, x, y, near, "odd", "repair it", exact=True)


def test_a_failure_is_looked_for_sequence_by_sequence() -> None:
    """Among the first 256; beyond them only the shape is known."""
    x = np.arange(300.0).reshape(300, 1, 1)

    def fails_at(number: int) -> Any:
        def f(x: Floats) -> Floats:
            if (x == number).any():
                raise ValueError("a  reason\nin two lines " + 300 * "x")
            return x

        return f

    for number, where in (
        (RETRIED - 1, "at [[255.]]"),
        (RETRIED, "on an input of shape (300, 1, 1)"),
    ):
        with pytest.raises(FunctionError) as refused:
            ask(fails_at(number), x, "f")
        start = f"fails {where}: ValueError: a reason in two lines "
        assert refused.value.what.startswith(start)
        reason = refused.value.what.split("ValueError: ")[1]
        assert len(reason) == 200


@pytest.mark.parametrize(
    ("dtype", "epsilon", "tiny"),
    [
        (np.float64, 2.0**-52, 5e-324),
        (np.float32, 2.0**-23, 2.0**-149),
        (np.float16, 2.0**-10, 2.0**-24),
        (np.int64, 2.0**-52, 5e-324),
        (np.longdouble, 2.0**-52, 5e-324),
    ],
)
def test_rounding_is_that_of_the_type_which_f_returns(
    dtype: type, epsilon: float, tiny: float
) -> None:
    given = np.arange(6.0).reshape(2, 3, 1)
    found = check_function(lambda x: np.concatenate([x, x], -1).astype(dtype), given, "f")
    assert (found.epsilon, found.tiny, found.outputs, found.name) == (epsilon, tiny, 2, "f")


def test_a_bound_beyond_float64_is_refused() -> None:
    with pytest.raises(FunctionError, match="out of range for float64"):
        approximate(lambda x: x, n=1, grid=2, domain=(0, 1e9), lipschitz=1e300, samples=256)
