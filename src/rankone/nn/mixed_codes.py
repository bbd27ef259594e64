"""Heads of many labels that also give distributions: codes of zeros and ones, and mixtures."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from rankone.arrays import Bools, Floats, Ints

MOST = 62  # coordinates of codes: packed into one number


@dataclass(frozen=True)
class MixedCodes:
    """A head whose logits are ``sharp`` (2 c . y - |c|^2) + w . z, for the code c of a label.

    y are the features in the coordinates ``at``, z those in the coordinates ``own``. Codes are rows
    of zeros and ones with equally many ones, and differ. So for y = c and z = 0 the label of c
    leads by ``sharp`` for every coordinate in which another code differs, and at least by twice
    that; if each y_i is within e of c_i, by that times 1 - 2e. For y = 0 all labels are equal; then
    z = e_m gives them the logits w_m, column m of ``mixed``, of which that of ``leader[m]`` is the
    largest, by ``lead[m]``.

    ``keys`` are the codes as single numbers, in order, those of the labels ``order``; ``range[m]``
    is by how much the numbers of column m differ, and ``largest`` the size of the largest of all.
    """

    at: Ints
    own: Ints
    codes: Floats
    sharp: float
    mixed: Floats
    leader: Ints
    lead: Floats
    range: Floats
    keys: NDArray[np.uint64]
    order: Ints
    largest: float

    @classmethod
    def of(cls, head: nn.Linear) -> MixedCodes | None:
        """None unless the weights are just that."""
        weight, bias = (x.detach().double().numpy() for x in (head.weight, head.bias))
        seen = np.flatnonzero(weight.any(0))
        high, least = weight[:, seen].max(0), weight[:, seen].min(0)
        plain = ((weight[:, seen] == 0) | (weight[:, seen] == high)).all(0) & (least >= 0)
        coded, own = seen[plain], seen[~plain]
        tops = np.unique(high[plain])
        if len(bias) < 2 or not 2 <= len(coded) <= MOST or len(tops) > 1:
            return None
        sharp, codes = float(tops[0]) / 2, (weight[:, coded] > 0).astype(np.float64)
        ones = codes.sum(1)
        if np.ptp(ones) or not (bias == -sharp * ones).all():
            return None
        keys = packed(codes.T)
        order = np.argsort(keys, kind="stable")
        if (np.diff(keys[order]) == 0).any():
            return None
        mixed = weight[:, own]
        leader = mixed.argmax(0)
        top = mixed[leader, np.arange(len(own))]
        others = mixed.copy()
        others[leader, np.arange(len(own))] = -np.inf
        lead = top - others.max(0, initial=-np.inf)
        if len(own) and not lead.min() > 0:
            return None
        spread = top - mixed.min(0, initial=np.inf)
        return cls(
            coded,
            own,
            codes,
            sharp,
            mixed,
            leader,
            lead,
            spread,
            keys[order],
            np.asarray(order),
            float(max(mixed.max(initial=0.0), -mixed.min(initial=0.0))),
        )

    def among(self, kept: Bools) -> MixedCodes:
        """The same without the distributions that are not kept; ``largest`` stays."""
        return replace(
            self,
            own=self.own[kept],
            mixed=self.mixed[:, kept],
            leader=self.leader[kept],
            lead=self.lead[kept],
            range=self.range[kept],
        )

    def nearest(self, y: Floats, z: Floats) -> tuple[Ints, Bools]:
        """For every column the label of the largest logit, if the features are near a code or a
        distribution, and whether they are."""
        keys = packed(np.clip(np.rint(y), 0, 1))
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        labels, known = self.order[found], self.keys[found] == keys
        tokens, which = self.mixtures(z)
        labels[tokens], known[tokens] = self.leader[which], True
        return labels, known

    def mixtures(self, z: Floats) -> tuple[Ints, Ints]:
        """The columns that are of a distribution, and which one it is. What is left of others by
        rounding is not one."""
        near = np.abs(z).max(0, initial=0.0) > 0.5
        tokens = np.flatnonzero(near)
        return tokens, np.abs(z[:, tokens]).argmax(0) if len(tokens) else tokens

    def away(self, y: Floats, z: Floats, labels: Ints) -> Floats:
        """For every column a number e: the label's logit leads all others by the lead of its code,
        or distribution, times 1 - 2e at least. Infinite where its distribution has another leader.
        """
        tokens, which = self.mixtures(z)
        off = np.asarray(np.abs(y - self.codes.T[:, labels]).max(0))
        off += self.range @ np.abs(z) / (4 * self.sharp)  # codes differ in two coordinates or more
        if len(tokens):
            own = z[:, tokens]
            rest = np.abs(own).sum(0) - np.abs(own[which, np.arange(len(tokens))])
            shift = self.range[which] * np.abs(own[which, np.arange(len(tokens))] - 1)
            shift += self.range.max() * rest + 2 * self.sharp * np.abs(y[:, tokens]).sum(0)
            part = shift / (2 * self.lead[which])
            off[tokens] = np.where(self.leader[which] == labels[tokens], part, np.inf)
        return off

    def logits(self, y: Floats, z: Floats) -> Floats:
        """All of them, (labels, columns)."""
        ones = self.codes[0].sum()
        found = self.sharp * (2 * (self.codes @ y) - ones)
        return np.asarray(found + self.mixed @ z) if len(z) else np.asarray(found)

    def terms(self, y: Floats, z: Floats) -> Floats:
        """At least the sum of the sizes of the numbers that a logit adds up."""
        sizes = self.sharp * (2 * np.abs(y).sum(0) + self.codes[0].sum())
        return np.asarray(sizes + (self.largest * np.abs(z).sum(0) if len(z) else 0.0))


def packed(bits: Floats) -> NDArray[np.uint64]:
    """A number for every column of zeros and ones."""
    out = np.zeros(bits.shape[1], np.uint64)
    for i, row in enumerate(bits):
        out |= (row > 0).astype(np.uint64) << np.uint64(i)
    return out
