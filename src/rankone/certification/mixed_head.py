"""Heads of codes and distributions (`MixedCodes`) in balls: by bounds on the lead of a label.

For the label c of a code let e bound all |y_i - c_i|. Over the code c' of another label, which
differs from c in d >= 2 coordinates, c leads by

    sharp 2 (c - c') . y + (w_c - w_c') . z  >=  sharp d (1 - 2e) - sum_m range_m |z_m|.

The leader of distribution m leads, where z_m > 0, by

    lead_m z_m - sum_(m' != m) range_m' |z_m'| - 2 sharp sum_i |y_i|.

Only where neither is above 0 all logits are computed.
"""

from __future__ import annotations

import numpy as np
from flint import arb
from torch import nn

from rankone.arrays import Floats, Ints
from rankone.certification.attention_balls import array
from rankone.certification.ball_arithmetic import Balls, gamma, linear, up
from rankone.certification.leads import (
    Decoded,
    by_exact_logits,
    by_logits,
    float_mids,
    in_parts,
    largest,
)
from rankone.nn.arb_network import Vector, dot
from rankone.nn.evaluate import Numbers
from rankone.nn.mixed_codes import MixedCodes

WIDER = 1 + 2.0**-50  # for the rounding of a difference of two weights
LEAST = 2.0  # coordinates in which two codes differ: all have equally many ones


