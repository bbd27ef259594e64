"""The log: a line of JSON per epoch, and the same for TensorBoard."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rankone.errors import OutputError
from rankone.extras import extra
from rankone.files import drop_link, write_file

LOG = "log.jsonl"


class Log:
    """Appends to a file, to TensorBoard, to both or to nothing."""

    def __init__(self, path: Path | None, writer: Any = None) -> None:
        self.path, self.writer = path, writer

    def begin(self, lines: list[dict[str, float]]) -> None:
        """Write anew what is known up to a checkpoint: what came after it will come again."""
        if self.path is not None:
            write_file(drop_link(self.path), "".join(json.dumps(line) + "\n" for line in lines))

    def add(self, line: Mapping[str, float]) -> None:
        if self.path is not None:
            try:
                with open(self.path, "a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
            except OSError as error:
                raise OutputError(
                    f"cannot write ({error.strerror})",
                    where=str(self.path),
                    remedy="make room, then go on with --resume",
                ) from None
        if self.writer is not None:
            for name, value in line.items():
                if name != "epoch":
                    self.writer.add_scalar(name, value, int(line["epoch"]))


@contextlib.contextmanager
def open_log(path: Path | None, tensorboard: Path | None, epochs: int) -> Iterator[Log]:
    """`tensorboard` is a directory for event files; `epochs` of them are there already."""
    if tensorboard is None:
        yield Log(path)
        return
    with extra("tensorboard", "--tensorboard"):
        from torch.utils.tensorboard import SummaryWriter
    try:
        writer = SummaryWriter(str(tensorboard), purge_step=epochs + 1)
    except OSError as error:
        raise OutputError(
            f"cannot write ({error.strerror})",
            where=str(tensorboard),
            remedy="choose another directory for --tensorboard",
        ) from None
    try:
        yield Log(path, writer)
    finally:
        writer.close()
