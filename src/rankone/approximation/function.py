"""The function to approximate, and what Proposition 1 asks of it, checked."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.approximation.grid import Floats
from rankone.errors import FunctionError

Function = Callable[[Floats], Any]

PROBES = 64
ULPS = 2  # units in the last place that f may be off, of what it takes and of what it gives
EPSILON = float(np.finfo(np.float64).eps)
ORDER = "take positions=True (--positions), for functions of the order too"
RETRIED = 256  # sequences that a function which fails is asked for one by one


@dataclass(frozen=True)
class Target:
    """f from (batch, n, d) to (batch, n, m); every value it gives is checked.

    ``outputs`` is m, ``name`` how messages call it, ``epsilon`` and ``tiny`` the rounding of its
    numbers: of those of size 1, and of the smallest.
    """

    function: Function
    name: str
    outputs: int
    epsilon: float = EPSILON
    tiny: float = 5e-324

    def rounding(self, y: Floats) -> float:
        """How far two values may be apart that differ by rounding alone, among values y.

        A function may lose digits on the way, as a difference of its values has them; but an offset
        that all of them share must not hide what is more than its last digits.
        """
        lost = max(1e-9, 64 * self.epsilon)
        return float(lost * (y.max() - y.min()) + 64 * self.epsilon * np.abs(y).max())

    def __call__(self, x: Floats) -> Floats:
        """f(x), asked on a copy; refuses a shape or a number that cannot be used."""
        y = evaluate(self.function, x, self.name)
        if y.shape[-1] != self.outputs:
            raise FunctionError(
                f"gives {y.shape[-1]} numbers per token for some inputs, {self.outputs} for others",
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
    """What it returns, as an array of float64 (batch, n, m)."""
    y = ask(function, x, name)
    if y.ndim != 3 or y.shape[:2] != x.shape[:2] or not y.shape[2] or y.dtype.kind not in "fiub":
        found = f"shape {y.shape}" if y.dtype.kind in "fiub" else f"numbers of type {y.dtype}"
        raise FunctionError(
            f"gives {found} for an input of shape {x.shape}",
            where=name,
            remedy=f"return m real numbers for each token: ({x.shape[0]}, {x.shape[1]}, m)",
        )
    return y.astype(np.float64)


def ask(function: Function, x: Floats, name: str) -> NDArray[Any]:
    """What it returns; what it prints goes where messages go."""
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
            f"fails {where}: {told(error)}",
            where=name,
            remedy="it must take an array (batch, n, d) and return (batch, n, m)",
        ) from error


def told(error: BaseException) -> str:
    """What somebody else's code has to say, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def check_function(
    function: Function, probes: Floats, name: str, *, positions: bool = False
) -> Target:
    """Refuse what is not a deterministic, equivariant function of each sequence by itself.

    `probes` are inputs (batch, n, d) to try it on.
    """
    dtype = ask(function, probes[:1], name).dtype
    numbers = np.finfo(dtype if dtype.kind == "f" else np.float64)
    rounding = max(float(numbers.eps), EPSILON), max(float(numbers.smallest_subnormal), 5e-324)
    outputs = evaluate(function, probes[:1], name).shape[-1]
    target = Target(function, name, outputs, *rounding)
    y = target(probes)
    remedy = "draw what is random once, outside of it"
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
    compare(
        target,
        x,
        y,
        np.take_along_axis(target(permuted), back, 1),
        "not permutation equivariant",
        ORDER,
        then="with the tokens in another order, put back,",
    )


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
    """Refuse f unless both values of f(x) are the same, up to rounding if not `exact`."""
    off = np.abs(again - y).max((1, 2))
    row = int(off.argmax())
    if off[row] > (0.0 if exact else target.rounding(y)):
        raise FunctionError(
            f"{what}: at {show(x[row])} it gives {show(y[row])}, {then} {show(again[row])}",
            where=target.name,
            remedy=remedy,
        )


def show(x: Floats) -> str:
    """An input or a value in a message."""
    text = np.array2string(np.asarray(x), precision=10, separator=", ", threshold=24)
    return " ".join(text.split())
