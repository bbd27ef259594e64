"""Contexts with several labels, and the distributions that they should get."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.arrays import Floats, Ints

LEAD = {"float64": 2.0**-10, "float32": 2.0**-9}  # over a label that is as frequent: < 1e-6 nats
LIFT = 64.0  # the logits of labels that occur, above those of all others


@dataclass(frozen=True)
class Mixtures:
    """Distribution m says that label ``label[e]`` has the logarithm ``log[e]`` of its share, for
    the entries e from ``first[m]`` to ``first[m + 1]``. Token i wants number ``of[i]``, or a single
    label (-1)."""

    of: Ints
    first: Ints
    label: Ints
    log: Floats

    @classmethod
    def find(cls, contexts: Ints, labels: Ints, wanted: Ints) -> Mixtures:
        """From the context and the label of every token (-1: not asked), and the label that its
        context should get. Contexts with the same shares have one distribution."""
        asked = np.flatnonzero(labels >= 0)
        size = int(labels.max(initial=0)) + 1
        pairs, counts = np.unique(contexts[asked] * size + labels[asked], return_counts=True)
        context, label = pairs // size, pairs % size
        starts = np.flatnonzero(np.diff(context, prepend=-1, append=-1))
        several = np.flatnonzero(np.diff(starts) > 1)
        number: dict[bytes, int] = {}
        of = np.full(int(contexts.max(initial=0)) + 1, -1)
        kept = [np.empty(0, np.int64)]
        for a, b in zip(starts[several].tolist(), starts[several + 1].tolist(), strict=True):
            share = counts[a:b] // np.gcd.reduce(counts[a:b])
            key = np.concatenate([label[a:b], share, wanted[context[a : a + 1]]]).tobytes()
            if key not in number:
                number[key] = len(number)
                kept.append(np.arange(a, b))
            of[context[a]] = number[key]
        first = np.cumsum([0, *(len(entries) for entries in kept[1:])])
        entries = np.concatenate(kept)
        totals = np.add.reduceat(counts, starts[:-1]) if len(counts) else counts
        total = np.repeat(totals, np.diff(starts))[entries]
        return cls(of[contexts], first, label[entries], np.log(counts[entries] / total))

    def __len__(self) -> int:
        return len(self.first) - 1

    def surprises(self, labels: Ints) -> Floats:
        """-log of the share of the label of every token that wants a distribution."""
        tokens = np.flatnonzero((self.of >= 0) & (labels >= 0))
        size = int(labels.max(initial=0)) + 1
        own = np.repeat(np.arange(len(self)), np.diff(self.first))
        keys = own * size + self.label  # in order, as labels of each distribution are
        return -self.log[np.searchsorted(keys, self.of[tokens] * size + labels[tokens])]

    def columns(self, labels: int, wanted: Ints, lead: float) -> Floats:
        """What each distribution adds to the logits of all labels, (labels, distributions): those
        that do not occur get 0. ``wanted[m]`` leads, by `lead` at least: of labels that are equally
        frequent, rounding must not choose."""
        out = np.zeros((labels, len(self)))
        own = np.repeat(np.arange(len(self)), np.diff(self.first))
        out[self.label, own] = LIFT + self.log
        at = wanted, np.arange(len(self))
        best, out[at] = out[at], -np.inf
        out[at] = np.maximum(best, out.max(0, initial=-np.inf) + lead)
        return out

    def leaders(self, wanted: Ints) -> Ints:
        """The label that each distribution should lead with, from those of all tokens."""
        tokens = np.flatnonzero(self.of >= 0)
        found = np.full(len(self), -1)
        found[self.of[tokens]] = wanted[tokens]
        return found
