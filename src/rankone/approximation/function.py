"""The function to approximate, and what Proposition 1 asks of it, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.approximation.grid import Floats
from rankone.errors import FunctionError

Function = Callable[[Floats], Any]

PROBES = 64
TOLERANCE = 1e-9  # of the size of the values: what adding up in another order may change


@dataclass(frozen=True)
class Target:
    """f from (batch, n, d) to (batch, n, m); every value it gives is checked.

    ``outputs`` is m, ``name`` how messages call it.
    """

    function: Function
    name: str
    outputs: int

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
    try:
        with np.errstate(all="ignore"):  # what is not finite is told by us
            result = function(x.copy())
        y = np.asarray(result.detach() if hasattr(result, "detach") else result)
        y = y.astype(np.float64) if y.dtype.kind in "fiub" else np.empty(0)
    except (Exception, SystemExit) as error:
        told = " ".join(str(error).split())[:200]
        raise FunctionError(
            f"fails on an input of shape {x.shape}: {type(error).__name__}: {told}",
            where=name,
            remedy="it must take an array (batch, n, d) and return (batch, n, m)",
        ) from error
    if y.ndim != 3 or y.shape[:2] != x.shape[:2] or not y.shape[2]:
        found = f"shape {y.shape}" if y.size else "no real numbers"
        raise FunctionError(
            f"gives {found} for an input of shape {x.shape}",
            where=name,
            remedy=f"return an array ({x.shape[0]}, {x.shape[1]}, m): a row of m for each token",
        )
    return y


def check_function(
    function: Function, probes: Floats, name: str, *, positions: bool = False
) -> Target:
    """Refuse what is not a deterministic, equivariant function of each sequence by itself.

    `probes` are inputs (batch, n, d) to try it on.
    """
    target = Target(function, name, evaluate(function, probes[:1], name).shape[-1])
    y = target(probes)
    again = target(probes)
    compare(
        name, probes, y, again, "not deterministic", "draw what is random once, outside", exact=True
    )
    alone = np.concatenate([target(probe[None]) for probe in probes])
    compare(name, probes, y, alone, "mixes the sequences of a batch", "treat axis 0 as a batch")
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
        target.name,
        x,
        y,
        np.take_along_axis(target(permuted), back, 1),
        "not permutation equivariant",
        "take positions=True (--positions), for functions of the order too",
        then="with the tokens in another order, put back,",
    )


def compare(
    name: str,
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
    if off[row] > (0.0 if exact else TOLERANCE * (1 + float(np.abs(y).max()))):
        raise FunctionError(
            f"{what}: at {show(x[row])} it gives {show(y[row])}, {then} {show(again[row])}",
            where=name,
            remedy=remedy,
        )


def show(x: Floats) -> str:
    """An input or a value in a message."""
    text = np.array2string(np.asarray(x), precision=6, separator=", ", threshold=24)
    return " ".join(text.split())
