"""A deep readout of constant width (Vardi, Yehudai and Shamir 2022): labels are bits of weights.

N whole numbers p on a line, each with a label, are cut into m groups of k neighbours. A group is
one long number u, its k points written one after the other in rho bits each, and one long number w,
its k labels in c bits each. So there are m + k rho layers with a few numbers each, least for m and
k near sqrt(N): about sqrt(N) parameters, of k rho bits. Three stages, with x the input and y the
output::

    select    per group [a, b]:   (u, w) += (u_j, w_j) gate(x; a, b)
    extract   per bit:            the next bit of u goes to p, the next bit of w to q
    compare   per point:          y += relu(2^(c+1) (gate(x; p, p + 1) - 1) + q),  p = q = 0

    gate(x; a, b) = relu(4x - 4a + 2) - relu(4x - 4a + 1) - relu(4x - 4b - 1) + relu(4x - 4b - 2)

    1        ______________        is 1 for a - 1/4 <= x <= b + 1/4 and 0 beyond a - 1/2 and
            /              \\       b + 1/2: numbers that are known up to 1/4 are good enough
    0 _____/                \\____

Bits come from the triangle psi(z) = 2z - relu(4z - 2), which on [0, 1] forgets the first binary
digit of z: for L bits and U1 = u / 2^L + 2^-(L+1), U2 = u / 2^L + 2^-(L+2), after t steps

    bit t of u  =  relu(1/2 + 2^(L+1-t) (U2 - U1)),   t = 1 the most significant.

Here all of it is multiplied by 2^(L+2), so that the state consists of whole numbers. The paper has
plain layers, two for a gate and three for a bit; with the skip connections of eq. 3, three gates
take one layer and a bit takes one. No layer has more than 12 units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

from rankone.nn.exact import ExactFeedForward
from rankone.nn.exact.numbers import Exactly, exact, power

Unit = tuple[dict[int, Exactly], Exactly, dict[int, Exactly]]  # what it reads, bias, what it writes

GATES = 3  # per layer
SCRATCH = 7  # coordinates of its own


@dataclass(frozen=True)
class Sizes:
    """How N points are cut: ``groups`` of ``size``; a point has ``rho`` bits, a label ``c``."""

    size: int
    groups: int
    rho: int
    c: int

    @property
    def layers(self) -> int:
        return -(-self.groups // GATES) + self.size * self.rho + 5

    @classmethod
    def of(cls, points: int, largest: int, labels: int) -> Sizes:
        """The cut with the fewest layers, for points and labels up to these numbers."""
        c = labels.bit_length()
        rho = max(largest.bit_length(), c + 3)  # a label is complete when its point is
        near = isqrt(points // (GATES * rho))
        sizes = [max(1, k) for k in range(near - 1, near + 3)]
        cuts = [cls(k, -(-points // k), rho, c) for k in sizes]
        return min(cuts, key=lambda cut: cut.layers)


def deep_readout(
    points: Sequence[tuple[int, int]], x: int, y: int, scratch: Sequence[int], dim: int
) -> list[ExactFeedForward]:
    """Layers that add to coordinate `y` the label of the point at which coordinate `x` is.

    `points` are (p, label) with p >= 2, labels >= 1, and p at least 2 apart; x is at p if it is
    from p to p + 1, or up to 1/4 beyond. Where x is 2 or more from all of [p, p + 1], nothing is
    added. `scratch` are `SCRATCH` coordinates that are 0, and will be 0 again.
    """
    points = sorted(points)
    if not points:
        raise ValueError("no points")
    if any(b[0] - a[0] < 2 for a, b in pairwise(points)) or points[0][0] < 2:
        raise ValueError("points must be at least 2, and 2 apart")
    if min(label for _, label in points) < 1:
        raise ValueError("labels must be at least 1: 0 stands for what is not memorised")
    cut = Sizes.of(len(points), points[-1][0], max(label for _, label in points))
    u1, u2, w1, w2, *_ = scratch
    layers = [ExactFeedForward.of(units, dim) for units in _select(points, cut, x, u1, w1)]
    # U1 = 4u + 2 and U2 = 4u + 1, the same for w
    copies: list[Unit] = [({u1: 1}, 0, {u2: 1}), ({w1: 1}, 0, {w2: 1})]
    layers.append(ExactFeedForward.of(copies, dim, {u1: 2, u2: 1, w1: 2, w2: 1}))
    layers += [ExactFeedForward.of(_step(t, cut, x, y, scratch), dim) for t in range(1, _end(cut))]
    layers.append(ExactFeedForward.of([_reset(c) for c in scratch], dim))
    return layers


def gate(x: dict[int, Exactly], a: Exactly, b: Exactly, writes: dict[int, Exactly]) -> list[Unit]:
    """gate(x; a, b) of a linear form x, times what it writes; a and b are numbers."""
    reads: dict[int, Exactly] = {c: 4 * exact(weight) for c, weight in x.items()}
    ends = ((2 - 4 * exact(a), 1), (1 - 4 * exact(a), -1), (-1 - 4 * exact(b), -1))
    return [
        (reads, bias, {c: sign * exact(weight) for c, weight in writes.items()})
        for bias, sign in (*ends, (-2 - 4 * exact(b), 1))
    ]


def _select(
    points: Sequence[tuple[int, int]], cut: Sizes, x: int, u: int, w: int
) -> list[list[Unit]]:
    """Per group, 4 u_j and 4 w_j where x is in the group; `GATES` groups to a layer."""
    groups = [points[i : i + cut.size] for i in range(0, len(points), cut.size)]
    layers = []
    for i in range(0, len(groups), GATES):
        units = []
        for group in groups[i : i + GATES]:
            u_j = _concatenated([point for point, _ in group], cut.rho, cut.size)
            w_j = _concatenated([label for _, label in group], cut.c, cut.size)
            ends = group[0][0], group[-1][0] + 1
            units += gate({x: 1}, *ends, {u: 4 * u_j, w: 4 * w_j})
        layers.append(units)
    return layers


def _step(t: int, cut: Sizes, x: int, y: int, scratch: Sequence[int]) -> list[Unit]:
    """Layer t of extraction: step t of u, and what is left to do of the bits before it.

    A bit is read in the layer after its step. Point number i is complete after layer i rho + 1,
    compared in the next, and its label, complete by then too, is written in the one after that.
    """
    u1, u2, w1, w2, p, q, g = scratch
    rho, c, last = cut.rho, cut.c, cut.size * cut.rho
    units: list[Unit] = []
    if t <= last:
        units += _triangle(u1, last) + _triangle(u2, last)
    if 1 <= t - 1 <= last:
        units.append(_bit(u1, u2, t - 1, p, rho - 1 - (t - 2) % rho))
    chunk, place = divmod(t - 1, rho)  # place 0 is the first layer of a chunk
    label = place - 1  # the number of the step of w in its chunk, 1 to c
    if 1 <= label <= c and chunk < cut.size:
        units += _triangle(w1, cut.size * c) + _triangle(w2, cut.size * c)
    if 1 <= label - 1 <= c and chunk < cut.size:
        units.append(_bit(w1, w2, chunk * c + label - 1, q, c - label + 1))
    if chunk >= 1 and place == 1:
        units += [*gate({x: 1, p: -1}, 0, 1, {g: 1}), _reset(p)]
    if chunk >= 1 and place == 2:
        high = 1 << (c + 1)
        units += [({g: high, q: 1}, -high, {y: 1}), _reset(g), _reset(q)]
    return units


def _end(cut: Sizes) -> int:
    """One more than the number of layers of extraction."""
    return cut.size * cut.rho + 4


def _triangle(z: int, length: int) -> list[Unit]:
    """z becomes 2^(L+2) psi(z / 2^(L+2)) = 2z - relu(4z - 2^(L+3))."""
    return [({z: 1}, 0, {z: 1}), ({z: 4}, -(1 << (length + 3)), {z: -1})]


def _bit(z1: int, z2: int, t: int, to: int, place: int) -> Unit:
    """Bit t, worth 2^place."""
    share = power(-1 - t)
    return {z1: -share, z2: share}, exact(0.5), {to: 1 << place}


def _reset(c: int) -> Unit:
    """c becomes 0, if it is not negative."""
    return {c: 1}, 0, {c: -1}


def _concatenated(numbers: Sequence[int], bits: int, count: int) -> int:
    """Numbers of so many bits one after the other, filled up with zeros to `count` of them."""
    found = 0
    for number in numbers:
        found = found << bits | number
    return found << bits * (count - len(numbers))
