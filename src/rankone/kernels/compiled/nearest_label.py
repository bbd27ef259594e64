"""The label whose code is nearest to the features of one token, where that is certain."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.kernels.compiled.compiler import compiled

Numbers = NDArray[Any]  # float32 or float64: those of the network

DOUBT = -1  # in place of a label, where only all logits can tell


class Labels(NamedTuple):
    """A head of `MixedCodes`, as places among ``writes``; without ``keys`` all logits are needed.
    ``far`` is how far off features may be, and the label is still certain."""

    at: Ints
    own: Ints
    codes: Floats
    keys: NDArray[np.uint64]
    order: Ints
    leader: Ints
    lead: Floats
    range: Floats
    sharp: float
    far: float


@compiled()
def nearest(labels: Labels, y: Numbers) -> int:
    """The label of the largest logit, if that is certain; else `DOUBT`. As `MixedCodes.nearest` and
    `MixedCodes.away` say."""
    if len(labels.keys) == 0:
        return DOUBT
    which, most, around = -1, 0.5, 0.0
    for m in range(len(labels.own)):
        size = abs(np.float64(y[labels.own[m]]))
        around += labels.range[m] * size
        if size > most:
            which, most = m, size
    if which >= 0:
        rest, there, widest = 0.0, np.float64(y[labels.own[which]]), 0.0
        for m in range(len(labels.own)):
            widest = max(widest, labels.range[m])
            if m != which:
                rest += abs(np.float64(y[labels.own[m]]))
        shift = labels.range[which] * abs(there - 1.0) + widest * rest
        for i in range(len(labels.at)):
            shift += 2.0 * labels.sharp * abs(np.float64(y[labels.at[i]]))
        certain = shift <= 2.0 * labels.lead[which] * labels.far
        return labels.leader[which] if certain else DOUBT
    key = np.uint64(0)
    for i in range(len(labels.at)):
        if y[labels.at[i]] > 0.5:
            key |= np.uint64(1) << np.uint64(i)
    found = np.searchsorted(labels.keys, key)
    if found == len(labels.keys) or labels.keys[found] != key:
        return DOUBT
    label, off = labels.order[found], 0.0
    for i in range(len(labels.at)):
        off = max(off, abs(np.float64(y[labels.at[i]]) - labels.codes[label, i]))
    return label if off + around / (4.0 * labels.sharp) <= labels.far else DOUBT
