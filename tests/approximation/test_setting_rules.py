"""The settings of `approximate`: what is still allowed, and what no more."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rankone.approximation.approximate import MOST, check_settings, read_domain
from rankone.errors import SettingError

LEAST = 5e-324
MOST_SAMPLES = 1 << 26
LIMITS: dict[str, tuple[list[Any], list[Any], str]] = {
    "n": ([1, 10**9], [0, -1], "a whole number of 1 or more"),
    "d": ([1, 10**9], [0], "a whole number of 1 or more"),
    "grid": ([1, 10**400], [0], "a whole number of 1 or more"),
    "epsilon": ([LEAST, 1e308], [0, math.inf, -LEAST], "a positive number"),
    "p": ([1, 1e308], [0.999, math.inf], "a finite number of 1 or more"),
    "readout": (["constant", "linear"], ["plane"], "constant or linear"),
    "samples": ([256, MOST_SAMPLES], [255, MOST_SAMPLES + 1], "a whole number, 256 to 67108864"),
    "lipschitz": ([0, 1e308], [-LEAST, math.inf], "a number of 0 or more"),
    "delta": ([LEAST, 1e308], [0, math.inf], "a positive number"),
    "memory": ([0, 1e308], [-LEAST, math.inf], "a number of GB"),
    "seed": ([0, (1 << 63) - 1], [-1, 1 << 63], "a whole number from 0 to 2^63 - 1"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit(name: str) -> None:
    allowed, refused, wanted = LIMITS[name]
    for value in allowed:
        check_settings(**{name: value})
    for value in (*refused, True, [1]):
        with pytest.raises(SettingError) as caught:
            check_settings(**{name: value})
        assert caught.value.what == f"{name} = {value!r} cannot be used"
        assert caught.value.remedy == f"give {wanted}"
    if name in ("grid", "epsilon", "lipschitz", "delta", "memory"):
        check_settings(**{name: None})
    else:
        with pytest.raises(SettingError):
            check_settings(**{name: None})


def test_a_sobol_point_has_so_many_coordinates() -> None:
    assert MOST == 21_201
    read_domain((0, 1), 3, 7067, 1e6)
    with pytest.raises(SettingError, match="n d = 21,202 numbers"):
        read_domain((0, 1), 2, 10601, 1e6)


def test_a_domain_is_a_number_or_one_for_each_coordinate() -> None:
    low, high = read_domain((0, [1, 2, 3]), 1, 3, 2.0)
    assert (low.tolist(), high.tolist()) == ([0, 0, 0], [1, 2, 3])
    for wrong in ((0, [1, 2]), (0,), (0, 1, 2), 3, (0, "x")):
        with pytest.raises(
            SettingError, match=r"is not a domain\n  remedy: .* number or 3 numbers"
        ):
            read_domain(wrong, 1, 3, 2.0)  # type: ignore[arg-type]


def test_a_domain_has_a_million_floats_at_least() -> None:
    """A unit in the last place is 2^-20 of it at most: of 2^33, 2^-19, and of its neighbours."""
    read_domain((2.0**33 - 2.0, 2.0**33 - 1.0), 1, 1, 2.0)  # 2^-20
    read_domain((2.0**33 - 2.0, 2.0**33), 1, 1, 2.0)  # 2^-19 of 2
    for ends in ((2.0**33, 2.0**33 + 1), (-(2.0**33) - 1, -(2.0**33))):
        with pytest.raises(SettingError, match="too few floats"):
            read_domain(ends, 1, 1, 2.0)
    with pytest.raises(SettingError, match="too few floats"):
        read_domain(([0, 2.0**33], [1, 2.0**33 + 1]), 1, 2, 2.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_volumes_and_squares_are_numbers(sign: int) -> None:
    def ask(power: float, n: int, d: int, p: float) -> None:
        read_domain((0.0, np.float64(10.0) ** (sign * power)), n, d, p)

    ask(149, 2, 1, 1.0)  # to the power of 2 for the volume, or for a square
    ask(99, 3, 1, 1.0)
    ask(99, 1, 3, 1.0)
    ask(149, 4, 1, 2.0)
    for given in ((151, 1, 1, 1.0), (101, 3, 1, 1.0), (101, 1, 3, 1.0), (149, 5, 1, 2.0)):
        with pytest.raises(SettingError, match="out of range for float64"):
            ask(*given)
