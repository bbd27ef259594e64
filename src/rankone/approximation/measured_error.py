"""Measure d_p(f, g) by quasi-Monte Carlo: error, interval, sources of error, worst point."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.quasirandom import SobolEngine

from rankone.approximation.build import Built
from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.target import ULPS, Target
from rankone.approximation.verify import run
from rankone.arrays import Floats
from rankone.progress import Progress

REPLICATES, QUANTILE = 16, 2.131  # independent estimates; Student's 97.5 % for 15 degrees
SOURCES = ("steps", "repeated", "ramps")
FINALISTS = 32  # points from which the search for a worse one starts
MOVED = 32  # coordinates that are moved in that search


@dataclass(frozen=True)
class Source:
    """A part of the domain and what it adds to the error.

    ``error`` is d_p over this part alone, ``share`` its share of the integral of |f - g|^p (shares
    add up to 1), ``volume`` its share of the domain.
    """

    error: float
    share: float
    volume: float


@dataclass(frozen=True)
class Worst:
    """The point off the ramps with the largest deviation found."""

    point: list[list[float]]
    f: list[list[float]]
    network: list[list[float]]
    deviation: float


@dataclass(frozen=True)
class Steepest:
    """The largest |f(X) - f(c)| / |X - c| seen, c the centre of the cell of X, and that X.

    Whatever two units in the last place of f and X could explain is subtracted.
    """

    slope: float
    point: list[list[float]]


@dataclass(frozen=True)
class MeasuredError:
    """``error`` is d_p = (integral of |f - g|_p^p)^(1/p) over the domain (eq. 1).

    ``interval`` is its 95 % interval; ``sources`` splits it by parts of the domain.
    """

    error: float
    interval: tuple[float, float]
    sources: dict[str, Source]
    worst: Worst
    steepest: Steepest
    points: int


class SampledPoints:
    """f, the network and their deviation at a batch of points."""

    def __init__(self, target: Target, built: Built, grid: CellGrid, x: Floats, p: float) -> None:
        z = (x - grid.low) / grid.span  # as the network computes it
        cell = np.searchsorted(built.edges, z, side="right")
        edge = np.append(-np.inf, built.edges)[cell]
        self.on_ramp = z - edge < built.delta
        token = (cell * grid.cells ** np.arange(grid.d)).sum(-1)
        ordered = np.sort(token, axis=1)
        equal = (ordered[:, 1:] == ordered[:, :-1]).any(1)
        self.repeated = equal & (not grid.positions)  # a position makes them different
        self.x, self.token = x, token
        self.f, self.g = target(x), run(built, x)
        off = np.abs(self.f - self.g)
        largest = off.max((1, 2), keepdims=True)
        scaled = np.divide(off, largest, out=np.zeros_like(off), where=largest > 0)
        self.deviation = largest[:, 0, 0] * (scaled**p).sum((1, 2)) ** (1 / p)  # |f - g|_p

    @property
    def ramps(self) -> NDArray[np.int64]:
        """How many coordinates are on a ramp."""
        return np.asarray(self.on_ramp.sum((1, 2)))

    @property
    def off_ramps(self) -> Floats:
        """The deviation, or -1 on a ramp."""
        return np.where(self.ramps > 0, -1.0, self.deviation)


def measure_error(
    target: Target,
    built: Built,
    grid: CellGrid,
    *,
    p: float,
    samples: int,
    seed: int,
    progress: Progress,
) -> MeasuredError:
    """16 sets of scrambled Sobol points; the spread of the 16 estimates gives the interval.

    Ramps are too narrow to be hit by chance, so they get points of their own: a point as before
    with one coordinate moved onto a ramp. A point with k coordinates on ramps can arise in k ways
    and counts 1/k.
    """
    per = max(16, samples // REPLICATES)
    ramp_volume = grid.n * grid.d * (grid.cells - 1) * built.delta
    parts: list[tuple[Floats, Floats, NDArray[np.int64]]] = []  # deviation, weight, which sum
    finalists: list[Floats] = []
    steepest = Steepest(0.0, grid.centres(built.sequences[0]).tolist())
    for replicate, x, on_ramps in draws(grid, built, per, seed):
        progress("measure", replicate / REPLICATES)
        seen = SampledPoints(target, built, grid, x, p)
        source = np.where(seen.ramps > 0, 2, seen.repeated.astype(np.int64))
        if on_ramps:
            weight = ramp_volume / len(x) / np.maximum(1, seen.ramps) * (source == 2)
        else:
            weight = (source < 2) / per
            finalists.append(x[np.argsort(seen.off_ramps)[-FINALISTS:]])
            steepest = max(steepest, _steepest(target, grid, seen), key=lambda s: s.slope)
        parts.append((seen.deviation, weight, source * REPLICATES + replicate))
    deviation, weight, which = (np.concatenate(part) for part in zip(*parts, strict=True))
    size = float(deviation.max()) or 1.0  # sums are relative to its p-th power, which may overflow
    unit = size * grid.volume_root(p)

    def add_up(numbers: Floats) -> Floats:
        """Sums per source and replicate."""
        bins = len(SOURCES) * REPLICATES
        sums = np.bincount(which, numbers, bins).astype(np.float64)
        return sums.reshape(len(SOURCES), REPLICATES)

    sums, volumes = add_up(weight * (deviation / size) ** p), add_up(weight).mean(1)
    total = sums.sum(0)
    mean, half = total.mean(), QUANTILE * total.std(ddof=1) / np.sqrt(REPLICATES)
    sources = {
        name: Source(
            error=float(unit * sums[i].mean() ** (1 / p)),
            share=float(sums[i].mean() / mean) if mean else 0.0,
            volume=float(volumes[i]),
        )
        for i, name in enumerate(SOURCES)
    }
    low, error, high = (
        float(unit * max(0.0, y) ** (1 / p)) for y in (mean - half, mean, mean + half)
    )
    return MeasuredError(
        error=error,
        interval=(low, high),
        sources=sources,
        worst=find_worst(target, built, grid, np.concatenate(finalists), p),
        steepest=steepest,
        points=per * REPLICATES,
    )


def draws(grid: CellGrid, built: Built, per: int, seed: int) -> Iterator[tuple[int, Floats, bool]]:
    """Chunks of points of the domain: for each replicate the points, then some on ramps."""
    n, d = grid.n, grid.d
    rng = np.random.default_rng(seed)
    chunk = grid.at_once
    for replicate in range(REPLICATES):
        scramble = int(rng.integers(1 << 31))
        engine = SobolEngine(n * d, scramble=True, seed=scramble)  # type: ignore[no-untyped-call]
        moved: Floats = np.empty(0)
        for i in range(0, per, chunk):
            z = engine.draw(min(chunk, per - i), dtype=torch.float64).numpy()
            z = z + rng.random(z.shape) * 2.0**-30  # Sobol points have 30 bits
            z = z.reshape(-1, n, d)
            moved = moved if i else z[: max(16, per // 16)].copy()
            yield replicate, grid.points(z), False
        if grid.cells > 1:
            rows = np.arange(len(moved))
            which = rng.integers(n * d, size=len(moved))
            ramp = rng.choice(built.edges, len(moved)) + built.delta * rng.random(len(moved))
            moved[rows, which // d, which % d] = ramp
            yield replicate, grid.points(moved), True


def _steepest(target: Target, grid: CellGrid, seen: SampledPoints) -> Steepest:
    centre = grid.centres(seen.token)
    middle = target(centre)
    # Rounding of f at both points: two units in the last place of what it takes and gives.
    reach = np.maximum(norms(seen.x), norms(centre))
    moved = norms(seen.x - centre) + 2 * ULPS * target.epsilon * reach
    size = np.maximum(np.abs(seen.f), np.abs(middle)).max((1, 2))
    rounding = 2 * ULPS * (target.epsilon * size + target.tiny)
    change = np.maximum(0.0, norms(seen.f - middle) - np.sqrt(middle[0].size) * rounding)
    ratio = np.divide(change, moved, out=np.zeros_like(change), where=moved > 0)
    row = int(ratio.argmax())
    return Steepest(float(ratio[row]), seen.x[row].tolist())


def norms(x: Floats) -> Floats:
    """Euclidean norms over the last two axes, also where squares overflow."""
    size = float(np.abs(x).max()) or 1.0
    return np.asarray(size * np.sqrt(((x / size) ** 2).sum((1, 2))))


def find_worst(target: Target, built: Built, grid: CellGrid, x: Floats, p: float) -> Worst:
    """Start at the worst points seen; move each coordinate to the edges or middle of its cell."""
    best = SampledPoints(target, built, grid, x, p)
    keep = np.argsort(best.off_ramps)[-FINALISTS:]
    x, deviation, token = x[keep], best.off_ramps[keep], best.token[keep]
    lower = np.append(0.0, built.edges + built.delta)
    upper = np.append(built.edges, 1.0)
    cells = grid.coordinates(token)
    inset = 1e-9 / grid.cells  # away from the edge, which rounding could cross
    for _ in range(2):
        for k, i in itertools.islice(np.ndindex(grid.n, grid.d), MOVED):
            low, high = lower[cells[:, k, i]] + inset, upper[cells[:, k, i]] - inset
            for z in (low, high, (low + high) / 2):
                tried = x.copy()
                tried[:, k, i] = grid.points(np.tile(z[:, None], grid.d))[:, i]
                found = SampledPoints(target, built, grid, tried, p)
                better = found.off_ramps > deviation
                x[better], deviation[better] = tried[better], found.off_ramps[better]
    row = int(deviation.argmax())
    at = SampledPoints(target, built, grid, x[row : row + 1], p)
    return Worst(
        point=x[row].tolist(),
        f=at.f[0].tolist(),
        network=at.g[0].tolist(),
        deviation=float(at.deviation[0]),
    )
