"""The log: a line of JSON per epoch, and the same for TensorBoard."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rankone.documents import dump
from rankone.extras import extra
from rankone.files import drop_link, refused, write_file
from rankone.training.document import EpochLine

LOG = "log.jsonl"


class Log:
    """Appends to a file, to TensorBoard, to both or to nothing."""

    def __init__(self, path: Path | None, writer: Any = None) -> None:
        self.path, self.writer = path, writer

    def add(self, line: EpochLine) -> None:
        if self.path is not None:
            remedy = "make room, then continue with --resume"
            with refused("cannot write", self.path, remedy), open(self.path, "ab") as file:
                file.write(dump(line))
        if self.writer is not None:
            for name, value in scalars(line).items():
                self.writer.add_scalar(name, value, line["epoch"])
            self.writer.flush()


def write_log(path: Path, lines: list[EpochLine]) -> None:
    """Write the lines up to a checkpoint; later epochs will be trained again."""
    write_file(drop_link(path), b"".join(map(dump, lines)))


def scalars(line: EpochLine) -> dict[str, float]:
    """What TensorBoard shows of an epoch. Evaluations have the names of their files, numbered if
    two are equal."""
    found = {name: line[name] for name in ("loss", "accuracy", "tokens_per_second")}
    evaluations = line.get("evaluations", [])
    names = [Path(evaluated["source"]).name for evaluated in evaluations]
    often = Counter(names)
    for i, (name, evaluated) in enumerate(zip(names, evaluations, strict=True), start=1):
        tag = f"evaluate/{name}" if often[name] == 1 else f"evaluate/{name} ({i})"
        found[f"{tag}/accuracy"] = evaluated["accuracy"]
        if evaluated["f1"] is not None:
            found[f"{tag}/f1"] = evaluated["f1"]
    return found


@contextlib.contextmanager
def open_log(path: Path | None, tensorboard: Path | None, epochs: int) -> Iterator[Log]:
    """`tensorboard` is a directory for event files, which may have `epochs` epochs already."""
    if tensorboard is None:
        yield Log(path)
        return
    with extra("tensorboard", "--tensorboard"):
        from torch.utils.tensorboard import SummaryWriter
    with refused("cannot write", tensorboard, "choose another directory for --tensorboard"):
        writer = SummaryWriter(str(tensorboard), purge_step=epochs + 1)
    try:
        yield Log(path, writer)
    finally:
        writer.close()
