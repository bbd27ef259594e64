"""Readers for files with one token per line: CoNLL columns, TSV, CoNLL-U."""

from __future__ import annotations

import re
import reprlib
from dataclasses import replace

from rankone.corpus.choice import (
    LABEL_HEADERS,
    TOKEN_HEADERS,
    apart,
    by_name,
    by_number,
    has_column,
    is_header,
    label_place,
    place,
)
from rankone.corpus.rows import DOCSTART, Choice, Columns, Rows, Words, is_number
from rankone.errors import CorpusError
from rankone.plural import plural

CONLLU_COLUMNS = "id form lemma upos xpos feats head deprel deps misc".split(" ")
CONLLU_SKIPPED = re.compile(r"\d+-\d+|\d+\.\d+")  # multiword tokens and empty nodes


def read_conll(lines: list[str], name: str, choice: Choice) -> Rows:
    """Columns separated by white space or, if the first row has a TAB, by single TABs."""
    if "\t" in first_row(lines).strip():
        return _read(_trimmed(lines), name, choice, "\t")
    return _read([line.replace("\t", " ") for line in lines], name, choice, " ")


def read_tsv(lines: list[str], name: str, choice: Choice) -> Rows:
    """Columns separated by single TABs (tokens may contain blanks), with or without a header."""
    lines = _trimmed(lines)
    at = next((i for i, line in enumerate(lines) if not blank(line)), None)
    if at is None:
        return Rows()
    header = [cell.strip().lower() for cell in lines[at].split("\t")]
    by_names = any(isinstance(c, str) and not is_number(c) for c in (choice.token, choice.label))
    if not by_names and not is_header(header):
        return _read(lines, name, choice, "\t")
    defaults = Choice(
        token=next((h for h in header if h in TOKEN_HEADERS), 1),
        label=next((h for h in reversed(header) if h in LABEL_HEADERS), -1),
    )
    choice = replace(
        choice,
        token=defaults.token if choice.token is None else choice.token,
        label=defaults.label if choice.label is None else choice.label,
    )
    choice = by_number(choice, header, f"{name}, line {at + 1}")
    rows = _read([*[""] * (at + 1), *lines[at + 1 :]], name, choice, "\t", len(header))
    return replace(rows, columns=by_name(rows.columns, header))


def read_conllu(lines: list[str], name: str, choice: Choice) -> Rows:
    """Ten columns; comments, multiword ranges (3-4) and empty nodes (5.1) are skipped."""
    choice = by_number(choice, CONLLU_COLUMNS, name)
    labelled = choice.labelled is not False
    t = place(2 if choice.token is None else choice.token, 10, name, "token")
    k = place(4 if choice.label is None else choice.label, 10, name, "label") if labelled else t
    if labelled:
        apart(t, k, name)
    rows = Rows(columns=by_name(Columns(t + 1, k + 1, 10), CONLLU_COLUMNS))
    last, fresh = 0, True
    for number, line in enumerate(_trimmed(lines), start=1):
        if blank(line):
            last, fresh = 0, True
            continue
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 10:
            raise CorpusError(
                f"{plural(len(cells), 'column')} where CoNLL-U has 10, separated by TABs",
                where=f"{name}, line {number}",
                remedy="fix the row, or read other layouts with --format conll",
            )
        if not (cells[0].isdecimal() and len(cells[0]) < 10 and int(cells[0]) > last):
            if CONLLU_SKIPPED.fullmatch(cells[0]):
                continue
            known = last and cells[0].isdecimal()
            id = reprlib.repr(cells[0])
            raise CorpusError(
                f"the id {id} after {last}" if known else f"{id} is not a CoNLL-U id",
                where=f"{name}, line {number}",
                remedy="number the words of a sentence 1, 2, 3, and end it with a blank line",
            )
        last = int(cells[0])
        _check_cells(cells[t], cells[k], f"{name}, line {number}")
        if fresh:
            rows.starts.append(len(rows.tokens.ids))
            fresh = False
        rows.tokens.ids.append(rows.tokens.index[cells[t]])
        rows.lines.append(number)
        if labelled:
            rows.labels.ids.append(rows.labels.index[cells[k]])
    return rows


def _read(lines: list[str], name: str, choice: Choice, separator: str, width: int = 0) -> Rows:
    """`width` is the number of columns, or 0 if the first row decides."""
    rows, labelled = Rows(), choice.labelled
    words, names = rows.tokens.index, rows.labels.index
    tokens, labels, numbers = rows.tokens.ids.append, rows.labels.ids.append, rows.lines.append
    t = k = -1
    fresh = True
    for number, line in enumerate(lines, start=1):
        cells = line.split(separator)
        if len(cells) != width or "" in cells or cells[0] == DOCSTART:  # rare
            if separator == " ":
                cells = [cell for cell in cells if cell]
            if blank(line) or cells[0].partition(" ")[0] == DOCSTART:
                fresh = True
                continue
        if len(cells) != width and width:
            raise CorpusError(
                f"{plural(len(cells), 'column')} where the rows before have {width}, separated by "
                + ("TABs" if separator == "\t" else "blanks"),
                where=f"{name}, line {number}",
                remedy="give every row the same columns, and end sentences with a blank line"
                + ("" if choice.labelled else "; plain text needs the format text"),
            )
        if t < 0:
            width, where = len(cells), f"{name}, line {number}"
            t = place(1 if choice.token is None else choice.token, width, where, "token")
            if labelled is None:
                labelled = width > 1 and has_column(choice.label, width)
            k = label_place(choice.label, width, where) if labelled else t
            if labelled:
                apart(t, k, where)
        token, label = cells[t], cells[k]
        if token == DOCSTART:
            fresh = True
            continue
        if fresh:
            rows.starts.append(len(rows.tokens.ids))
            fresh = False
        if not token or not label:
            _check_cells(token, label, f"{name}, line {number}")
        tokens(words[token])
        labels(names[label])
        numbers(number)
    rows = replace(rows, columns=Columns(t + 1, k + 1, width))
    return rows if labelled else replace(rows, labels=Words())


def first_row(lines: list[str]) -> str:
    """The first line that shows how columns are separated; document marks may have fewer."""
    rows = (line for line in lines if not blank(line))
    return next((row for row in rows if not row.lstrip(" ").startswith(DOCSTART)), "")


def _trimmed(lines: list[str]) -> list[str]:
    """Rows without blanks around their cells: "O " would be a different label from "O"."""
    return [
        "\t".join(cell.strip(" ") for cell in line.split("\t")) if " " in line else line
        for line in lines
    ]


def blank(line: str) -> bool:
    """Whether a line separates sentences. A lone no-break space is a token, not a blank line."""
    return not line.strip(" \t")


def _check_cells(token: str, label: str, where: str) -> None:
    if not token or not label:
        raise CorpusError(
            "an empty label" if token else "an empty token",
            where=where,
            remedy="fill the cell in, take the row out, or choose another column",
        )
