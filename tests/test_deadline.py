"""The limit on time: kept inside, over outside, and never later than the one around it."""

from __future__ import annotations

import pytest

from rankone import deadline
from rankone.deadline import TimeIsUpError, tick, time_left, time_limit


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still until it is set."""
    clock = [100.0]
    monkeypatch.setattr(deadline.time, "perf_counter", lambda: clock[0])
    return clock


def test_time_is_up_when_it_is_up(now: list[float]) -> None:
    with time_limit(5):
        now[0] = 105.0
        tick()
        assert time_left() == 0
        now[0] = 105.001
        with pytest.raises(TimeIsUpError):
            tick()
        assert time_left() == 0


def test_without_a_limit_there_is_no_end(now: list[float]) -> None:
    now[0] = 1e9
    tick()
    assert time_left() == float("inf")


def test_a_limit_ends_with_its_block(now: list[float]) -> None:
    with time_limit(1):
        now[0] = 102.0
        with pytest.raises(TimeIsUpError):
            tick()
    tick()


@pytest.mark.usefixtures("now")
@pytest.mark.parametrize("inner", [1, 10])
def test_the_earlier_limit_holds(inner: float) -> None:
    with time_limit(2), time_limit(inner):
        assert time_left() == min(2, inner)
    with time_limit(inner), time_limit(2):
        assert time_left() == min(2, inner)
