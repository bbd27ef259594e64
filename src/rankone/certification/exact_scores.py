"""Heads of networks with gates whose scores are exact in every run, until exp is taken."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch

from rankone.arrays import Floats
from rankone.certification.attention_balls import array
from rankone.certification.gated_balls import GatedBalls
from rankone.nn import TokenClassifier

GRID, SMALL = 2.0**20, 2.0  # multiples of 1 / GRID up to SMALL: sums and differences are exact
QUERIES = 2.0**-10, 8.0


@dataclass(frozen=True)
class Attending:
    """The coordinates of a head's key and value, and its query."""

    key: int
    value: int
    query: float


def attending(network: TokenClassifier, balls: GatedBalls) -> list[Attending] | None:
    """The heads in the order of the coordinates that they write, if all is exact until exp.

    Each has one row, asks every token with the same power of two, and copies one coordinate of
    keys and one of values. It writes where both tables are 0.
    """
    attention = network.blocks[0].attention
    if attention.kind != "softmax":
        return None
    found: dict[int, Attending] = {}
    for head in attention.heads:
        parts = [_single(array(x)) for x in (head.key, head.query, head.value, head.output.mT)]
        if None in parts:
            return None
        (key, one), (asking, scale), (value, two), (to, three) = (p for p in parts if p)
        table, positions = balls.table, balls.positions
        query = float(table[0, asking])
        exact = (
            (one, two, three) == (1.0, 1.0, 1.0)
            and (table[:, asking] == query).all()
            and not positions[:, asking].any()
            and all(_power_of_two(x) for x in (query, scale))
            and QUERIES[0] <= query * scale <= QUERIES[1]
            and all(_on_grid(x[:, i]) for i in (key, value) for x in (table, positions))
        )
        if not exact or to in found or table[:, to].any() or positions[:, to].any():
            return None
        found[to] = Attending(key, value, query * scale)
    return [found[i] for i in sorted(found)]


def fading(network: TokenClassifier, balls: GatedBalls, longest: int) -> list[Attending] | None:
    """The same for a network with a window, whose keys are the place times a number of few bits."""
    windows = balls.windows
    if windows is None or windows.decays is None or network.step is None:
        return None
    step = array(network.step)
    at = np.flatnonzero(step)
    if len(at) != 1 or not _power_of_two(float(step[at[0]])) or network.table[:, at[0]].any():
        return None
    found: dict[int, Attending] = {}
    rows: dict[int, int] = {}
    for row, head in enumerate(network.blocks[0].attention.heads):
        parts = [_single(array(x)) for x in (head.key, head.query, head.value, head.output.mT)]
        if None in parts:
            return None
        (key, decay), (asking, scale), (value, one), (to, two) = (p for p in parts if p)
        query = float(balls.table[0, asking]) * scale
        odd = abs(Fraction(decay).numerator)
        exact = (
            (one, two) == (1.0, 1.0)
            and key == at[0]
            and (balls.table[:, asking] == balls.table[0, asking]).all()
            and all(_power_of_two(x) for x in (float(balls.table[0, asking]), scale))
            and QUERIES[0] <= query <= QUERIES[1]
            and (odd // (odd & -odd)) * longest * torch.finfo(network.dtype).eps <= 1
            and decay > 0
            and np.abs(balls.table[:, value]).max() <= SMALL
        )
        if not exact or to in found or balls.table[:, to].any():
            return None
        found[to], rows[to] = Attending(key, value, query), row
    if [rows[to] for to in sorted(found)] != sorted(rows.values()):
        return None  # `windows` counts heads in the order of the weights
    return [found[to] for to in sorted(found)]


def _single(weight: Floats) -> tuple[int, float] | None:
    """The only coordinate of a single row that is not 0, and what it is."""
    at = np.flatnonzero(weight)
    return (int(at[0]), float(weight[0, at[0]])) if weight.shape[0] == len(at) == 1 else None


def _on_grid(values: Floats) -> bool:
    scaled = values * GRID
    return bool((scaled == np.rint(scaled)).all() and np.abs(values).max() <= SMALL)


def _power_of_two(x: float) -> bool:
    return x > 0 and np.frexp(x)[0] == 0.5
