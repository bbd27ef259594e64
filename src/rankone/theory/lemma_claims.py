"""What a lemma claims about given numbers, and whether its hypothesis holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from rankone.errors import VectorError

Row = NDArray[np.float64] | Sequence[float] | Sequence[arb]
Number = Any  # float where the lemma was given floats, arb where it was given arb


@dataclass(frozen=True)
class Claim:
    """The statement ``says``, which is claimed only if nothing is ``broken``.

    Every hypothesis asks that a distance ``delta``, measured on vectors of ``n`` numbers, exceeds a
    ``threshold``. ``missing`` is by how much it falls short, rounded up, or None. ``broken`` names
    the condition that does not hold, with its figures. It is decided in ball arithmetic, so that
    rounding never makes a lemma apply where it does not.
    """

    says: str
    n: int
    delta: Number
    threshold: Number
    missing: Number | None
    broken: str | None

    @property
    def ok(self) -> bool:
        """Whether the lemma applies."""
        return self.broken is None

    def to_json(self) -> dict[str, Any]:
        figures = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"ok": self.ok} | {name: _plain(value) for name, value in figures.items()}


@dataclass(frozen=True)
class LemmaBound(Claim):
    """A claim that two outputs of the Boltzmann operator lie further apart than exp(``log_bound``).

    ``log_bound`` is a natural logarithm, rounded down; it is -inf where the lemma only says that
    the distance is positive, and None where it does not apply.
    """

    log_bound: Number | None


def exact(a: Any, name: str) -> list[arb]:
    """The numbers as exact arb; an arb with a radius is refused, as it cannot be compared."""
    numbers = []
    for i, x in enumerate(entries(a, name)):
        number = _ball(x)
        if number is None or not (number.is_finite() and number.is_exact()):
            raise VectorError(
                f"entry {i} is {x!s:.40}",
                where=name,
                remedy="give finite float64 numbers, or arb without a radius",
            )
        numbers.append(number)
    if not numbers:
        raise VectorError("the vector is empty", where=name, remedy="give one or more numbers")
    return numbers


def entries(a: Any, name: str) -> list[Any]:
    """What a list, an array or a tensor holds."""
    try:
        if isinstance(a, str):
            raise TypeError
        return list(a.detach() if hasattr(a, "detach") else a)
    except (TypeError, RuntimeError, NotImplementedError):
        raise VectorError(
            f"{a!s:.40} is not a list", where=name, remedy="give lists of numbers, one per vector"
        ) from None


def _ball(x: Any) -> arb | None:
    """The number as arb, or None if no float has its value."""
    if isinstance(x, arb):
        return x
    if isinstance(x, str | complex | np.complexfloating):
        return None
    try:
        number = float(x)
        return arb(number) if number == x else None
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def in_kind(given: Iterable[Row], **figures: Any) -> dict[str, Any]:
    """The figures as floats, or as they are if one of the `given` vectors holds arb."""
    if any(isinstance(x, arb) for row in given for x in row):
        return figures
    return {name: _float(name, value) for name, value in figures.items()}


def _float(name: str, value: Any) -> Any:
    if not isinstance(value, arb):
        return value
    return {"log_bound": down, "missing": up}.get(name, float)(value)


def down(x: arb) -> float:
    """A float that is not above x."""
    return math.nextafter(float(x.lower()), -math.inf)


def up(x: arb) -> float:
    """A float that is not below x."""
    return -down(-x)


def log(x: arb) -> arb:
    """log x, or -inf where x is not positive."""
    return x.log() if x > 0 else arb.neg_inf()


def show(x: arb) -> str:
    return str(x.str(12, radius=False))


def smallest_gap(rows: Sequence[Sequence[arb]]) -> tuple[arb, str]:
    """The smallest distance of two different numbers of all rows, and the two in words.

    Smallest by the lower end of its ball: if this one exceeds a threshold, all do.
    """
    values = sorted(x for row in rows for x in row)
    gaps = [(y - x, x, y) for x, y in pairwise(values) if x != y]
    if not gaps:
        return arb.pos_inf(), "no two numbers"
    gap, x, y = min(gaps, key=lambda found: found[0].lower())
    return gap, f"{show(x)} and {show(y)}"


def repeated(rows: Sequence[Sequence[arb]]) -> str | None:
    """The first number that a row holds twice, in words."""
    for i, row in enumerate(rows):
        for x, y in pairwise(sorted(row)):
            if x == y:
                return f"{show(x)} occurs twice in vector {i}"
    return None


def _plain(value: Number) -> Any:
    if isinstance(value, arb):
        return str(value)
    return None if isinstance(value, float) and math.isinf(value) else value
