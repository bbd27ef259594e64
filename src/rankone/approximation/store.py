"""An approximation on disk: the weights in safetensors, the report in JSON, field by field."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import safetensors
import torch
from msgspec import Meta
from safetensors.torch import load as deserialize
from safetensors.torch import save as serialize
from torch import Tensor

from rankone.approximation.cell_grid import CellGrid
from rankone.approximation.error_bound import ErrorBound
from rankone.approximation.measured_error import SOURCES, MeasuredError, Source, Steepest, Worst
from rankone.approximation.result import Approximation
from rankone.approximation.stream_layout import StreamLayout
from rankone.approximation.verify import Verified
from rankone.documents import dump, parse_document, read_bytes
from rankone.errors import ModelError
from rankone.files import kept, made, write_file
from rankone.nn import Approximator, Rank1Attention, Stairs, TiltedStairs

WEIGHTS, REPORT = "network.safetensors", "approximation.json"
ANEW = "save the approximation again"
HERE = "give a directory written by `rankone approximate --out`"
ONE_RUN = "use both files from the same run"

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


def save_approximation(
    directory: str | os.PathLike[str], approximation: Approximation
) -> list[Path]:
    """Write both files or neither; returns them."""
    parameters = approximation.network.named_parameters()
    tensors = {name: p.detach().contiguous() for name, p in parameters}
    report = dump(approximation.to_json(), indent=2)
    with made(directory) as home, kept(home / WEIGHTS):
        return [write_file(home / WEIGHTS, serialize(tensors)), write_file(home / REPORT, report)]


def load_approximation(directory: str | os.PathLike[str]) -> Approximation:
    """Load what `Approximation.save` wrote, except f itself; checks that it fits together."""
    home = Path(directory)
    data = read_bytes(home / REPORT, missing=HERE)
    report = parse_document(data, Report, home / REPORT, remedy=ANEW)
    if not report.sound:
        raise ModelError("its sizes do not match", where=str(home / REPORT), remedy=ANEW)
    try:
        tensors = deserialize(read_bytes(home / WEIGHTS, missing=HERE))
    except (ValueError, KeyError, safetensors.SafetensorError) as error:
        what, where = f"cannot be read ({error})", str(home / WEIGHTS)
        raise ModelError(what, where=where, remedy=ANEW) from None
    start = tensors.get("f2.start")
    steps = 0 if start is None or start.ndim != 2 else start.shape[1]
    network = empty_network(report, steps)
    wanted = {name: (tuple(p.shape), p.dtype) for name, p in network.named_parameters()}
    found = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}
    for name in sorted({*wanted, *found}):
        if wanted.get(name) != found.get(name) or not tensors[name].isfinite().all():
            raise ModelError(
                f"{name} does not match {REPORT}", where=str(home / WEIGHTS), remedy=ONE_RUN
            )
    network.load_state_dict(tensors, assign=True)
    loaded = report.approximation(network)
    check_whole(loaded, parse_document(data, dict[str, Any], home / REPORT), home / REPORT)
    return loaded


def check_whole(loaded: Approximation, document: dict[str, Any], path: Path) -> None:
    """Raise an error if a figure does not follow from the others and the weights."""
    again = loaded.to_json()
    low, span = loaded.network.low.tolist(), loaded.network.span.tolist()
    wrong = [name for name in again if document.get(name) != again[name]]
    wrong += ["domain"] * ((low, span) != (loaded.grid.low.tolist(), loaded.grid.span.tolist()))
    if wrong:
        raise ModelError(
            f"{wrong[0]} does not match the weights and the other figures",
            where=str(path),
            remedy=ONE_RUN,
        )


def empty_network(report: Report, steps: int) -> Approximator:
    """The network of a report without its weights; `steps` is the number of steps of F2."""
    d, m = report.d, report.m
    width = StreamLayout(d, m, report.positions).width

    def empty(*shape: int) -> Tensor:
        return torch.empty(*shape, dtype=torch.float64)

    with torch.device("meta"):
        linear = report.readout == "linear"
        return Approximator(
            n=report.n,
            low=empty(d),
            span=empty(d),
            f1=Stairs(width, d, report.grid - 1, d + 2),
            attention=Rank1Attention(width, dtype=torch.float64),
            f2=TiltedStairs(width, steps, m, d) if linear else Stairs(width, 1, steps, m),
            outputs=m,
            positions=report.positions,
        )
