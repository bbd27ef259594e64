"""Tables in files of a scratch directory, so that memory holds those of one call only."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rankone.engines.engine import Ref, Table
from rankone.engines.here import InSequence
from rankone.errors import SettingError
from rankone.files import refused

BASE = 600_000_000  # bytes that Python, torch and compiled code take before any work
LEAST = 1.0  # GB: less leaves no room for work
SHARE = 0.4  # of what is left, for what a function makes of its tables; the rest is for results
ALIGNED = 64  # bytes: where columns begin in a file


Column = tuple[str, np.dtype[Any], tuple[int, ...], int]  # its name, kind, shape, and first byte


class Disk(InSequence):
    """Keeps tables in a directory of its own below `scratch`, which goes when it is closed."""

    name = "disk"

    def __init__(self, scratch: str | os.PathLike[str] | None = None, memory: float | None = None):
        if memory is not None:
            SettingError.unless(memory >= LEAST, "memory", memory, f"at least {LEAST:g} (GB)")
            self.room = int(SHARE * (memory * 1e9 - BASE))
        self.where = Path(tempfile.gettempdir() if scratch is None else scratch)
        self.remedy = "choose another directory for temporary files (--scratch)"
        with refused("cannot be used for temporary files", self.where, self.remedy):
            self.home = Path(tempfile.mkdtemp(prefix="rankone-", dir=self.where))
        # also where nobody closes it: at the end of the process, whatever ends it but a kill
        self._gone = weakref.finalize(self, shutil.rmtree, self.home, ignore_errors=True)
        self._numbers = itertools.count()

    def put(self, table: Table) -> Ref:
        path, at = self.home / str(next(self._numbers)), 0
        columns: list[Column] = []
        try:
            with (
                refused("no room for temporary files", self.where, self.remedy),
                path.open("wb", buffering=0) as file,
            ):
                for name, column in table.items():
                    data = np.ascontiguousarray(column)
                    columns.append((name, data.dtype, data.shape, at))
                    view = data.reshape(-1).view(np.uint8).data
                    while view:
                        view = view[file.write(view) :]
                    at += -(-data.nbytes // ALIGNED) * ALIGNED
                    file.seek(at)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return Ref((path, columns))

    def take(self, ref: Ref) -> Table:
        (path, columns), found = ref.held, {}
        with refused("a temporary file cannot be read", self.where, self.remedy):
            for name, dtype, shape, at in columns:
                count = int(np.prod(shape))
                found[name] = np.fromfile(path, dtype, count, offset=at).reshape(shape)
        return found

    def drop(self, refs: Iterable[Ref]) -> None:
        for ref in refs:
            ref.held[0].unlink(missing_ok=True)

    def close(self) -> None:
        self._gone()
