"""Checkpoints: written whole or not at all, named by their contents, and never executed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar

import safetensors
from safetensors.torch import load as deserialize
from safetensors.torch import save as serialize
from torch import Tensor

from rankone.documents import dumps, parse_document
from rankone.errors import RankOneError, TrainingError
from rankone.files import refused

VERSION = 3
NAME = re.compile(r"checkpoint-(\d{9})-([0-9a-f]{16})\.safetensors")
T = TypeVar("T")


class Metadata(TypedDict):
    rankone: str  # the seal and the document in one entry: the order of two would not be fixed


Header = TypedDict("Header", {"__metadata__": Metadata})


class Stated(TypedDict):
    version: int


@dataclass(frozen=True)
class Checkpoint(Generic[T]):
    """The tensors of a run, and a document with everything else."""

    path: Path
    tensors: dict[str, Tensor]
    document: T


def write(
    directory: Path,
    step: int,
    tensors: Mapping[str, Tensor],
    document: Mapping[str, Any],
    *,
    before: Path | None,
) -> Path:
    """Write next to the others, then rename. Once the new one is safe, all others are removed
    except the one `before`, which is kept in case the newest is damaged."""
    stated = dumps({"version": VERSION, **document}, ascii=True)
    held = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    contents = serialize(held, metadata={"rankone": f"{seal(stated, held)} {stated}"})
    digest = sha256(contents).hexdigest()[:16]
    target = directory / f"checkpoint-{step:09d}-{digest}.safetensors"
    new = directory / f".{target.name}.new"
    remedy = "make room, then continue from the checkpoint before with --resume"
    with refused("cannot write", target, remedy):
        try:
            with open(new, "wb") as file:
                file.write(contents)
                file.flush()
                os.fsync(file.fileno())  # otherwise a power cut could leave an empty file
            os.replace(new, target)
        except OSError:
            new.unlink(missing_ok=True)
            raise
    if target != before:  # otherwise nothing is new
        for old in _paths(directory):
            if old not in (target, before):
                old.unlink(missing_ok=True)
    return target


def newest(directory: Path, description: type[T]) -> tuple[Checkpoint[T] | None, list[str]]:
    """The newest checkpoint that is whole, and what is wrong with those that are newer.

    None if there is no checkpoint at all; an error if there are some, and all are damaged.
    """
    damaged: list[str] = []
    for path in sorted(_paths(directory), reverse=True):
        try:
            return _read(path, description), damaged
        except RankOneError as error:
            damaged.append(f"{path}: damaged ({error.what})")
        except (OSError, ValueError, TypeError, safetensors.SafetensorError) as error:
            damaged.append(f"{path}: damaged ({error})")
    if damaged:
        raise TrainingError(
            "no checkpoint is whole\n  " + "\n  ".join(damaged),
            where=str(directory),
            remedy="copy one from elsewhere, or start a new run in another directory",
        )
    return None, []


def seal(stated: str, tensors: Mapping[str, Tensor]) -> str:
    """A hash of the document and all numbers: it reveals a checkpoint that was edited, even under
    another name."""
    digest = sha256(stated.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\0{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        digest.update(tensor.numpy().data)
    return digest.hexdigest()


def _paths(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if NAME.fullmatch(path.name)]


def _read(path: Path, description: type[T]) -> Checkpoint[T]:
    if path.is_symlink() or not path.is_file():  # pipes and links are not opened
        raise ValueError("it is no file")
    contents = path.read_bytes()
    named = NAME.fullmatch(path.name)
    if named is None or sha256(contents).hexdigest()[:16] != named[2]:
        raise ValueError("its contents are not those it was written with")

    def parse(data: bytes | str, wanted: type[Any]) -> Any:
        return parse_document(data, wanted, path, TrainingError)

    length = int.from_bytes(contents[:8], "little")
    header = parse(contents[8 : 8 + length], Header)
    sealed, _, stated = header["__metadata__"]["rankone"].partition(" ")
    version = parse(stated, Stated)["version"]
    if version != VERSION:
        raise ValueError(f"version {version}, this reads {VERSION}")
    tensors = deserialize(contents)
    if seal(stated, tensors) != sealed:
        raise ValueError("it was edited")
    return Checkpoint(path, tensors, parse(stated, description))
