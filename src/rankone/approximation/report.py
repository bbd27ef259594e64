"""The content of approximation.json: each figure with its type and range; how to load it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.error_bound import ErrorBound
from rankone.approximation.measured_error import SOURCES, MeasuredError, Source, Steepest, Worst
from rankone.approximation.result import Approximation
from rankone.approximation.verify import Verified
from rankone.nn import Approximator

Count = Annotated[int, Meta(ge=1, lt=1 << 31)]
Size = Annotated[float, Meta(ge=0)]


@dataclass(frozen=True)
class Domain:
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class ErrorSource:
    """A source of the error: see `Source`; and the bound on it."""

    error: Size
    share: Size
    volume: Size
    bound: Size


@dataclass(frozen=True)
class Tried:
    grid: Count
    error: Size


@dataclass(frozen=True)
class Report:
    """approximation.json. Derived figures are written too, and compared on loading."""

    function: str
    n: Count
    d: Count
    m: Count
    domain: Domain
    positions: bool
    grid: Count
    readout: Literal["constant", "linear"]
    p: Annotated[float, Meta(ge=1)]
    epsilon: Size | None
    error: Size
    interval: tuple[Size, Size]
    bound: Size
    bound_guaranteed: bool
    bound_rounding: Size
    worst: Worst
    steepest: Steepest
    sources: dict[str, ErrorSource]
    gap: Size | None
    delta: Size
    grid_error: Size
    dense_difference: Size | None
    points: Count
    seed: Annotated[int, Meta(ge=0)]
    tried: list[Tried]
    seconds: dict[str, float]

    @property
    def sound(self) -> bool:
        """Whether domain, points and values have matching sizes."""
        low, high = self.domain.low, self.domain.high
        tokens = [*self.worst.point, *self.steepest.point]
        return (
            tuple(self.sources) == SOURCES
            and len(low) == len(high) == self.d
            and all(a < b for a, b in zip(low, high, strict=True))
            and len(self.worst.point) == len(self.steepest.point) == self.n
            and all(len(token) == self.d for token in tokens)
            and all(len(y) == self.n for y in (self.worst.f, self.worst.network))
            and all(len(y) == self.m for y in [*self.worst.f, *self.worst.network])
        )

    def approximation(self, network: Approximator) -> Approximation:
        """The result that was saved, except for f itself."""
        bounds = {name: part.bound for name, part in self.sources.items()}
        bounds["rounding"] = self.bound_rounding
        low, high = np.array(self.domain.low), np.array(self.domain.high)
        return Approximation(
            name=self.function,
            outputs=self.m,
            target=None,
            network=network,
            grid=CellGrid(self.grid, self.n, low, high, self.positions),
            readout=self.readout,
            p=self.p,
            epsilon=self.epsilon,
            measured=MeasuredError(
                error=self.error,
                interval=self.interval,
                sources={
                    name: Source(part.error, part.share, part.volume)
                    for name, part in self.sources.items()
                },
                worst=self.worst,
                steepest=self.steepest,
                points=self.points,
            ),
            bound=ErrorBound(self.bound, bounds, self.bound_guaranteed),
            verified=Verified(self.grid_error, self.dense_difference),
            gap=np.inf if self.gap is None else self.gap,
            delta=self.delta,
            tried=tuple((one.grid, one.error) for one in self.tried),
            seed=self.seed,
            seconds=self.seconds,
        )
