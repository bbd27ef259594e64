"""A time limit that long loops check as they run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

_deadline: ContextVar[float] = ContextVar("deadline", default=inf)


class TimeIsUpError(Exception):
    """The time limit has passed. The code that set it catches this, so users never see it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Inside, `tick` raises `TimeIsUpError` once the time has passed.

    Like `numpy.errstate`, it applies to everything that is called inside. A limit inside another
    one can only make it shorter.
    """
    token = _deadline.set(min(_deadline.get(), time.perf_counter() + seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


def tick() -> None:
    """Check the limit: call this many times a second in every loop that may take long."""
    if time.perf_counter() > _deadline.get():
        raise TimeIsUpError


def time_left() -> float:
    """Seconds until the deadline: infinite if there is none, never negative."""
    return max(0.0, _deadline.get() - time.perf_counter())
