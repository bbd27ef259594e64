"""The widest margin between one point of a cloud and all others.

The shortest s with s . (x - y) >= 1 for all other points y, where the point is x. Of all the points
only a few matter: those that stand in the way are taken up, a few at a time, until no other one
is. The shortest s for those comes from a least squares problem (Lawson and Hanson 1974, ch. 23).
"""

from __future__ import annotations

import numpy as np

from rankone.arrays import Bools, Floats, Ints

TURNS = 60
BLOCKS = 8  # of points: the nearest of each is taken up
SLACK = 0.02  # of the margin: then it is wide enough
NARROW = 1e-13  # square of a margin that rounding may have made up


def widest_margin(a: Floats, point: int) -> Floats:
    """The direction of the widest margin of this row of `a`. All are 0 if there is none."""
    cuts = np.unique(len(a) * np.arange(BLOCKS) // BLOCKS)
    s: Floats = a[point] - a.mean(0)
    taken, shares = cuts[:0], np.empty(0)
    for turn in range(TURNS):
        along = a @ s
        ahead = along[point] - along
        ahead[point] = np.inf
        nearest = np.array([part.argmin() for part in np.split(ahead, cuts[1:])]) + cuts
        near = ahead[nearest] < (np.inf if turn == 0 else 1 - SLACK)
        new = np.setdiff1d(nearest[near], taken)
        if not len(new):
            return s
        taken, shares = np.append(taken, new), np.append(shares, np.zeros(len(new)))
        rows = np.vstack([(a[point] - a[taken]).T, np.ones(len(taken))])
        wanted = np.append(np.zeros(a.shape[1]), 1.0)
        shares = least_squares(rows, wanted, shares)
        left = rows @ shares - wanted
        if left @ left < NARROW:
            return np.zeros_like(s)
        s = left[:-1] / -left[-1]
    return s


def least_squares(rows: Floats, wanted: Floats, start: Floats) -> Floats:
    """The x >= 0 with the smallest |rows x - wanted|, by the active sets of Lawson and Hanson,
    from those of `start` on."""
    x, free = start, start > 0
    if free.any():
        x, free = _inside(rows, wanted, x, free)
    for _ in range(3 * len(x)):
        pull = rows.T @ (wanted - rows @ x)
        pull[free] = -np.inf
        best = int(pull.argmax())
        if pull[best] <= 1e-15:
            break
        free[best] = True
        x, free = _inside(rows, wanted, x, free)
    return x


def _inside(rows: Floats, wanted: Floats, x: Floats, free: Bools) -> tuple[Floats, Bools]:
    """The best x in the free coordinates, or the way towards it, as far as none is below 0."""
    while True:
        at: Ints = np.flatnonzero(free)
        aim = np.zeros_like(x)
        aim[at] = np.linalg.lstsq(rows[:, at], wanted, rcond=None)[0]
        below = at[aim[at] <= 0]
        if not len(below):
            return aim, free
        share = x[below] / np.maximum(x[below] - aim[below], 1e-300)
        x = x + share.min() * (aim - x)
        free = free.copy()
        free[below[share.argmin()]] = False
        x[~free] = 0.0
