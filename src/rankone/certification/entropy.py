"""How far is the cross-entropy of the exact network on a corpus above the least possible?

The least is the conditional entropy of the labels given the contexts: no function of the context
has a smaller mean of -log p(label). Of a head of codes and distributions (`MixedHead`) most labels
need not be looked at. At a code, all others lie lower by `sharp` for every coordinate in which
their codes differ from it; if d is the least number of these, and y no more than e from the code,

    -log p <= sum of e^-lead over the others <= (labels - 1) e^-(sharp d (1 - 2e) - ...).

At a distribution, labels down to e^-`FAR` of the largest share are added up one by one, for all
others an upper bound counts. Where neither is the case, all logits are computed.
"""

from __future__ import annotations

from math import fsum, inf, nextafter

import numpy as np
from flint import arb, ctx

from rankone.arrays import Floats, Ints
from rankone.certification.ball_arithmetic import Balls, U, exp, gamma, linear, up
from rankone.certification.leads import in_parts
from rankone.certification.mixed_head import WIDER, MixedHead, busy
from rankone.deadline import tick

FAR = 48.0
HELD = 1 << 22  # inner products of codes at once
BITS = 128
TERMS = gamma(80)  # of a logit: codes have at most 62 coordinates


class Losses:
    """Upper bounds on -log p of the labels `gold` (-1: not asked), piece by piece.

    Tokens that have one of the `contexts` have the same features in the exact network.
    """

    def __init__(self, head: MixedHead, contexts: Ints, gold: Ints) -> None:
        self.head, self.codes, self.contexts, self.gold = head, head.codes, contexts, gold
        self.apart = least_difference(self.codes.codes)
        self.sizes = np.abs(self.codes.mixed).max(0, initial=0.0)[:, None]
        self.near = [self._near(m) for m in range(self.codes.mixed.shape[1])]
        self.found: list[Floats] = []

    def _near(self, m: int) -> tuple[Ints, float]:
        """The labels of a distribution that are added up, and the largest number of the others."""
        column = self.codes.mixed[:, m]
        near = column > column[self.codes.leader[m]] - FAR
        return np.flatnonzero(near), float(column[~near].max(initial=-inf))

    def see(self, first: int, z: Balls) -> None:
        """Features of the tokens from number `first` on."""
        tick()
        own = slice(first, first + z.mid.shape[1])
        gold, contexts = self.gold[own], self.contexts[own]
        y, rest = z[self.head.at], z[self.head.own]
        with np.errstate(invalid="ignore", over="ignore"):
            labels, lead = self.head.leader(y, rest, float(self.apart))
            least = up((len(self.codes.codes) - 1) * exp(-np.maximum(lead, 0.0)) * WIDER)
            found = np.where((lead > 0) & (labels == gold), least, inf)
            found[gold < 0] = 0.0
            some = busy(rest)
            tokens, which = self.codes.mixtures(rest.mid[:, some])
            tokens, which = some[tokens], which[gold[some[tokens]] >= 0]
            tokens = tokens[gold[tokens] >= 0]
            if len(tokens):
                given = y[:, tokens], rest[:, tokens], which, gold[tokens], contexts[tokens]
                found[tokens] = self._of_distributions(*given)
            for part in in_parts(~(found < inf), len(self.head.offset)):
                logits = linear(self.head.weight, z[:, part][self.head.read])
                found[part] = by_all(logits.shifted(self.head.offset), gold[part])
        self.found.append(found)

    def total(self) -> float:
        """Their sum, rounded up; infinite if it is not known."""
        if not all(np.isfinite(part).all() for part in self.found):
            return inf
        return nextafter(fsum(x for part in self.found for x in part.tolist()), inf)

    def _of_distributions(
        self, y: Balls, z: Balls, which: Ints, gold: Ints, contexts: Ints
    ) -> Floats:
        """log sum_l e^logit_l, once for every context, less the logit of each token's own label."""
        share = self.sizes * (np.abs(z.mid) + z.rad)
        share[which, np.arange(len(which))] = 0.0
        others = up(share.sum(0) * (1 + gamma(len(share) + 4)))  # of all other distributions
        _, one, back = np.unique(contexts, return_index=True, return_inverse=True)
        near = [self.near[m][0] for m in which[one].tolist()]
        count = np.array([len(labels) for labels in near])
        upper = self._logits(y, z, which, others, np.repeat(one, count), np.concatenate(near))
        starts, owner = np.cumsum(count) - count, np.repeat(np.arange(len(one)), count)
        top = np.maximum.reduceat(upper.upper(), starts)
        parts = exp(np.minimum(np.nextafter(upper.upper() - top[owner], inf), 0.0))
        total = np.add.reduceat(parts, starts) * (1 + gamma(int(count.max()) + 8))
        rest = np.nextafter(self._beyond(y, z, which, others, one) - top, inf)
        left = len(self.codes.codes) - count
        beyond = np.where(rest <= 0, left * exp(np.minimum(rest, 0.0)) * WIDER, inf)
        whole = np.nextafter(top + log_up(up(total + np.where(left > 0, beyond, 0.0))), inf)
        own = self._logits(y, z, which, others, np.arange(len(gold)), gold)
        return np.asarray(np.nextafter(whole[back] - own.lower(), inf))

    def _logits(
        self, y: Balls, z: Balls, which: Ints, others: Floats, token: Ints, label: Ints
    ) -> Balls:
        """For pairs of a token and a label, without the bias, which is the same for all labels."""
        m = which[token]
        weight, mid, rad = self.codes.mixed[label, m], z.mid[m, token], z.rad[m, token]
        out, size = weight * mid, np.abs(weight * mid)
        off = np.abs(weight) * rad + others[token]
        twice = 2 * self.codes.sharp
        for i in range(len(self.codes.at)):
            own = np.flatnonzero(self.codes.codes[label, i])
            at = token[own]
            out[own] += twice * y.mid[i, at]
            size[own] += twice * np.abs(y.mid[i, at])
            off[own] += twice * y.rad[i, at]
        return Balls(out, up((off + TERMS * size) * (1 + TERMS)))

    def _beyond(self, y: Balls, z: Balls, which: Ints, others: Floats, token: Ints) -> Floats:
        """An upper bound on the logits that are not added up one by one."""
        m = which[token]
        mid, rad = z.mid[m, token], up(z.rad[m, token])
        most = np.array([self.near[i][1] for i in m.tolist()])
        most = np.where(np.isfinite(most), most, -1e300)
        bound = most * np.where(most > 0, mid + rad, mid - rad)
        written = 2 * self.codes.sharp * (np.abs(y.mid) + y.rad)[:, token].sum(0)
        more = up((written + others[token] + TERMS * np.abs(bound)) * (1 + TERMS))
        return np.where(mid > rad, np.nextafter(bound + more, inf), inf)


