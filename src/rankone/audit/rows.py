"""Rows with the findings of an audit: written for a person to mark, and read again."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rankone.audit.cells import as_csv, as_tsv, read_cells
from rankone.audit.result import Audit
from rankone.audit.review import ReviewRow, rows_of_audit
from rankone.documents import dumps, parse_document, read_bytes
from rankone.errors import RowsError, SettingError
from rankone.files import write_file

COLUMNS = "file line position sentence token label proposal kind score evidence accept".split()
NEEDED = "file line token label proposal accept".split()
WHOLE = r"\d{1,18}"
DECIMAL = r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?"  # some countries write a comma

__all__ = ["ReviewRow", "read_rows", "rows_of_audit", "write_rows"]


def write_rows(rows: Audit | Iterable[ReviewRow], path: str | os.PathLike[str]) -> Path:
    """Write the findings of an audit as .csv, .tsv or .jsonl, whichever the name ends in.

    CSV is as spreadsheets want it, with a byte order mark. In CSV and TSV, a cell that might be
    taken for a formula begins with an apostrophe, which `read_rows` takes away.
    """
    ending = _ending(path)
    rows = rows_of_audit(rows) if isinstance(rows, Audit) else rows
    records = [{name: getattr(row, name) for name in COLUMNS} for row in rows]
    if ending == ".jsonl":
        return write_file(path, "".join(f"{dumps(record)}\n" for record in records))
    table = [COLUMNS, *([_text(cell, "") for cell in record.values()] for record in records)]
    return write_file(path, as_csv(table) if ending == ".csv" else as_tsv(table))


def read_rows(path: str | os.PathLike[str]) -> list[ReviewRow]:
    """Read rows that `write_rows` wrote, also if a spreadsheet has saved them again.

    Columns may be in any order, and others may be added. Needed are file, line, token, label,
    proposal and accept.
    """
    ending, name = _ending(path), os.fspath(path)
    data = read_bytes(path, error=RowsError)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RowsError(
            f"byte 0x{data[error.start]:02x} is not valid UTF-8",
            where=f"{name}, line {data.count(10, 0, error.start) + 1}",
            remedy="save the table again, as UTF-8",
        ) from None
    if ending == ".jsonl":
        found = _objects(text, name)
    else:
        found = read_cells(text, name, COLUMNS, NEEDED, escaped=ending == ".tsv")
    return [_row(cells, f"{name}, line {number}") for number, cells in found]


def _ending(path: str | os.PathLike[str]) -> str:
    ending = Path(path).suffix.lower()
    if ending not in (".csv", ".tsv", ".jsonl"):
        raise SettingError(
            f"rows are not kept in {ending} files" if ending else "the name has no ending",
            where=os.fspath(path),
            remedy="choose a name that ends in .csv, .tsv or .jsonl",
        )
    return ending


def _objects(text: str, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    remedy = f"give one object per line, with {', '.join(NEEDED)}"
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{name}, line {number}"
            record = parse_document(line, dict[str, Any], where, RowsError, remedy)
            for key in NEEDED:
                if key not in record:
                    raise RowsError(f"no key {key!r}", where=where, remedy=remedy)
            yield number, {key: _text(record.get(key), where) for key in COLUMNS}


def _text(value: object, where: str) -> str:
    """What a cell of a table holds."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(float(value) if isinstance(value, float) else value)  # numpy has its own repr
    raise RowsError(f"{value!r} is neither text nor a number", where=where, remedy="give text")


def _row(cells: dict[str, str], where: str) -> ReviewRow:
    if not cells["file"]:
        raise RowsError("no file", where=where, remedy="give the file that the line is of")
    line = _number(cells["line"], WHOLE, "line is", where, "a whole number")
    position = _number(cells["position"], f"({WHOLE})?", "position is", where, "a whole number")
    score = _number(cells["score"], f"({DECIMAL})?", "score is", where, "a number or nothing")
    found = ReviewRow(
        file=cells["file"],
        line=int(line),
        position=int(position) if position else None,
        sentence=cells["sentence"],
        token=cells["token"],
        label=cells["label"],
        proposal=cells["proposal"],
        kind=cells["kind"],
        score=float(score.replace(",", ".")) if score else None,
        evidence=cells["evidence"],
        accept=cells["accept"],
        origin=where,
    )
    if math.isinf(found.score or 0):
        raise RowsError(f"score is {score!r}", where=where, remedy="give a smaller number")
    found.accepted  # noqa: B018 - refuses a mark that is neither yes nor no
    return found


def _number(cell: str, form: str, what: str, where: str, wanted: str) -> str:
    if not re.fullmatch(form, cell.strip(), re.ASCII):
        raise RowsError(f"{what} {cell!r}", where=where, remedy=f"give {wanted}")
    return cell.strip()
