"""What `rankone inspect` refuses before it starts.

Settings that do not go together, places that cannot be written to, files that would be lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from rankone.errors import OutputError, SettingError
from rankone.files import check_place

if TYPE_CHECKING:
    from rankone.audit import Audit
    from rankone.audit.gate import Gate
    from rankone.cli.options import TextReading

PAGE = b"<!doctype html"
ROWS = (".csv", ".tsv", ".jsonl")
ANOTHER = "choose another path"


@dataclass(frozen=True)
class Given:
    """The settings of `rankone inspect`, as they were given."""

    files: tuple[str, ...]
    against: tuple[str, ...] = ()
    suspects: int = 0
    probabilities: Path | None = None
    fail_on: str | None = None
    baseline: Path | None = None
    rows: Path | None = None
    out: Path | None = None

    def read(self) -> Iterator[tuple[str, str]]:
        """Everything that is read, after the name of its option."""
        yield from (("FILE", path) for path in self.files)
        yield from (("--against", path) for path in self.against)
        for option in ("probabilities", "baseline"):
            if (path := getattr(self, option)) is not None:
                yield f"--{option}", str(path)


def check_find(given: Given, reading: TextReading | None = None) -> Gate | None:
    """Refuse what makes no sense; the gate, if there is one."""
    from rankone.audit.gate import Gate

    gate = None if given.fail_on is None else Gate.parse(given.fail_on)
    if reading is not None and reading.task != "tags":
        _check_text(given, reading, gate)
    if gate is not None and gate.of_splits and not given.against:
        raise SettingError(
            f"--fail-on {','.join(gate.of_splits)}, but there is no other split",
            remedy="name one with --against FILE",
        )
    if given.baseline is not None and gate is None:
        raise SettingError(
            "--baseline without --fail-on, so nothing can fail",
            remedy="name what fails, as in --fail-on conflicts",
        )
    looked_for = given.suspects or (gate is not None and gate.score is not None)
    if given.probabilities is not None and not looked_for:
        raise SettingError(
            "--probabilities without --suspects, which they are evidence for",
            remedy="add --suspects N",
        )
    if given.rows is not None and given.rows.suffix.lower() not in ROWS:
        raise SettingError(
            f"rows are not kept in {given.rows.suffix or 'such'} files",
            where=str(given.rows),
            remedy="choose a name that ends in .csv, .tsv or .jsonl",
        )
    _check_read(given)
    _check_written(given, [("--rows", given.rows), ("--out", given.out)])
    return gate


def _check_text(given: Given, reading: TextReading, gate: Gate | None) -> None:
    """What texts do not have: labels of tokens, and with the next token no labels at all."""
    asked = {
        "--suspects": bool(given.suspects),
        "--probabilities": given.probabilities is not None,
        "--fail-on suspects": gate is not None and gate.score is not None,
    }
    if reading.task == "next":
        asked |= {
            "--rows": given.rows is not None,
            "--label-column": reading.label_column is not None,
        }
    for option, chosen in asked.items():
        if chosen:
            raise SettingError(
                f"{option} is about labels of tokens, and --task {reading.task} has none",
                remedy=f"leave out {option}, or choose another task",
            )


def check_parts(given: Given, rows: Path | None) -> None:
    """Refuse what needs the whole corpus in memory."""
    for option, chosen in (("--probabilities", given.probabilities), ("--apply", rows)):
        if chosen is not None:
            raise SettingError(
                f"{option} needs the whole corpus in memory",
                remedy=f"leave out {option}, or memory and engine (--memory, --scratch, --engine)",
            )


def check_listed(audit: Audit, gate: Gate) -> None:
    """No comparison with a baseline if not all conflicts are listed: others could take their
    places."""
    if audit.text is None or "conflicts" not in gate.kinds:
        return
    row = audit.text.ceiling(audit.text.window)
    if row.branching > len(audit.conflicts):
        raise SettingError(
            f"{row.branching:,} contexts with several continuations, of which only "
            f"{len(audit.conflicts):,} are listed: a baseline cannot hold them",
            where=audit.source,
            remedy="leave out conflicts from --fail-on, or inspect a longer --window",
        )


def check_apply(given: Given, rows: Path) -> Path:
    """The same for the corrections in `rows`; where the corrected file goes."""
    for option in ("against", "suspects", "probabilities", "fail_on", "baseline", "rows"):
        if getattr(given, option):
            raise SettingError(
                f"--apply does not go with --{option.replace('_', '-')}",
                remedy="apply the rows first, then inspect the corrected file",
            )
    if len(given.files) > 1:
        raise SettingError(
            "--apply corrects one file at a time", remedy="run it once for each FILE"
        )
    if given.files[0] in ("-", "builtin", "toy"):
        raise SettingError(
            f"--apply corrects a file, and {given.files[0]} is none", remedy="give a path"
        )
    if given.out is None:
        raise SettingError(
            "--apply needs a place for the corrected file", remedy="name one with --out PATH"
        )
    _check_written(given, [("--out", given.out)], ("--apply", str(rows)))
    return given.out


def _check_read(given: Given) -> None:
    """No corpus twice: it would be a duplicate of itself, or leak into itself."""
    corpora = [pair for pair in given.read() if pair[0] in ("FILE", "--against")]
    for (one, path), (two, other) in combinations(corpora, 2):
        if _identity(path) == _identity(other):
            twice = f"given twice ({one} and {two})"
            why = "it would leak into itself" if two == "--against" else "all of it is a duplicate"
            raise SettingError(f"{twice}: {why}", where=other, remedy="give each file once")


def _check_written(
    given: Given, places: list[tuple[str, Path | None]], *more: tuple[str, str]
) -> None:
    """No place that cannot be written to, that is read, or that holds what somebody wrote."""
    chosen = [(option, path) for option, path in places if path is not None]
    for option, path in chosen:
        check_place(path)
        for other, source in (*given.read(), *more):
            if source not in ("-", "builtin", "toy") and _identity(source) == _identity(path):
                raise SettingError(
                    f"{option} would overwrite {other}", where=str(path), remedy=ANOTHER
                )
        if (
            path.is_file()
            and path.stat().st_size
            and not (option == "--out" and not more and _is_page(path))
        ):
            raise OutputError(
                "is there already", where=str(path), remedy=f"{ANOTHER}, or remove the file first"
            )
    if len({_identity(path) for _, path in chosen}) < len(chosen):
        raise SettingError("--rows and --out are the same file", remedy="choose two paths")


def _is_page(path: Path) -> bool:
    """Whether this is a page, which may be written anew."""
    try:
        with path.open("rb") as file:
            return file.read(1000).lstrip().lower().startswith(PAGE)
    except OSError:
        return False


def _identity(path: str | Path) -> object:
    """The same for all names of one file."""
    if path in ("-", "builtin", "toy"):
        return path
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return os.path.abspath(path)
    return found.st_dev, found.st_ino
