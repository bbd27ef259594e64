"""The settings of `approximate`: each with its type and range."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankone.arrays import Floats
from rankone.errors import SettingError

MANY = 1 << 26  # points: more do not fit in memory
WHOLE, NUMBER = (int, np.integer), (int, float, np.integer, np.floating)
RULES: dict[str, tuple[tuple[type, ...], Callable[[Any], bool], str]] = {
    "n": (WHOLE, lambda n: n >= 1, "a whole number of 1 or more"),
    "d": (WHOLE, lambda d: d >= 1, "a whole number of 1 or more"),
    "grid": (WHOLE, lambda cells: cells >= 1, "a whole number of 1 or more"),
    "epsilon": (NUMBER, lambda e: 0 < e < math.inf, "a positive number"),
    "p": (NUMBER, lambda p: 1 <= p < math.inf, "a finite number of 1 or more"),
    "readout": ((str,), lambda kind: kind in ("constant", "linear"), "constant or linear"),
    "samples": (WHOLE, lambda samples: 256 <= samples <= MANY, f"a whole number, 256 to {MANY}"),
    "lipschitz": (NUMBER, lambda L: 0 <= L < math.inf, "a number of 0 or more"),
    "delta": (NUMBER, lambda delta: 0 < delta < math.inf, "a positive number"),
    "memory": (NUMBER, lambda memory: 0 <= memory < math.inf, "a number of GB"),
    "seed": (WHOLE, lambda seed: 0 <= seed < 1 << 63, "a whole number from 0 to 2^63 - 1"),
}
OPTIONAL = {"grid", "epsilon", "lipschitz", "delta", "memory"}


def check_settings(**settings: Any) -> None:
    """Raise `SettingError` for a setting of the wrong type or out of range."""
    for name, value in settings.items():
        types, sound, wanted = RULES[name]
        if value is None and name in OPTIONAL:
            continue
        if not isinstance(value, types) or isinstance(value, bool) or not sound(value):
            raise SettingError(f"{name} = {value!r} cannot be used", remedy=f"give {wanted}")


MOST = 21_201  # most coordinates of a Sobol point in torch


def read_domain(domain: ArrayLike, n: int, d: int, p: float) -> tuple[Floats, Floats]:
    """Low and high of each coordinate."""
    if n * d > MOST:
        raise SettingError(
            f"sequences of n d = {n * d:,} numbers cannot be measured",
            remedy=f"use n d up to {MOST:,}",
        )
    try:
        low, high = (np.broadcast_to(np.asarray(end, np.float64), (d,)).copy() for end in domain)  # type: ignore[union-attr]
    except (TypeError, ValueError):
        raise SettingError(
            f"{domain!r} is not a domain", remedy=f"give (low, high), each a number or {d} numbers"
        ) from None
    with np.errstate(over="ignore", invalid="ignore"):
        span = high - low
        sound = np.isfinite(span).all() and (span > 0).all()
    what = f"the domain from {low.tolist()} to {high.tolist()}"
    if not sound:
        raise SettingError(
            f"{what} is empty or not finite",
            remedy="give (low, high) with low < high and a finite difference",
        )
    spacing = np.spacing(np.maximum(np.abs(low), np.abs(high)))
    if (spacing > 2.0**-20 * span).any():
        raise SettingError(f"{what} contains too few floats", remedy="move it towards 0")
    # Squared distances must not overflow either.
    if abs(n * float(np.log10(span).sum())) / p > 300 or (np.abs(np.log10(span)) > 150).any():
        raise SettingError(
            f"the volume of {what}, or a squared distance in it, is out of range for float64",
            remedy="rescale the domain",
        )
    return low, high
