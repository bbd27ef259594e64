"""The baseline: an audit that was written as JSON, whose findings are known."""

from __future__ import annotations

import os
from dataclasses import dataclass

from rankone.audit.findings import Duplicate, Leak, Suspect
from rankone.corpus.conflicts import Conflict
from rankone.documents import parse_document, read_bytes
from rankone.errors import BaselineError

FIRST = "write it first: rankone inspect --json, with the same files and options"
AGAIN = FIRST.replace("first", "again")


@dataclass(frozen=True)
class Split:
    """Of the comparison with another split, what is needed."""

    file: str
    leaks: tuple[Leak, ...]


@dataclass(frozen=True)
class Baseline:
    """Of what `rankone inspect --json` prints, what is needed."""

    inputs: tuple[str, ...]
    conflicts: tuple[Conflict, ...]
    duplicates: tuple[Duplicate, ...]
    against: tuple[Split, ...]
    suspects: tuple[Suspect, ...]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Baseline:
        """The report at `path`; anything else is refused."""
        data = read_bytes(path, error=BaselineError, missing=FIRST)
        found = parse_document(data, cls, path, error=BaselineError, remedy=AGAIN)
        for i, conflict in enumerate(found.conflicts):
            for label, lines in conflict.labels.items():
                files = conflict.files.get(label, found.inputs[:1] * len(lines))
                if len(files) != len(lines):
                    what = f"conflicts[{i}]: {len(lines)} lines of {label}, but {len(files)} files"
                    raise BaselineError(what, where=os.fspath(path), remedy=AGAIN)
        return found
