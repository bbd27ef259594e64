"""What may be asked for: each setting with its type and range."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankone.approximation.grid import Floats
from rankone.errors import SettingError

MANY = 1 << 26  # points: beyond, they do not fit in memory
WHOLE, NUMBER = (int, np.integer), (int, float, np.integer, np.floating)
RULES: dict[str, tuple[tuple[type, ...], Callable[[Any], bool], str]] = {
    "n": (WHOLE, lambda n: n >= 1, "a whole number from 1"),
    "d": (WHOLE, lambda d: d >= 1, "a whole number from 1"),
    "grid": (WHOLE, lambda cells: cells >= 1, "a whole number from 1"),
    "epsilon": (NUMBER, lambda e: 0 < e < math.inf, "a positive number"),
    "p": (NUMBER, lambda p: 1 <= p < math.inf, "a finite number from 1"),
    "readout": ((str,), lambda kind: kind in ("constant", "linear"), "constant or linear"),
    "samples": (WHOLE, lambda samples: 256 <= samples <= MANY, f"a whole number, 256 to {MANY}"),
    "lipschitz": (NUMBER, lambda L: 0 <= L < math.inf, "a number from 0"),
    "delta": (NUMBER, lambda delta: 0 < delta < math.inf, "a positive number"),
    "memory": (NUMBER, lambda memory: 0 <= memory < math.inf, "a number of bytes"),
    "seed": (WHOLE, lambda seed: 0 <= seed < 1 << 63, "a whole number from 0, below 2^63"),
}
OPTIONAL = {"grid", "epsilon", "lipschitz", "delta", "memory"}


def check_settings(**settings: Any) -> None:
    """Refuse a setting of the wrong type or out of range."""
    for name, value in settings.items():
        types, sound, wanted = RULES[name]
        if value is None and name in OPTIONAL:
            continue
        if not isinstance(value, types) or isinstance(value, bool) or not sound(value):
            raise SettingError(f"{name} = {value!r} cannot be used", remedy=f"take {wanted}")


MOST = 21_201  # coordinates of a Sobol point in torch


def read_domain(domain: ArrayLike, n: int, d: int, p: float) -> tuple[Floats, Floats]:
    """Low and high of each coordinate."""
    if n * d > MOST:
        raise SettingError(
            f"sequences of n d = {n * d:,} numbers cannot be measured",
            remedy=f"take n d up to {MOST:,}",
        )
    try:
        low, high = (np.broadcast_to(np.asarray(end, np.float64), (d,)).copy() for end in domain)  # type: ignore[union-attr]
    except (TypeError, ValueError):
        raise SettingError(
            f"{domain!r} is no domain", remedy=f"give (low, high), each a number or {d} numbers"
        ) from None
    with np.errstate(over="ignore", invalid="ignore"):
        span = high - low
        sound = np.isfinite(span).all() and (span > 0).all()
    what = f"the domain from {low.tolist()} to {high.tolist()}"
    if not sound:
        raise SettingError(
            f"{what} is empty or not finite",
            remedy="give (low, high) with low < high, and no further apart than float64 goes",
        )
    spacing = np.spacing(np.maximum(np.abs(low), np.abs(high)))
    if (spacing > 2.0**-20 * span).any():
        raise SettingError(f"{what} has too few floats", remedy="move it towards 0")
    # Squares of distances, too, have to be floats.
    if abs(n * float(np.log10(span).sum())) / p > 300 or (np.abs(np.log10(span)) > 150).any():
        raise SettingError(
            f"the volume of {what}, or a squared distance in it, is beyond float64",
            remedy="measure in other units",
        )
    return low, high
