"""Units that write 1 to the last bits: for distributions, whose shares are not rounded away.

A peak is as far off as rounding moves its context along the slope. With twice the slope and a
plateau, rounding moves the context along the plateau, and the height is the difference of two
biases. These lie on a grid, so that rounding leaves it as it is, and the sum of all amplitudes 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.construct.gated.units import Contexts, Fitting, Groups, Units, fit_units

NEAR = 1e-3  # of the width of a peak
SPARE = 2  # bits of a mantissa that are left when the largest bias is written on the grid


def fit_levelled(
    contexts: Contexts, usual: Ints, fitting: Fitting, mixed: int
) -> tuple[Groups, Units]:
    """The units of `fit_units`, with plateaus for the labels from number `mixed` on, which are
    distributions."""
    groups, units = fit_units(contexts, usual, fitting)
    return groups, level(units, units.label >= mixed, fitting)


def level(units: Units, which: Bools, fitting: Fitting) -> Units:
    """The same with a plateau for `which` of the rows: whole peaks, or single units.

    A peak is a unit, one that is twice as steep and takes away, and, where contexts lie beyond, a
    third one like the first. Its plateau takes one more.
    """
    which = which.copy()
    which[which] = units.slopes[which].any(1)
    if not which.any():
        return units
    rising, three = peaks_of(units, which)
    middle, last = rising + 1, rising[three] + 2
    single = which.copy()
    single[rising] = single[middle] = single[last] = False
    kept, alone = np.flatnonzero(~which), np.flatnonzero(single)
    bias, amplitude = units.bias, units.amplitude
    centre, width = on_grid(bias[middle], 1 / amplitude[rising], 2.0, fitting)
    edge, rise = on_grid(2 * bias[alone], 1 / amplitude[alone], 1.0, fitting)
    far = centre[three] - 2 * width[three]
    biases = [bias[kept], *(centre + k * width for k in (2, 1, -1)), far, edge, edge - rise]
    heights = [amplitude[kept], 1 / width, -1 / width, -1 / width, 1 / width[three]]
    heights += [1 / rise, -1 / rise]
    at = np.concatenate([kept, *[middle] * 3, middle[three], *[alone] * 2])
    steep = np.where(np.arange(len(at)) >= len(at) - 2 * len(alone), 2.0, 1.0)
    order = np.argsort(at, kind="stable")
    columns = {name: getattr(units, name)[at[order]] for name in ("word", "position", "usual")}
    return replace(
        units,
        **columns,
        label=units.label[at[order]],
        slopes=(units.slopes[at] * steep[:, None])[order],
        bias=np.concatenate(biases)[order],
        amplitude=fitting.rounded(np.concatenate(heights))[order],
    )


def peaks_of(units: Units, which: Bools) -> tuple[Ints, Bools]:
    """The first rows of peaks, and which of them have three units."""
    slopes, amplitude, label = units.slopes, units.amplitude, units.label
    both = which[:-1] & (label[1:] == label[:-1]) & (amplitude[1:] == -amplitude[:-1])
    rising = np.flatnonzero(both)
    rising = rising[(slopes[rising + 1] == 2 * slopes[rising]).all(1)]
    last = np.minimum(rising + 2, len(label) - 1)
    three = (last == rising + 2) & (label[last] == label[rising])
    three &= (amplitude[last] == amplitude[rising]) & (slopes[last] == slopes[rising]).all(1)
    # Another unit along the same line may follow a peak of two: then it bends elsewhere.
    bends = units.bias[rising] + units.bias[last] - units.bias[np.minimum(rising + 1, last)]
    three &= np.abs(bends * amplitude[rising]) < NEAR
    return rising, three


def on_grid(bias: Floats, height: Floats, most: float, fitting: Fitting) -> tuple[Floats, Floats]:
    """Both as multiples of a number that is so large that also bias +- `most` times height is
    written without rounding."""
    largest = np.abs(bias) + most * np.abs(height)
    step = 2.0 ** np.ceil(np.log2(np.maximum(largest, 1e-300))) * fitting.unit * 2.0**SPARE
    return np.rint(bias / step) * step, np.maximum(np.rint(height / step), 1.0) * step
