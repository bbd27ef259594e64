"""Directions in which one point of a cloud lies beyond all others.

For point i, and every other point j, let d_j be the unit vector from j to i. A direction s with
s . d_j >= MARGIN for all j is found by projecting onto one of these half-spaces after the other
(Hildreth 1957), beginning with the point itself, seen from the centre. Only points that stand in
the way are remembered, and only they are projected onto.
"""

from __future__ import annotations

import numpy as np

from rankone.arrays import Ints, Singles
from rankone.kernels.compiled.compiler import SUMS, compiled

MARGIN = 1.0  # points have a length of about the root of their number of coordinates
ENOUGH = 0.25  # of the margin: then a direction will do
ROUNDS = 60
REMEMBERED = 32  # points that stood in the way
CYCLES = 12  # projections onto each of them after every round


@compiled(fastmath=SUMS)
def project(s: Singles, own: Singles, rivals: Singles, count: int) -> None:
    """Move the direction s until point `own` is far enough beyond the first rivals."""
    size = len(s)
    for _ in range(CYCLES):
        moved = False
        for k in range(count):
            length, along = np.float32(0.0), np.float32(0.0)
            for h in range(size):
                d = own[h] - rivals[k, h]
                length += d * d
                along += d * s[h]
            if length == 0.0:
                continue
            short = np.float32(MARGIN) * np.sqrt(length) - along
            if short > 0.0:
                moved = True
                share = short / length
                for h in range(size):
                    s[h] += share * (own[h] - rivals[k, h])
        if not moved:
            return


@compiled(fastmath=SUMS)
def project_all(s: Singles, own: Singles, rivals: Singles, counts: Ints) -> None:
    """The same for many points, a row each."""
    for i in range(len(s)):
        project(s[i], own[i], rivals[i], counts[i])


@compiled(fastmath=SUMS)
def most_beyond(products: Singles, own: Ints, best: Ints, ahead: Singles) -> None:
    """In each row the largest number but that of the point itself: which it is, and by how much the
    point is ahead of it."""
    for i in range(len(products)):
        row, top = products[i], np.float32(-np.inf)
        mine = row[own[i]]
        row[own[i]] = np.float32(-np.inf)
        for j in range(len(row)):  # two passes: the first one is vectorised
            top = max(top, row[j])
        for j in range(len(row)):
            if row[j] == top:
                best[i] = j
                break
        ahead[i] = mine - top


@compiled(fastmath=SUMS)
def stand_out(z: Singles, points: Ints, s: Singles, nearest: Ints) -> None:
    """For each of these points of z (coordinates, points) a direction in the rows of `s`, and which
    other point lies farthest in it. Whether that is far enough is left to the caller."""
    size, n = z.shape
    own, rivals = np.empty(size, np.float32), np.empty((REMEMBERED, size), np.float32)
    along = np.empty(n, np.float32)
    for p in range(len(points)):
        i = points[p]
        own[:] = z[:, i]
        s[p] = own
        for turn in range(ROUNDS):
            along[:] = np.float32(0.0)
            for h in range(size):
                for j in range(n):
                    along[j] += s[p, h] * z[h, j]
            mine = along[i]
            along[i] = np.float32(-np.inf)
            best = 0 if i else 1
            for j in range(n):
                if along[j] > along[best]:
                    best = j
            nearest[p] = best
            length = np.float32(0.0)
            for h in range(size):
                length += (own[h] - z[h, best]) ** 2
            if mine - along[best] >= np.float32(ENOUGH * MARGIN) * np.sqrt(length):
                break
            if turn == ROUNDS - 1:
                break
            rivals[turn % REMEMBERED] = z[:, best]
            project(s[p], own, rivals, min(turn + 1, REMEMBERED))
