"""Tables that a spreadsheet can open and save again, and none of whose cells it would run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from rankone.errors import RowsError
from rankone.plural import plural

# What a spreadsheet may run, at the start of a cell or after white space and quotes; some also run
# the wide forms of East Asian text.
FORMULA = re.compile(r"[\s'\"]*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"'}
ESCAPED = re.compile(r'[\\\t\n\r]|\A"')  # a quote at the start would open a quoted cell
MEANINGS = {escape: character for character, escape in ESCAPES.items()}
SEPARATORS = ",;\t"  # those that spreadsheets save with, depending on the country
HEADER = "keep the header row: file, line, token, label, proposal and accept are needed"


def guarded(cell: str) -> str:
    """A cell that no spreadsheet runs: what might be a formula begins with an apostrophe.

    >>> guarded("=1+1"), guarded("'s"), guarded("'-")
    ("'=1+1", "'s", "''-")
    """
    return f"'{cell}" if FORMULA.match(cell) else cell


def unguarded(cell: str) -> str:
    """The cell as it was, whether the spreadsheet has kept the apostrophe or swallowed it.

    An apostrophe is taken away only from what `guarded` gives one to. So one case is left: a word
    that is itself an apostrophe before a formula ("'-") comes back without it if it was swallowed.
    """
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell, 1) else cell


def as_csv(rows: Iterable[Sequence[str]]) -> str:
    """RFC 4180, with the byte order mark that Excel needs to see UTF-8."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([guarded(cell) for cell in row] for row in rows)
    return "\ufeff" + text.getvalue()


def as_tsv(rows: Iterable[Sequence[str]]) -> str:
    r"""One line a row: TAB, line ends and backslash are \t, \n, \r and \\, a first quote is \"."""
    return "".join(
        "\t".join(ESCAPED.sub(lambda m: ESCAPES[m[0]], guarded(cell)) for cell in row) + "\n"
        for row in rows
    )


def read_cells(
    text: str, name: str, columns: Collection[str], needed: Collection[str], *, escaped: bool
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table by the names of their columns, each with the line where it begins.

    `escaped` says whether backslashes stand for other characters, as `as_tsv` writes them.
    """
    headers = [(separator, _header(text, separator, columns)) for separator in SEPARATORS]
    separator, (at, header) = max(headers, key=lambda found: len({*found[1][1]} & {*columns}))
    where = f"{name}, line {at or 1}"
    for column in columns:
        if column in needed and column not in header:
            raise RowsError(f"no column {column!r}", where=where, remedy=HEADER)
        if header.count(column) > 1:
            raise RowsError(f"several columns {column!r}", where=where, remedy="keep one of them")
    for number, cells in _records(text, separator, name):
        if number <= at:
            continue
        if any(cells[len(header) :]):
            raise RowsError(
                f"{plural(len(cells), 'cell')} where the header has {len(header)}",
                where=f"{name}, line {number}",
                remedy="put a cell that holds separators in double quotes",
            )
        cells += [""] * (len(header) - len(cells))  # spreadsheets may leave out the last empty ones
        if escaped:
            cells = [re.sub(r'\\[\\tnr"]', lambda m: MEANINGS[m[0]], cell) for cell in cells]
        found = dict(zip(header, map(unguarded, cells), strict=False))
        yield number, {column: found.get(column, "") for column in columns}


def _header(text: str, separator: str, columns: Collection[str]) -> tuple[int, list[str]]:
    """The first row that is not empty, and its line (0 if there is none)."""
    try:
        line, cells = next(_records(text, separator, ""), (0, []))
    except RowsError:  # not what separates the cells, or reading them will say what is wrong
        return 0, []
    names = [cell.strip().lower() for cell in cells]
    return line, [name if name in columns else "" for name in names]


def _records(text: str, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not empty, and the line where it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    begins = 1
    try:
        for cells in reader:
            if any(cells):
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        raise RowsError(
            f"cannot be read ({error})",
            where=f"{name}, line {begins}",
            remedy="close the quotes, and double those inside of a quoted cell",
        ) from None
