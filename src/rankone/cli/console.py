"""What commands print: one JSON object, or tables; progress goes to standard error."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from rankone.progress import Progress


def print_json(document: Mapping[str, Any]) -> None:
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(document, ensure_ascii=not utf8))


def print_table(title: str, rows: Sequence[tuple[str, ...]], header: tuple[str, ...] = ()) -> None:
    """The first column to the left, figures to the right."""
    table = Table(show_header=bool(header), pad_edge=False)
    for i in range(max(map(len, rows))):
        name, side = header[i] if header else "", "left" if i == 0 else "right"
        table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*map(plain, row))
    print_lines(title)
    Console(highlight=False, markup=False, emoji=False).print(table)


def print_lines(*lines: str) -> None:
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for line in lines:
        console.print(plain(line))


def plain(text: str) -> str:
    """Words of a corpus as they are, but for what would steer the terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


@contextlib.contextmanager
def working(task: str, *, quiet: bool) -> Iterator[Progress]:
    """A progress bar for as long as the work lasts, where somebody is watching."""
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        row = bar.add_task(task, total=None)

        def report(stage: str, share: float) -> None:
            bar.update(row, description=stage, completed=share, total=1.0 if share else None)

        yield report


def scheme_line(scheme: str | None, asked: str) -> str | None:
    """What was done with entity tags, for the reader of the output."""
    if scheme is None:
        return None
    if asked != "keep":
        return f"Entity tags are read as {scheme} (--scheme {asked})."
    remedy = "; --scheme iob2 converts them" if scheme == "IOB1" else ""
    return f"Entity tags are {scheme} and kept as stored{remedy}."
