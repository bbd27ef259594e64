"""What commands print: one JSON object, or tables; progress goes to standard error."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from rankone.progress import Progress

if TYPE_CHECKING:
    from rankone.cli.options import Output
    from rankone.corpus import Ceiling


def report(
    output: Output,
    document: Mapping[str, Any],
    show: Callable[[], None],
    files: Sequence[Path] | None = None,
    *,
    otherwise: str = "",
) -> None:
    """Print the result in the form the user chose. `files` are those written, None for a command
    that writes none; `otherwise` is printed if there are none."""
    if output.json:
        names = {} if files is None else {"files": list(map(str, files))}
        print_json({**document, **names})
    elif not output.quiet:
        show()
        if files:
            print_lines("Wrote", *(f"  {path}" for path in files))
        elif otherwise:
            print_lines(otherwise)


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON object. Its last value may come item by item (an iterator), as a list."""
    from rankone.documents import dumps

    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    name, last = list(document.items())[-1]
    if not isinstance(last, Iterator):
        print(dumps(document, ascii=not utf8))
        return
    head = dumps({**document, name: []}, ascii=not utf8)
    print(head.removesuffix("]}"), end="")
    for i, item in enumerate(last):
        print(", " * (i > 0) + dumps(item, ascii=not utf8), end="")
    print("]}")


def print_table(
    title: str,
    rows: Sequence[tuple[str, ...]],
    header: tuple[str, ...] = (),
    *,
    wide: bool = False,
) -> None:
    """Print a table: the first column is aligned left, figures are aligned right. A `wide` one
    keeps its lines whole, however narrow the terminal is."""
    table = Table(show_header=bool(header), pad_edge=False)
    for i in range(max(map(len, rows))):
        name, side = header[i] if header else "", "left" if i == 0 else "right"
        table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*map(plain, row))
    print_lines(title)
    console = Console(highlight=False, markup=False, emoji=False)
    if wide:
        table.box, table.show_edge = box.SIMPLE_HEAD, False
        room = console.options.update(max_width=1 << 12)
        console.width = max(console.width, console.measure(table, options=room).maximum)
    console.print(table)


def print_lines(*lines: str) -> None:
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for line in lines:
        console.print(plain(line))


def plain(text: str) -> str:
    """Text with control characters escaped, so that it cannot steer the terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


@contextlib.contextmanager
def working(task: str, output: Output) -> Iterator[Progress]:
    """A progress bar for as long as the work lasts, if standard error is a terminal."""
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(
        console=console, transient=True, disable=output.silent or not console.is_terminal
    ) as bar:
        row = bar.add_task(task, total=None)

        def report(stage: str, share: float) -> None:
            bar.update(row, description=stage, completed=share, total=1.0 if share else None)

        yield report


def scheme_lines(scheme: str | None, asked: str) -> list[str]:
    """How entity tags were read, if there are any."""
    if scheme is None:
        return []
    if asked != "keep":
        return [f"Entity tags are read as {scheme} (--scheme {asked})."]
    remedy = "; --scheme iob2 converts them" if scheme == "IOB1" else ""
    return [f"Entity tags are {scheme} and kept as stored{remedy}."]


def attention_share(share: float | None) -> str:
    """The share of what attention could add that was reached."""
    if share is None:
        return "nothing to add"
    return f"{share:.2%}" if share >= 0 else "none: below the token alone"


def ceiling_rows(ceilings: Mapping[str, Ceiling]) -> list[tuple[str, str]]:
    """The ceilings to compare an accuracy with."""
    names = {"token": "ceiling of the token alone", "input": "ceiling of any model"}
    return [
        (name, f"{ceilings[key].accuracy:.4%} ({ceilings[key].errors:,} wrong)")
        for key, name in names.items()
    ]
