"""A process of `make mutate` removes and renames its own files only, whatever was changed."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

# Audit events, and how many of their first arguments are paths. What is relative to an open
# directory is below a path that was looked at before.
EVENTS = {"os.remove": 1, "os.rmdir": 1, "os.rename": 2, "shutil.rmtree": 1}


def guard() -> None:
    """From now on, for the rest of the process. Changed code may well mean the root directory."""
    home = Path(tempfile.gettempdir()).resolve()
    sys.addaudithook(lambda event, arguments: _look(home, event, arguments))


def _look(home: Path, event: str, arguments: tuple[Any, ...]) -> None:
    for path in arguments[: EVENTS.get(event, 0)]:
        if isinstance(path, int) or (event != "shutil.rmtree" and arguments[-1] != -1):
            continue
        place = Path(os.path.abspath(os.fsdecode(path)))
        if home not in place.parent.resolve().joinpath(place.name).parents:
            raise PermissionError(f"{event} {place}")