class MixedHead:
    """Margins are those of any head: half the lead of the label's logit, at most 1/2.

    ``cols`` are the coordinates that are read, in order; ``values`` of `Decoded` are their
    features.
    """

    def __init__(self, head: nn.Linear, codes: MixedCodes) -> None:
        self.codes, self.cols = codes, np.union1d(codes.at, codes.own)
        self.at, self.own, self.read = map(run_of, (codes.at, codes.own, self.cols))
        self.width = len(self.cols)
        self.weight = array(head.weight)
        if len(self.cols) < self.weight.shape[1]:
            self.weight = np.ascontiguousarray(self.weight[:, self.cols])
        self.offset = array(head.bias)[:, None]
        self.range = codes.range * WIDER

    def run(self, z: Numbers) -> tuple[Numbers, Ints]:
        """The features and the label of the largest logit, as the type of these features computes
        them. Where a label leads by more than the rounding of two logits, they are not needed."""
        own = z[self.read]
        y, rest = (z[at].astype(np.float64, copy=False) for at in (self.at, self.own))
        unit = float(np.finfo(z.dtype).eps) / 2
        with np.errstate(invalid="ignore"):
            exact = [Balls(x, np.zeros_like(x)) for x in (y, rest)]
            labels, lead = self.leader(exact[0], exact[1])
            slip = up(gamma(self.width + 2, unit) * self.terms(exact[0], exact[1]))
            doubt = ~(lead > 2 * slip)
        if doubt.any():
            weight, offset = (x.astype(z.dtype, copy=False) for x in (self.weight, self.offset))
            for part in in_parts(doubt, len(offset)):
                labels[part] = largest(weight @ own[:, part] + offset)
        return own, labels

    def leader(self, y: Balls, z: Balls, differ: float = LEAST) -> tuple[Ints, Floats]:
        """For every column a label and a lower bound on its lead, at most 0 where it is not known.
        Any two codes must differ in so many coordinates at least."""
        codes = self.codes
        labels, known = codes.nearest(y.mid, z.mid[:0])
        beside, lead = np.zeros(len(labels)), np.full(len(labels), -np.inf)
        some = busy(z)
        few = z[:, some]
        beside[some] = up((self.range @ (np.abs(few.mid) + few.rad)) * (1 + gamma(len(z.mid) + 2)))
        tokens, which = codes.mixtures(few.mid)
        tokens = some[tokens]
        labels[tokens], known[tokens] = codes.leader[which], False
        coded = np.flatnonzero(known)
        away = np.abs(y.mid[:, coded] - codes.codes.T[:, labels[coded]]) * WIDER + y.rad[:, coded]
        away, most = up(away.max(0, initial=0.0)), codes.sharp * differ
        size = most * (1 + 2 * away) + beside[coded]
        lead[coded] = less(most * (1 - 2 * away) - beside[coded], size)
        if len(tokens):
            sizes = up((np.abs(z.mid[:, tokens]) + z.rad[:, tokens]) * self.range[:, None])
            here = which, np.arange(len(tokens))
            sizes[here] = 0.0
            others = up(sizes.sum(0) * (1 + gamma(len(sizes))))
            written = np.abs(y.mid[:, tokens]) + y.rad[:, tokens]
            others += up(2 * codes.sharp * written.sum(0) * (1 + gamma(len(written) + 4)))
            own, off, least = z.mid[which, tokens], z.rad[which, tokens], codes.lead[which] / WIDER
            found = less(least * (own - off) - others, least * (own + off) + others)
            lead[tokens] = np.where(own > off, found, -np.inf)
        return labels, lead

    def terms(self, y: Balls, z: Balls) -> Floats:
        """At least the sum of the sizes of the numbers that a logit adds up."""
        some, size = busy(z), np.abs(y.mid) + y.rad
        found = self.codes.terms(size, z.mid[:0])
        found[some] += np.abs(self.codes.mixed).max(initial=0.0) * (
            np.abs(z.mid[:, some]) + z.rad[:, some]
        ).sum(0)
        return up(found * (1 + gamma(self.width + 8)))

    def decode(self, z: Balls) -> Decoded:
        y, rest = z[self.at], z[self.own]
        with np.errstate(invalid="ignore"):
            labels, lead = self.leader(y, rest)
            off = up(np.maximum(0.5 - lead / 2, 0.0))
        for part in in_parts(~(off < 0.5), len(self.offset)):
            logits = linear(self.weight, z[:, part][self.read]).shifted(self.offset)
            labels[part], off[part] = by_logits(logits)
        return Decoded(labels, off, z[self.read])

    def exact(self, z: Vector) -> tuple[int, arb, Vector]:
        """The same in Arb: label, distance and values; proved where the distance is below 1/2."""
        y, rest = ([z[i] for i in at.tolist()] for at in (self.codes.at, self.codes.own))
        values = [z[i] for i in self.cols.tolist()]
        near = [float_mids(x)[:, None] for x in (y, rest)]
        (label,), (known,) = self.codes.nearest(near[0], near[1].reshape(len(rest), 1))
        if known:
            lead = self._exact_lead(y, rest, near[1].reshape(len(rest), 1), int(label))
            if lead > 0:
                return int(label), arb.max(arb(0.5) - lead / 2, arb(0)), values
        logits = []
        for row, b in zip(self.weight, self.offset[:, 0].tolist(), strict=True):
            at = np.flatnonzero(row).tolist()
            logits.append(dot([arb(float(row[i])) for i in at], [values[i] for i in at]) + b)
        return *by_exact_logits(logits), values

    def _exact_lead(self, y: Vector, z: Vector, mid: Floats, label: int) -> arb:
        """A lower bound on it, or what is not above 0."""
        codes, sharp = self.codes, arb(self.codes.sharp)
        sizes = [abs(x) * r for x, r in zip(z, self.range.tolist(), strict=True)]
        tokens, which = codes.mixtures(mid)
        if not len(tokens):
            pairs = zip(y, codes.codes[label].tolist(), strict=True)
            away = max((abs(a - c) for a, c in pairs), key=lambda x: float(x.upper()))
            return arb(sharp * LEAST * (1 - 2 * away.upper()) - sum(sizes, arb(0)))
        m = int(which[0])
        rest = sum(sizes[:m] + sizes[m + 1 :], arb(0)) + 2 * sharp * sum(map(abs, y), arb(0))
        found = z[m].lower() * float(codes.lead[m]) / WIDER - rest
        return arb(found)


def run_of(at: Ints) -> Ints | slice:
    """The same numbers as a slice, if they follow each other: what it takes is not copied."""
    together = len(at) > 0 and at[-1] - at[0] == len(at) - 1
    return slice(int(at[0]), int(at[-1]) + 1) if together else at


def busy(z: Balls) -> Ints:
    """The columns that are not 0 all over: with distributions there are few."""
    return np.flatnonzero(z.mid.any(0) | z.rad.any(0))


def less(x: Floats, size: Floats) -> Floats:
    """x, rounded down: made in a few roundings (less than 64) of numbers that add up to `size`."""
    return np.asarray(x - up(2.0**-46 * size))
