"""Which gate each row of a table opens, by inner products with a bound on their rounding.

A sum of n products in any order is off by at most gamma_n |g| |x|, with gamma_n = n u / (1 - n u)
and u = 2^-53; |g| and |x| are the norms (Cauchy and Schwarz). A gate is proved for one row: there
it is about 0, and at most -m for all others, where m is far more than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.arrays import Floats, Ints

U = 2.0**-53
HELD = 1 << 22  # inner products at once
NEAR = 2.0**-10  # of the margin: an open gate is no further from 0
LARGEST = 1e150  # squares of norms are finite
UNDERFLOW = 2.0**-900


@dataclass(frozen=True)
class Opened:
    """Row v of a table opens the gate ``gate[v]`` (0: none), whose fine is within ``slip[v]`` of
    ``fine[v]``. Gate g is at most ``above[g]`` for rows that open it, and at most -``margin[g]``
    for all others; there is no gate 0, so nothing is fined."""

    gate: Ints
    fine: Floats
    slip: Floats
    above: Floats
    margin: Floats

    @classmethod
    def exactly(cls, gate: Ints, rows: Ints, gates: int) -> Opened:
        """Codes: a gate is 0 or at most -1."""
        margin = np.full(gates, np.inf)
        margin[rows] = 1.0
        nothing = np.zeros(len(gate))
        return cls(gate, nothing, nothing, np.zeros(gates), margin)


def gamma(n: int) -> float:
    """n u / (1 - n u), and more than enough for the rounding of this bound itself."""
    return (n + 2) * U / (1 - (n + 2) * U) * (1 + 2.0**-20)


def opened_by_products(gates: Floats, rows: Ints, seen: Floats) -> Opened | None:
    """The gates number `rows` on the coordinates `seen` of a table that they use; None unless each
    is opened by one row, which opens no other."""
    wanted, rounded = gates[rows], gamma(seen.shape[1])
    lengths, longest = _norms(wanted), float(_norms(seen).max())
    if not (lengths.max() < LARGEST and longest < LARGEST):  # not a number, neither
        return None
    slips = rounded * lengths * longest + UNDERFLOW
    own, others = np.empty(len(rows), np.int64), np.empty(len(rows))
    step = max(1, HELD // len(seen))
    for i in range(0, len(rows), step):
        s = wanted[i : i + step] @ seen.T
        index, part = np.arange(len(s)), slice(i, i + step)
        own[part] = s.argmax(1)
        s[index, own[part]] = -np.inf
        others[part] = s.max(1)
    if len(np.unique(own)) < len(own):
        return None
    margin = -(others + slips) * (1 - 2.0**-40)
    terms = wanted * seen[own]
    fine, slip = terms.sum(1), rounded * np.abs(terms).sum(1) + UNDERFLOW
    above = np.abs(fine) + slip
    if not (above <= NEAR * margin).all():
        return None
    out = Opened.exactly(np.zeros(len(seen), np.int64), rows, len(gates))
    out.gate[own], out.margin[rows], out.above[rows] = rows, margin, above
    values, slips = np.zeros(len(seen)), np.zeros(len(seen))
    values[own], slips[own] = fine, slip
    return Opened(out.gate, values, slips, out.above, out.margin)


def _norms(rows: Floats) -> Floats:
    """Rounded up."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((rows**2).sum(1)) * (1 + gamma(rows.shape[1])) + UNDERFLOW)
