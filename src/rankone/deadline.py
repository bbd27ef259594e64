"""A limit on the time that work may take, which the loops inside it keep."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

_deadline: ContextVar[float] = ContextVar("deadline", default=inf)


class TimeIsUpError(Exception):
    """The time that was given is over. Whoever set a limit catches it: no user ever sees it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Within, `tick` raises `TimeIsUpError` once so many seconds have passed.

    Like `numpy.errstate` it holds for what is called inside, however deep. A limit inside another
    one can only be earlier.
    """
    token = _deadline.set(min(_deadline.get(), time.perf_counter() + seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


def tick() -> None:
    """To be called in every loop that may take long, many times a second."""
    if time.perf_counter() > _deadline.get():
        raise TimeIsUpError


def time_left() -> float:
    """Seconds until the deadline: infinite if there is none, never negative."""
    return max(0.0, _deadline.get() - time.perf_counter())
