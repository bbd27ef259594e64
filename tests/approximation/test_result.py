"""What a result says of itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rankone import Approximation, approximate
from rankone.approximation.error_bound import ErrorBound


@pytest.fixture(scope="module")
def result() -> Approximation:
    return approximate(np.square, n=2, d=1, grid=3, samples=256, epsilon=None, seed=5)


def told(result: Approximation, interval: tuple[float, float], **more: Any) -> Approximation:
    return replace(result, measured=replace(result.measured, interval=interval), **more)


def test_epsilon_must_hold_for_the_upper_end_of_the_interval(result: Approximation) -> None:
    assert told(result, (0.1, 0.2), epsilon=0.2).ok
    assert not told(result, (0.1, 0.2), epsilon=0.19).ok
    assert told(result, (0.1, 0.2), epsilon=None).ok


def test_a_bound_may_be_exceeded_by_the_interval_if_it_is_guaranteed(
    result: Approximation,
) -> None:
    """The estimate errs, the bound may be attained: the lower end, less the width, counts."""
    for total, ok in ((0.25, True), (0.24, False)):
        bound = ErrorBound(total, result.bound.parts, guaranteed=True)
        assert told(result, (0.375, 0.5), bound=bound).ok is ok
        assert told(result, (0.375, 0.5), bound=replace(bound, guaranteed=False)).ok


def test_the_report_has_all_figures(result: Approximation) -> None:
    found, measured = result.to_json(), result.measured
    seconds = found.pop("seconds")
    assert list(seconds) == ["build", "verify", "measure", "total"]
    assert seconds["total"] >= sum(list(seconds.values())[:3]) > 0
    sources = found.pop("sources")
    assert list(sources) == ["steps", "repeated", "ramps"]
    for name, source in sources.items():
        assert source == {**vars(measured.sources[name]), "bound": result.bound.parts[name]}
    assert found == {
        "ok": True,
        "function": "square",
        "n": 2,
        "d": 1,
        "m": 1,
        "domain": {"low": [0.0], "high": [1.0]},
        "positions": False,
        "grid": 3,
        "readout": "constant",
        "p": 2.0,
        "epsilon": None,
        "error": measured.error,
        "interval": list(measured.interval),
        "bound": result.bound.total,
        "bound_guaranteed": False,
        "bound_rounding": result.bound.parts["rounding"],
        "worst": vars(measured.worst),
        "steepest": vars(measured.steepest),
        "context_ids": 9,
        "hidden_units": result.hidden_units,
        "gap": result.gap,
        "delta": result.delta,
        "grid_error": result.verified.grid_error,
        "dense_difference": result.verified.dense_difference,
        "points": 256,
        "seed": 5,
        "tried": [],
    }
    # Two units per step: between the cells, and where f changes along the line of context ids.
    assert result.hidden_units == {"f1": 4, "f2": 4, "total": 8}
    assert told(result, (0.1, 0.2), gap=np.inf, tried=((2, 0.5),)).to_json()["gap"] is None
    assert replace(result, tried=((2, 0.5),)).to_json()["tried"] == [{"grid": 2, "error": 0.5}]
