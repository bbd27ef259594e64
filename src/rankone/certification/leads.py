"""Which logit is the largest, in balls and in Arb: what all heads share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from flint import arb
from torch import nn

from rankone.arrays import Bools, Floats, Ints
from rankone.certification.ball_arithmetic import Balls, up
from rankone.deadline import tick
from rankone.nn.arb_network import Vector
from rankone.nn.evaluate import Numbers
from rankone.nn.layers import module_of

LOGITS = 1 << 22  # held at once, where there are very many labels
OVERFLOW = -2  # in place of a label: the run has none, and `predict` refuses


@dataclass(frozen=True)
class Decoded:
    """Per token: the label (from 0) that the head chooses, and how far off the output may be.

    ``off`` is an upper bound on the distance of y from the label (0 where y lies beyond the
    outermost label); below 1/2 the label is proved. ``values`` is what the head reads (y or the
    logits), one column per token and ``width`` rows, which is an attribute of the head.
    """

    labels: Ints
    off: Floats
    values: Balls


def by_logits(logits: Balls) -> tuple[Ints, Floats]:
    """The label of the largest logit, and what half its lead leaves of 1/2."""
    best, tokens = logits.mid.argmax(0), np.arange(logits.mid.shape[1])
    least, rivals = logits.lower()[best, tokens], logits.upper()
    rivals[best, tokens] = -np.inf
    with np.errstate(invalid="ignore"):
        off = 0.5 - np.nextafter(least - rivals.max(0), -np.inf) / 2
    # never below 0: a margin is at most 1/2 for any lead
    return best, up(np.maximum(off, 0.0))


def by_exact_logits(logits: Vector) -> tuple[int, arb]:
    """The same in Arb. A label that certainly leads has the largest midpoint."""
    label = max(range(len(logits)), key=lambda c: logits[c].mid())
    return label, arb.max(arb(0.5) - lead_of(logits, label) / 2, arb(0))


def float_mids(y: Vector) -> Floats:
    return np.array([float(x.mid()) for x in y])


def lead_of(logits: Vector, label: int) -> arb:
    """How far the label's logit leads every other one."""
    lead = arb("inf")
    for c, logit in enumerate(logits):
        if c != label:
            lead = arb.min(lead, logits[label] - logit)
    return lead


def largest(logits: Numbers) -> Ints:
    """The label of the largest logit of every column; `OVERFLOW` where that is not finite."""
    labels = logits.argmax(0)
    finite = np.isfinite(np.take_along_axis(logits, labels[None], 0)[0])
    return np.where(finite, labels, OVERFLOW)


def in_parts(doubt: Bools, labels: int) -> Iterator[Ints]:
    """The tokens in doubt, so many at a time that their logits fit in memory."""
    tokens = np.flatnonzero(doubt)
    step = max(1, LOGITS // labels)
    for i in range(0, len(tokens), step):
        tick()
        yield tokens[i : i + step]


def narrowed(head: nn.Linear, at: Ints) -> nn.Linear:
    """A head that reads only these coordinates; its other weights are 0."""
    weight = head.weight[:, torch.from_numpy(at)]
    return module_of(nn.Linear, {"weight": weight, "bias": head.bias})
