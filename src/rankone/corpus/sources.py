"""Which files are meant: a list of them, a directory, a pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from rankone.corpus.builtin import is_builtin
from rankone.corpus.layouts import CONLL, SUFFIXES, suffix_of
from rankone.corpus.source import files_in, printable
from rankone.errors import CorpusError
from rankone.plural import plural

Named = str | os.PathLike[str]
ENDINGS = (*CONLL, *SUFFIXES)


def files_of(sources: Named | Iterable[Named], directories: bool = True) -> list[Named]:
    """Every file that is meant, in order: those of a directory and of a pattern by their names.

    What exists is meant itself, even if its name has a ``*`` in it. Hidden files are left out, and
    ``directories`` are left as they are unless their files are wanted.
    """
    if isinstance(sources, str | os.PathLike):
        return _files_of(sources, directories)
    if not isinstance(sources, list | tuple):
        return [cast(Any, sources)]  # whoever opens it says what is wrong
    found = [file for source in sources for file in _files_of(source, directories)]
    if not found:
        raise CorpusError("no file", remedy="name at least one")
    return found


def _files_of(source: Named, directories: bool) -> list[Named]:
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if not isinstance(name, str) or "\0" in name or name == "-" or is_builtin(source):
        return [source]
    if os.path.isdir(name):
        return _inside(name) if directories else [source]
    if not glob.has_magic(name) or os.path.lexists(name):
        return [source]
    found = [path for path in sorted(glob.glob(name, recursive=True)) if os.path.isfile(path)]
    if not found:
        raise CorpusError(
            "no file of this pattern",
            where=printable(name),
            remedy="check the pattern; quotes keep the shell from changing it",
        )
    return list(found)


def _inside(name: str) -> list[Named]:
    """The files of a directory whose names end as those of corpora do."""
    files = files_in(Path(name))
    found = [path for path in files if suffix_of(str(path)) in ENDINGS]
    if not found:
        raise CorpusError(
            f"is a directory with {plural(len(files), 'file')}, none of which ends in "
            f"{', '.join(ENDINGS)}",
            where=printable(name),
            remedy=f"name one file inside it, or all of them by a pattern such as {name}/*",
        )
    return list(found)
