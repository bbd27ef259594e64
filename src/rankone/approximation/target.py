"""The function to approximate, checked against the assumptions of Proposition 1."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Floats
from rankone.errors import FunctionError

Function = Callable[[Floats], Any]

PROBES = 64
ULPS = 2  # units in the last place that f may be off, in its input and its output
EPSILON = float(np.finfo(np.float64).eps)
ORDER = "use positions=True (--positions) if the order of tokens matters"
RETRIED = 256  # sequences tried one by one after a failure


@dataclass(frozen=True)
class Target:
    """f from (batch, n, d) to (batch, n, m); every value it returns is checked.

    ``outputs`` is m, ``name`` its name in messages, ``epsilon`` and ``tiny`` the rounding of its
    numbers: of numbers of size 1, and of the smallest.
    """

    function: Function
    name: str
    outputs: int
    epsilon: float = EPSILON
    tiny: float = 5e-324

    def rounding(self, y: Floats) -> float:
        """How far apart two values of f may be that differ by rounding alone, among values y.

        A function may lose some digits of the differences between its values, but an offset shared
        by all values must not hide more than its own last digits.
        """
        lost = max(1e-9, 64 * self.epsilon)
        return float(lost * (y.max() - y.min()) + 64 * self.epsilon * np.abs(y).max())

    def __call__(self, x: Floats) -> Floats:
        """f(x), evaluated on a copy; raises an error for a bad shape or a number not finite."""
        y = evaluate(self.function, x, self.name)
        if y.shape[-1] != self.outputs:
            raise FunctionError(
                f"returns {y.shape[-1]} numbers per token here, {self.outputs} elsewhere",
                where=self.name,
                remedy="return (batch, n, m) with the same m for every input",
            )
        if not np.isfinite(y).all():
            row = int(np.flatnonzero(~np.isfinite(y).all((1, 2)))[0])
            raise FunctionError(
                f"is {show(y[row])} at {show(x[row])}",
                where=self.name,
                remedy="choose a domain on which it is finite",
            )
        return y


def evaluate(function: Function, x: Floats, name: str) -> Floats:
    """What the function returns, as an array of float64 (batch, n, m)."""
    y = ask(function, x, name)
    if y.ndim != 3 or y.shape[:2] != x.shape[:2] or not y.shape[2] or y.dtype.kind not in "fiub":
        found = f"shape {y.shape}" if y.dtype.kind in "fiub" else f"numbers of type {y.dtype}"
        raise FunctionError(
            f"returns {found} for an input of shape {x.shape}",
            where=name,
            remedy=f"return m real numbers for each token: ({x.shape[0]}, {x.shape[1]}, m)",
        )
    return y.astype(np.float64)


def ask(function: Function, x: Floats, name: str) -> NDArray[Any]:
    """What the function returns; what it prints goes to stderr."""
    try:
        with np.errstate(all="ignore"), contextlib.redirect_stdout(sys.stderr):
            result = function(x.copy())
            return np.asarray(result.detach() if hasattr(result, "detach") else result)
    except (Exception, SystemExit) as error:
        if len(x) > 1:
            for row in x[:RETRIED]:
                ask(function, row[None], name)
        where = f"at {show(x[0])}" if len(x) == 1 else f"on an input of shape {x.shape}"
        raise FunctionError(
            f"fails {where}: {one_line(error)}",
            where=name,
            remedy="it must take an array (batch, n, d) and return (batch, n, m)",
        ) from error


def one_line(error: BaseException) -> str:
    """An error of the user's code, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def check_function(
    function: Function, probes: Floats, name: str, *, positions: bool = False
) -> Target:
    """Check that f is a deterministic, equivariant function of each sequence by itself.

    `probes` are inputs (batch, n, d) to test it on.
    """
    dtype = ask(function, probes[:1], name).dtype
    numbers = np.finfo(dtype if dtype.kind == "f" else np.float64)
    rounding = max(float(numbers.eps), EPSILON), max(float(numbers.smallest_subnormal), 5e-324)
    outputs = evaluate(function, probes[:1], name).shape[-1]
    target = Target(function, name, outputs, *rounding)
    y = target(probes)
    remedy = "draw random numbers once, outside of the function"
    compare(target, probes, y, target(probes), "not deterministic", remedy, exact=True)
    alone = np.concatenate([target(probe[None]) for probe in probes])
    compare(target, probes, y, alone, "mixes the sequences of a batch", "treat axis 0 as a batch")
    if not positions:
        tokens = list(range(probes.shape[1]))
        # A swap and a rotation generate all permutations.
        for order in ([*tokens[1::-1], *tokens[2:]], tokens[1:] + tokens[:1]):
            check_order(target, probes, y, np.tile(order, (len(probes), 1)))
    return target


def check_order(target: Target, x: Floats, y: Floats, order: NDArray[np.int64]) -> None:
    """f of the permuted x must be y permuted; `order` has a permutation per sequence."""
    permuted = np.take_along_axis(x, order[..., None], 1)
    back = np.argsort(order, 1)[..., None]
    again = np.take_along_axis(target(permuted), back, 1)
    then = "and with permuted tokens"
    compare(target, x, y, again, "not permutation equivariant", ORDER, then=then)


def compare(
    target: Target,
    x: Floats,
    y: Floats,
    again: Floats,
    what: str,
    remedy: str,
    *,
    then: str = "then",
    exact: bool = False,
) -> None:
    """Raise an error unless both values of f(x) are equal, up to rounding if not `exact`."""
    off = np.abs(again - y).max((1, 2))
    row = int(off.argmax())
    if off[row] > (0.0 if exact else target.rounding(y)):
        raise FunctionError(
            f"{what}: at {show(x[row])} it returns {show(y[row])}, {then} {show(again[row])}",
            where=target.name,
            remedy=remedy,
        )


def show(x: Floats) -> str:
    """An input or a value in a message."""
    text = np.array2string(np.asarray(x), precision=10, separator=", ", threshold=24)
    return " ".join(text.split())