def by_all(logits: Balls, gold: Ints) -> Floats:
    """log sum_l e^logit_l less the logit of each token's label, at most."""
    upper = logits.upper()
    top = upper.max(0)
    total = exp(np.minimum(np.nextafter(upper - top, inf), 0.0)).sum(0)
    whole = np.nextafter(top + log_up(up(total * (1 + gamma(len(upper) + 8)))), inf)
    return np.asarray(np.nextafter(whole - logits.lower()[gold, np.arange(len(gold))], inf))


def log_up(x: Floats) -> Floats:
    """log x for x >= 1, rounded up, whatever the library's log is worth.

    With t what it gives, log x = t + log(x e^-t) <= t + x e^-t - 1, and `exp` is off by less than
    3u of itself.
    """
    t = np.maximum(np.log(x), 0.0)
    more = np.maximum(x * exp(-t) * (1 + 8 * U) - 1, 0.0)
    return np.asarray(np.nextafter(t + up(more + 4 * U), inf))


def least_difference(codes: Floats) -> int:
    """In how many coordinates two different rows of zeros and ones with equally many ones differ at
    least. Their inner products are whole numbers, also in single precision."""
    single, most = codes.astype(np.float32), 0.0
    step = max(1, HELD // max(1, len(codes)))
    for i in range(0, len(codes), step):
        tick()
        products = single[i : i + step] @ single[i:].T
        products[np.arange(len(products)), np.arange(len(products))] = 0.0
        most = max(most, float(products.max(initial=0.0)))
    return round(2 * (float(codes[0].sum()) - most))


def least_total(contexts: Ints, gold: Ints) -> arb:
    """The sum of -log of the share of each asked label among those of its context, in balls."""
    asked = np.flatnonzero(gold >= 0)
    size = int(gold.max(initial=0)) + 1
    _, counts = np.unique(contexts[asked] * size + gold[asked], return_counts=True)
    _, totals = np.unique(contexts[asked], return_counts=True)
    with ctx.workprec(BITS):
        whole, own = map(_sum_of_logs, (totals, counts))
        return whole - own


def _sum_of_logs(counts: Ints) -> arb:
    """sum of n log n."""
    values, often = np.unique(counts, return_counts=True)
    pairs = zip(values.tolist(), often.tolist(), strict=True)
    return sum((arb(m * n) * arb(n).log() for n, m in pairs), arb(0))
