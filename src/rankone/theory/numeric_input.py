"""Convert what a user passes to a statement of the paper: arrays, tensors, lists, numbers."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.errors import SettingError, VectorError


def as_floats(x: Any, what: str = "numbers") -> NDArray[np.float64]:
    """An array of float64 of any shape; tensors may require gradients or be of half precision."""
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
            f"these are not {what}: {reason}", remedy="give real numbers, equally many per row"
        ) from None


def as_labels(x: Any, count: int, what: str) -> NDArray[Any]:
    """One integer, string or other sortable value for each of `count` rows."""
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
    """A finite number as float."""
    try:
        if isinstance(x, str):
            raise TypeError
        found = float(x)
        if math.isfinite(found):
            return found
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass
    raise SettingError(f"{name} = {x!s:.40} is not a finite number", remedy="give a finite number")


def as_whole(name: str, x: Any, least: int = 1) -> int:
    """A whole number, at least `least`."""
    try:
        if not isinstance(x, bool) and operator.index(x) >= least:
            return operator.index(x)
    except (TypeError, ValueError, RuntimeError):
        pass
    wanted = f"a whole number of {least} or more"
    raise SettingError(f"{name} = {x!s:.40} is not {wanted}", remedy=f"give {wanted}")
