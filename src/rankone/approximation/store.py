"""An approximation on disk: the weights in safetensors, the report in JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_file
from safetensors.torch import save as serialize
from torch import Tensor

from rankone.approximation.layout import Layout
from rankone.errors import ModelError
from rankone.files import make_directory, write_file
from rankone.nn import Approximator, Rank1Attention, Stairs, TiltedStairs

WEIGHTS, REPORT = "network.safetensors", "approximation.json"


def save_approximation(
    directory: str | os.PathLike[str], network: Approximator, report: dict[str, Any]
) -> list[Path]:
    """Write both files; returns them."""
    home = make_directory(directory)
    tensors = {name: p.detach().contiguous() for name, p in network.named_parameters()}
    text = json.dumps(report, indent=2, allow_nan=False) + "\n"
    return [write_file(home / WEIGHTS, serialize(tensors)), write_file(home / REPORT, text)]


def load_approximation(directory: str | os.PathLike[str]) -> Approximator:
    """The network of a directory that `Approximation.save` wrote; refuses what does not fit."""
    home = Path(directory)
    report = _report(home / REPORT)
    try:
        tensors = load_file(home / WEIGHTS)
    except (OSError, safetensors.SafetensorError) as error:
        raise ModelError(
            f"cannot be read ({error})", where=str(home / WEIGHTS), remedy="write it again"
        ) from None
    start = tensors.get("f2.start")
    steps = 0 if start is None or start.ndim != 2 else start.shape[1]
    network = empty_network(report, steps)
    wanted = {name: (tuple(p.shape), p.dtype) for name, p in network.named_parameters()}
    found = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}
    for name in sorted({*wanted, *found}):
        if wanted.get(name) != found.get(name) or not tensors[name].isfinite().all():
            raise ModelError(
                f"{name} is not what {REPORT} says",
                where=str(home / WEIGHTS),
                remedy="take both files from one run",
            )
    network.load_state_dict(tensors, assign=True)
    return network


def empty_network(report: dict[str, Any], steps: int) -> Approximator:
    """The network of a report without its numbers; `steps` is how many F2 has."""
    d, m, positions = report["d"], report["m"], report["positions"]
    width = Layout(d, m, positions).width

    def empty(*shape: int) -> Tensor:
        return torch.empty(*shape, dtype=torch.float64)

    with torch.device("meta"):
        linear = report["readout"] == "linear"
        return Approximator(
            low=empty(d),
            span=empty(d),
            f1=Stairs(width, d, report["grid"] - 1, d + 2),
            attention=Rank1Attention(width, dtype=torch.float64),
            f2=TiltedStairs(width, steps, m, d) if linear else Stairs(width, 1, steps, m),
            outputs=m,
            positions=positions,
        )


def _report(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        numbers = [report[name] for name in ("n", "d", "m", "grid")]
        sound = all(type(number) is int and 0 < number < 1 << 31 for number in numbers)
        sound &= type(report["positions"]) is bool
        sound &= report["readout"] in ("constant", "linear")
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        raise ModelError(
            f"cannot be read ({type(error).__name__}: {error})",
            where=str(path),
            remedy="name a directory that `rankone approximate --out` wrote",
        ) from None
    if not sound:
        raise ModelError("damaged", where=str(path), remedy="write it again")
    return dict(report)
