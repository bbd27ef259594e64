"""What a statement is given, as numbers: whatever numpy or torch can hold, or a refusal."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.errors import VectorError


def as_floats(x: Any, what: str = "numbers") -> NDArray[np.float64]:
    """An array of float64, of whatever shape; tensors may want gradients, or be of half type."""
    try:
        if hasattr(x, "detach"):
            x = x.detach().double().cpu()
        found = np.asarray(x)
        if found.dtype.kind not in "biufO":
            raise TypeError(f"of type {found.dtype}")
        return found.astype(np.float64, copy=False)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        reason = str(error).split("\n")[0]
        raise VectorError(
            f"these are not {what}: {reason}", remedy="give real numbers, as many in each row"
        ) from None


def as_labels(x: Any, count: int, what: str) -> NDArray[Any]:
    """One whole number or string for each of `count` things; any that can be sorted will do."""
    try:
        found = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)
    except (TypeError, ValueError, RuntimeError):
        found = np.empty(0, object)
    known = found.dtype.kind in "biuUS" or (found.dtype.kind == "f" and not np.isnan(found).any())
    if not known or found.shape != (count,):
        raise VectorError(
            f"{what} of shape {found.shape} and type {found.dtype} for {count:,} rows",
            remedy=f"give {what} as one whole number or string for each row",
        )
    return found


def as_real(name: str, x: Any) -> float:
    """A finite number."""
    try:
        if isinstance(x, str):
            raise TypeError
        found = float(x)
        if math.isfinite(found):
            return found
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass
    raise VectorError(f"{name} = {x!s:.40} is not a finite number", remedy=f"give {name} as one")


def as_whole(name: str, x: Any, least: int = 1) -> int:
    """A whole number that is not less than that."""
    try:
        if not isinstance(x, bool) and operator.index(x) >= least:
            return operator.index(x)
    except (TypeError, ValueError, RuntimeError):
        pass
    raise VectorError(
        f"{name} = {x!s:.40} is not a whole number from {least} on",
        remedy=f"give {name} as one",
    )
