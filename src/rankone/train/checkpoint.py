"""Checkpoints: written whole or not at all, named by their contents, and never executed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import safetensors
from safetensors.torch import load as deserialize
from safetensors.torch import save as serialize
from torch import Tensor

from rankone.errors import OutputError, TrainingError

VERSION = 1
DAMAGE = OSError, ValueError, LookupError, TypeError, RecursionError, safetensors.SafetensorError
NAME = re.compile(r"checkpoint-(\d{9})-([0-9a-f]{16})\.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    """The tensors of a run, and a document that tells all the rest."""

    path: Path
    tensors: dict[str, Tensor]
    document: dict[str, Any]


def write(
    directory: Path,
    step: int,
    tensors: Mapping[str, Tensor],
    document: Mapping[str, Any],
    *,
    before: Path | None,
) -> Path:
    """Write beside the others, then rename. When the new one is safely there, all others go but
    the one `before`, which is kept in case the newest is damaged."""
    stated = json.dumps({"version": VERSION, **document})
    contents = serialize(
        {name: tensor.cpu().contiguous() for name, tensor in tensors.items()},
        metadata={"rankone": stated},
    )
    digest = sha256(contents).hexdigest()[:16]
    target = directory / f"checkpoint-{step:09d}-{digest}.safetensors"
    new = directory / f".{target.name}.new"
    try:
        with open(new, "wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())  # else a power cut could leave a name without its contents
        os.replace(new, target)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise OutputError(
            f"cannot write ({error.strerror})",
            where=str(target),
            remedy="make room, then go on from the checkpoint before with --resume",
        ) from None
    if target != before:  # else nothing is new
        for old in _paths(directory):
            if old not in (target, before):
                old.unlink(missing_ok=True)
    return target


def newest(directory: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that is whole, and what is wrong with those that are newer.

    None if there is no checkpoint at all; an error if there are some, and all are damaged.
    """
    damaged: list[str] = []
    for path in sorted(_paths(directory), reverse=True):
        try:
            return _read(path), damaged
        except DAMAGE as error:
            damaged.append(f"{path}: damaged ({error})")
    if damaged:
        raise TrainingError(
            "no checkpoint is whole\n  " + "\n  ".join(damaged),
            where=str(directory),
            remedy="copy one from elsewhere, or train anew in another directory",
        )
    return None, []


def _paths(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if NAME.fullmatch(path.name)]


def _read(path: Path) -> Checkpoint:
    contents = path.read_bytes()
    named = NAME.fullmatch(path.name)
    if named is None or sha256(contents).hexdigest()[:16] != named[2]:
        raise ValueError("its contents are not those it was written with")
    length = int.from_bytes(contents[:8], "little")
    stated = json.loads(contents[8 : 8 + length])["__metadata__"]["rankone"]
    document = json.loads(stated)
    if document["version"] != VERSION:
        raise ValueError(f"version {document['version']}, this reads {VERSION}")
    return Checkpoint(path, deserialize(contents), document)
