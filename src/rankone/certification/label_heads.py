"""From features to labels: which label the head chooses, and by what margin."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from flint import arb
from torch import nn

from rankone.arrays import Floats, Ints
from rankone.certification.attention_balls import array
from rankone.certification.ball_arithmetic import Balls, U, gamma, linear, total, up
from rankone.certification.leads import (
    OVERFLOW,
    Decoded,
    by_exact_logits,
    by_logits,
    float_mids,
    in_parts,
    largest,
    lead_of,
)
from rankone.certification.mixed_head import MixedHead
from rankone.nn.arb_network import Vector, dot
from rankone.nn.evaluate import Numbers
from rankone.nn.label_codes import LabelCodes
from rankone.nn.mixed_codes import MixedCodes

__all__ = ["OVERFLOW", "CodeHead", "Head", "LinearHead", "MixedHead", "NoHead", "NumberHead"]


class NumberHead:
    """The head with row 2c p and bias -c^2 for label c = 1, 2, ...: it chooses the c nearest y.

    y = p . z, and the logit of c leads that of c' by (c - c') (2y - c - c') >= 1 - 2 |y - c|. Rows
    are 2c p only up to rounding; with dev_i the largest |row_ci - 2c p_i|, a lead is off by at most
    2 dev . |z|, which counts as dev . |z| more distance between y and c. A y beyond the first or
    the last label counts as on it.
    """

    def __init__(self, head: nn.Linear) -> None:
        weight, bias = array(head.weight), array(head.bias)
        self.weight, self.offset = weight, bias[:, None]
        self.p, self.count, self.width = weight[0] / 2, len(bias), 1
        self.dev = deviation(weight)

    @cached_property
    def exactly(self) -> tuple[list[Vector], Vector]:
        """Weight and bias in Arb."""
        return in_arb(self.weight, self.offset)

    @staticmethod
    def fits(head: nn.Linear) -> bool:
        """Whether a head is of this form."""
        weight, number = array(head.weight), np.arange(1.0, len(head.bias) + 1)
        if not (array(head.bias) == -(number**2)).all():
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            aimed = number[:, None] * weight[0]
            rows = np.abs(weight - aimed) <= 4 * U * np.abs(aimed)
        return bool((rows & np.isfinite(aimed)).all())

    def run(self, z: Numbers) -> tuple[Numbers, Ints]:
        """y and the label of the largest logit, as the type of these features computes them.

        A logit is the sum of d + 1 numbers whose sizes add up to at most T = 2L |p| . |z| + L^2,
        with L labels, and `fits` lets rows be off by 4 units of float64: with u the unit of the
        type, it is off by gamma_(d+5) T, and y, in float64, by gamma_d T / 2. Where that is less
        than the lead, the nearest label wins and the logits need not be computed.
        """
        wide = z.astype(np.float64, copy=False)
        y = np.asarray(self.p @ wide)
        labels = np.clip(np.rint(y), 1, self.count)
        terms = 2 * self.count * (np.abs(self.p) @ np.abs(wide)) + self.count**2
        unit = float(np.finfo(z.dtype).eps) / 2
        doubt = ~(np.abs(y - labels) + gamma(2 * len(z) + 5, unit) * terms < 0.5)
        labels = labels.astype(np.int64) - 1
        weight, offset = (x.astype(z.dtype, copy=False) for x in (self.weight, self.offset))
        if doubt.any():
            labels[doubt] = largest(weight @ z[:, doubt] + offset)
        return y[None] if wide is z else (weight[0] / 2 @ z)[None], labels

    def decode(self, z: Balls) -> Decoded:
        y = linear(self.p, z)
        with np.errstate(invalid="ignore"):
            within = np.clip(y.mid, 1, self.count)
            number = np.rint(within)
            slip = total(self.dev[:, None] * (np.abs(z.mid) + z.rad))
            off = up(np.abs(within - number) + y.rad + slip)  # the difference is exact
        number = np.where(np.isfinite(number), number, 1)
        return Decoded(number.astype(np.int64) - 1, off, Balls(y.mid[None], y.rad[None]))

    def exact(self, z: Vector) -> tuple[int, arb, Vector]:
        """The same in Arb: label, distance and values; proved where the distance is below 1/2."""
        rows, bias = self.exactly
        y = dot([x / 2 for x in rows[0]], z)
        label = _nearest(y, self.count)
        off = abs(arb.max(arb.min(y, arb(self.count)), arb(1)) - (label + 1))
        lead = lead_of([dot(row, z) + b for row, b in zip(rows, bias, strict=True)], label)
        return label, off if lead > 0 else arb("nan"), [y]


class CodeHead:
    """The head with row 2c and bias -|c|^2 for the code c of a label: the nearest code wins.

    Codes are whole numbers, few coordinates long (`LabelCodes`). Where the features y are within
    e < 1/2 of a code in every coordinate, its logit leads by at least 1 - 2e, so ``off`` = e is
    what half the lead leaves of 1/2, or more. Only where y is near no code all logits are needed.
    """

    def __init__(self, head: nn.Linear, codes: LabelCodes) -> None:
        self.codes, self.width = codes, len(codes.at)
        self.weight, self.offset = array(head.weight), array(head.bias)[:, None]

    def run(self, z: Numbers) -> tuple[Numbers, Ints]:
        """y and the label of the largest logit, as the type of these features computes them.

        A logit is the sum of s + 1 numbers that are not 0. If it is off by at most `slip`
        (`LabelCodes.slip`), and y is e away from a code, this one leads where 2 slip < 1 - 2e.
        """
        y = z[self.codes.at]
        wide = y.astype(np.float64, copy=False)
        labels, known = self.codes.nearest(wide)
        unit = float(np.finfo(z.dtype).eps) / 2
        with np.errstate(invalid="ignore"):
            far = self.codes.away(wide, labels) + self.codes.slip(wide, unit)
            doubt = ~(known & (up(far) < 0.5))
        if doubt.any():
            weight, offset = (x.astype(z.dtype, copy=False) for x in (self.weight, self.offset))
            for part in in_parts(doubt, len(self.offset)):
                labels[part] = largest(weight @ z[:, part] + offset)
        return y, labels

    def decode(self, z: Balls) -> Decoded:
        y = z[self.codes.at]
        labels, known = self.codes.nearest(y.mid)
        with np.errstate(invalid="ignore"):
            off = up((np.abs(y.mid - self.codes.codes.T[:, labels]) + y.rad).max(0))
        for part in in_parts(~(known & (off < 0.5)), len(self.offset)):
            logits = linear(self.weight[:, self.codes.at], y[:, part]).shifted(self.offset)
            labels[part], off[part] = by_logits(logits)
        return Decoded(labels, off, y)

    def exact(self, z: Vector) -> tuple[int, arb, Vector]:
        y = [z[i] for i in self.codes.at.tolist()]
        rows = self.codes.codes
        near = float_mids(y)
        (label,), (known,) = self.codes.nearest(near[:, None])
        pairs = zip(y, rows[label].tolist(), strict=True)
        off = max((abs(a - c) for a, c in pairs), key=lambda x: float(x.upper()))
        if known and off < 0.5:
            return int(label), off, y
        logits = []
        for row, b in zip(rows.tolist(), self.offset[:, 0].tolist(), strict=True):
            logits.append(dot([arb(2 * c) for c in row], y) + b)
        return *by_exact_logits(logits), y


class LinearHead:
    """Any other head: the largest logit wins; the margin is half its lead over the next."""

    def __init__(self, head: nn.Linear) -> None:
        self.weight, self.bias, self.width = array(head.weight), array(head.bias), len(head.bias)

    @cached_property
    def exactly(self) -> tuple[list[Vector], Vector]:
        """Weight and bias in Arb."""
        return in_arb(self.weight, self.bias[:, None])

    def run(self, z: Numbers) -> tuple[Numbers, Ints]:
        weight, bias = (x.astype(z.dtype, copy=False) for x in (self.weight, self.bias))
        logits = weight @ z + bias[:, None]
        return logits, largest(logits)

    def decode(self, z: Balls) -> Decoded:
        logits = linear(self.weight, z).shifted(self.bias[:, None])
        return Decoded(*by_logits(logits), logits)

    def exact(self, z: Vector) -> tuple[int, arb, Vector]:
        logits = [dot(row, z) + b for row, b in zip(*self.exactly, strict=True)]
        return *by_exact_logits(logits), logits


class NoHead:
    """A head of zeros chooses no label: the model has context ids only."""

    def __init__(self, head: nn.Linear) -> None:
        self.width = head.weight.shape[1]

    def run(self, z: Numbers) -> tuple[Numbers, Ints]:
        return z, np.zeros(z.shape[1], dtype=np.int64)

    def decode(self, z: Balls) -> Decoded:
        nothing = np.zeros(z.mid.shape[1])
        return Decoded(nothing.astype(np.int64), nothing, z)

    def exact(self, z: Vector) -> tuple[int, arb, Vector]:
        return 0, arb(0), z


Head = NumberHead | CodeHead | MixedHead | LinearHead | NoHead


def head_of(head: nn.Linear) -> Head:
    if not head.weight.any() and not head.bias.any():
        return NoHead(head)
    if NumberHead.fits(head):
        return NumberHead(head)
    codes = LabelCodes.of(head)
    if codes is not None:
        return CodeHead(head, codes)
    mixed = MixedCodes.of(head)
    return LinearHead(head) if mixed is None else MixedHead(head, mixed)


def in_arb(weight: Floats, offset: Floats) -> tuple[list[Vector], Vector]:
    """The numbers of a head in Arb, which holds them exactly."""
    return [[arb(x) for x in row] for row in weight.tolist()], [arb(x) for (x,) in offset.tolist()]


def deviation(weight: Floats) -> Floats:
    """How far row c may be from c times the first row, in each coordinate."""
    number = np.arange(1.0, len(weight) + 1)[:, None]
    aimed = number * weight[0]
    return np.asarray(up((np.abs(weight - aimed) * (1 + U) + U * np.abs(aimed)).max(0)))


def _nearest(y: arb, count: int) -> int:
    if not y.is_finite():
        return 0
    y = arb.max(arb.min(y, arb(count)), arb(1))  # y may be too large for any float
    whole = (y + 0.5).floor().unique_fmpz()
    nearest = int(whole) if whole is not None else round(float(y.mid()))
    return min(max(nearest, 1), count) - 1
