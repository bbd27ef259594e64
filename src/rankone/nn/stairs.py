"""Feed-forward layers (eq. 3) that are stairs along given directions: quantiser and readout."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rankone.nn.feedforward import FeedForward
from rankone.nn.layers import module_of

DOUBLE: dict[str, Any] = {"dtype": torch.float64}


class Stairs(nn.Module):
    """F(H)_k = H_k + O sum_i stairs_i(A_i^T H_k), where flight i climbs from level to level::

        level j + 1  ........______        by relu(x) - relu(x - 1), x = (s - start_j) / width_j:
                            /              two hidden units of eq. 3 per step. Off the ramps the
        level j      ______/.......        value is a level, without rounding
                     start_j   start_j + width_j

    A (flights x d) is ``direction``; ``start`` and ``width`` are flights x steps; the levels
    (flights x (steps + 1) x c) are ``level``; O (d x c) is ``output``. Starts are in order and
    ramps do not overlap, so the step of a token is found by bisection: O(log steps) per token.
    `expand` returns the same layer with all its hidden units.
    """

    def __init__(self, dim: int, flights: int, steps: int, channels: int) -> None:
        super().__init__()
        self.direction = nn.Parameter(torch.zeros(flights, dim, **DOUBLE))
        self.start = nn.Parameter(torch.zeros(flights, steps, **DOUBLE))
        self.width = nn.Parameter(torch.ones(flights, steps, **DOUBLE))
        self.level = nn.Parameter(torch.zeros(flights, steps + 1, channels, **DOUBLE))
        self.output = nn.Parameter(torch.zeros(dim, channels, **DOUBLE))

    @classmethod
    def assemble(cls, **vectors: Tensor) -> Stairs:
        """From given vectors, under the names above."""
        return module_of(cls, vectors)

    @property
    def hidden(self) -> int:
        """How many hidden units eq. 3 has."""
        return 2 * self.start.numel()

    def forward(self, h: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        tokens = h.reshape(-1, h.shape[-1])
        s = tokens @ self.direction.T
        risen = self._climb(0, s[:, 0], tokens)
        for flight in range(1, len(self.start)):
            risen = risen + self._climb(flight, s[:, flight], tokens)
        return h + (risen @ self.output.T).reshape(h.shape)

    def _climb(self, flight: int, s: Tensor, _tokens: Tensor) -> Tensor:
        level = self.level[flight]
        if not self.start.shape[1]:
            return level.expand(len(s), -1)
        step, share = self._step(flight, s)
        return torch.lerp(level[step], level[step + 1], share.clamp(0.0, 1.0).unsqueeze(-1))

    def _step(self, flight: int, s: Tensor) -> tuple[Tensor, Tensor]:
        """The last step that begins at or before s, or the first, and how far up s is."""
        start = self.start[flight]
        after = torch.searchsorted(start.detach(), s.detach().contiguous(), right=True)
        step = (after - 1).clamp(min=0)
        return step, (s - start[step]) / self.width[flight, step]

    @torch.no_grad()
    def expand(self) -> FeedForward:
        """The same layer with its two matrices multiplied out.

        The two units of a step stand side by side, so that what is added up stays small after
        each of them, and few digits are lost in a sum over many steep steps.
        """
        row = self.direction.unsqueeze(1) / self.width.unsqueeze(-1)
        bias, rise = -self.start / self.width, self.level.diff(dim=1)
        units = in_turn(row, row), in_turn(bias, bias - 1.0), in_turn(rise, -rise)
        return self._feedforward(*units, self.level[:, 0].sum(0))

    def _feedforward(
        self, weight1: Tensor, bias1: Tensor, rise: Tensor, ground: Tensor
    ) -> FeedForward:
        full = FeedForward(weight1.shape[1], 0)
        full.weight1, full.bias1 = nn.Parameter(weight1), nn.Parameter(bias1)
        full.weight2 = nn.Parameter(self.output @ rise.T)
        full.bias2 = nn.Parameter(self.output @ ground)
        return full


def in_turn(first: Tensor, second: Tensor) -> Tensor:
    """What the two units of every step have, pair by pair, in the order of Thue and Morse.

    That is 1 2 2 1 2 1 1 2 ...: every second, fourth, eighth of it is as balanced as the whole, so
    that partial sums stay small whether a product adds up in one go or in 2, 4, 8 lanes. (Every
    third is not; so the pairs of one flight follow each other. Axis 0 is the flight, 1 the step.)
    """
    pairs = torch.stack([first, second], 2).flatten(0, 1)
    j = torch.arange(len(pairs))
    for shift in (32, 16, 8, 4, 2, 1):  # how many bits of j are 1, modulo 2, in its last bit
        j = j ^ (j >> shift)
    odd = (j & 1).bool().reshape(-1, *[1] * (pairs.ndim - 1))
    return torch.where(odd, pairs.flip(1), pairs).flatten(0, 1)


class TiltedStairs(Stairs):
    """One flight of stairs whose levels are planes in s and in r = R H_k.

    Level j is  level_j + tilt_j (s - middle_j) + slope_j r:  ``tilt`` ((steps + 1) x c),
    ``middle`` (steps + 1), ``slope`` ((steps + 1) x c x e); R (e x d) is ``residual``. On a ramp
    the part along s is drawn straight, and the slope changes by units that saturate outside of it
    for all |r_i| <= ``reach``; with y = 2 x - 1, which goes from -1 to 1 on the ramp,

        relu(y + r_i / reach) - relu(y)  =  r_i / reach   for y >= 1,  and 0 for y <= -1.
    """

    def __init__(self, dim: int, steps: int, channels: int, residuals: int) -> None:
        super().__init__(dim, 1, steps, channels)
        self.tilt = nn.Parameter(torch.zeros(steps + 1, channels, **DOUBLE))
        self.middle = nn.Parameter(torch.zeros(steps + 1, **DOUBLE))
        self.slope = nn.Parameter(torch.zeros(steps + 1, channels, residuals, **DOUBLE))
        self.residual = nn.Parameter(torch.zeros(residuals, dim, **DOUBLE))
        self.reach = nn.Parameter(torch.ones((), **DOUBLE))

    @property
    def hidden(self) -> int:
        pairs = 1 + len(self.residual)
        return 2 * pairs * self.start.numel() + pairs

    def _climb(self, flight: int, s: Tensor, tokens: Tensor) -> Tensor:
        r = tokens @ self.residual.T
        if not self.start.shape[1]:
            only = torch.zeros(len(s), dtype=torch.long, device=s.device)
            return self._plane(only, s) + torch.einsum("kce,ke->kc", self.slope[only], r)
        step, share = self._step(flight, s)
        begin = self.start[flight, step]
        before = self._plane(step, torch.minimum(s, begin))
        after = self._plane(step + 1, torch.maximum(s, begin + self.width[flight, step]))
        along = torch.lerp(before, after, share.clamp(0.0, 1.0).unsqueeze(-1))
        y = (2 * share - 1).clamp(-1.0, 1.0).unsqueeze(-1)
        turned = self.reach * (torch.relu(y + r / self.reach) - torch.relu(y))
        old, new = self.slope[step], self.slope[step + 1]
        across = torch.einsum("kce,ke->kc", old, r - turned)
        return along + across + torch.einsum("kce,ke->kc", new, turned)

    def _plane(self, j: Tensor, s: Tensor) -> Tensor:
        return self.level[0, j] + self.tilt[j] * (s - self.middle[j]).unsqueeze(-1)

    @torch.no_grad()
    def expand(self) -> FeedForward:
        """The same layer with its two matrices multiplied out, for |r_i| <= reach.

        A pair of units per step for the ramp along s, and one for each r_i; before them the units
        that make the plane of the first level.
        """
        start, width = self.start[0], self.width[0].unsqueeze(-1)
        j = torch.arange(len(start))
        before, after = self._plane(j, start), self._plane(j + 1, start + self.width[0])
        grade, tilt = (after - before) / width, self.tilt
        turn = self.slope.diff(dim=0).movedim(2, 0) * self.reach  # e x steps x c
        row, bias = self.direction / width, -start / self.width[0]
        turned = 2 * row + (self.residual / self.reach).unsqueeze(1)
        halved = (2 * bias - 1.0).expand(len(turn), -1)
        ends = torch.cat([self.middle[:1], start[:1]])
        left = ends.min() - 1.0 - ends.abs().max()  # so far off that no context id is left of it
        slope = self.slope[0].T * self.reach

        def pairs(ramp: tuple[Tensor, Tensor], turns: tuple[Tensor, Tensor]) -> Tensor:
            """The ramp along s first, then each r_i: 1 + e flights of steps."""
            first, second = (
                torch.cat([a.unsqueeze(0), b]) for a, b in zip(ramp, turns, strict=True)
            )
            return in_turn(first, second)

        weight1 = pairs((row, row), (turned, (2 * row).expand_as(turned)))
        bias1 = pairs((bias, bias - 1.0), (halved, halved))
        rise = pairs((width * (grade - tilt[:-1]), width * (tilt[1:] - grade)), (turn, -turn))
        return self._feedforward(
            torch.cat([self.direction, self.residual / self.reach, weight1]),
            torch.cat([-left.reshape(1), slope.new_ones(len(slope)), bias1]),
            torch.cat([tilt[:1], slope, rise]),
            self.level[0, 0] + tilt[0] * (left - self.middle[0]) - slope.sum(0),
        )
