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

from rankone.errors import ModelError
from rankone.nn import Approximator, Rank1Attention, Stairs, TiltedStairs
from rankone.nn.store import make_directory, write_file

WEIGHTS, REPORT = "network.safetensors", "approximation.json"
ATTENTION = {"v1", "v2", "output"}
STAIRS = {"direction", "start", "width", "level", "output"}
TILTED = STAIRS | {"tilt", "middle", "slope", "residual", "reach"}


def save_approximation(
    directory: str | os.PathLike[str], network: Approximator, report: dict[str, Any]
) -> list[Path]:
    """Write both files; returns them."""
    home = make_directory(directory)
    tensors = {name: p.detach().contiguous() for name, p in network.named_parameters()}
    text = json.dumps(report, indent=2) + "\n"
    return [
        write_file(home / WEIGHTS, serialize(tensors)),
        write_file(home / REPORT, text),
    ]


def load_approximation(directory: str | os.PathLike[str]) -> Approximator:
    """The network of a directory that `Approximation.save` wrote."""
    home = Path(directory)
    report = _report(home / REPORT)
    try:
        tensors = load_file(home / WEIGHTS)
    except (OSError, safetensors.SafetensorError) as error:
        raise ModelError(
            f"cannot be read ({error})", where=str(home / WEIGHTS), remedy="write it again"
        ) from None
    parts: dict[str, dict[str, Tensor]] = {"": {}, "f1": {}, "attention": {}, "f2": {}}
    for name, tensor in tensors.items():
        part, _, vector = name.rpartition(".")
        if part not in parts or tensor.dtype != torch.float64 or not tensor.isfinite().all():
            raise _unfit(home)
        parts[part][vector] = tensor
    f2 = TiltedStairs if set(parts["f2"]) == TILTED else Stairs
    wanted = {"": {"low", "span"}, "f1": STAIRS, "attention": ATTENTION}
    if any(set(parts[part]) != names for part, names in wanted.items()):
        raise _unfit(home)
    try:
        network = Approximator(
            low=parts[""]["low"],
            span=parts[""]["span"],
            f1=Stairs.assemble(**parts["f1"]),
            attention=Rank1Attention.assemble(**parts["attention"]),
            f2=f2.assemble(**parts["f2"]),
            outputs=report["m"],
            positions=report["positions"],
        )
        with torch.no_grad():
            out = network(network.low.expand(1, report["n"], -1))
        if out.shape != (1, report["n"], report["m"]):
            raise _unfit(home)
    except (AttributeError, IndexError, RuntimeError, TypeError):
        raise _unfit(home) from None
    return network


def _report(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        sound = type(report["n"]) is type(report["m"]) is int and type(report["positions"]) is bool
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        raise ModelError(
            f"cannot be read ({error})",
            where=str(path),
            remedy="name a directory that `rankone approximate --out` wrote",
        ) from None
    if not sound or min(report["n"], report["m"]) < 1:
        raise ModelError("damaged", where=str(path), remedy="write it again")
    return dict(report)


def _unfit(home: Path) -> ModelError:
    return ModelError(
        "the weights are not those of the report",
        where=str(home / WEIGHTS),
        remedy="take both files from one run",
    )
