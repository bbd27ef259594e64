"""Readers for files with one token per line: CoNLL columns, TSV, CoNLL-U."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rankone.corpus.corpus import Choice, Rows
from rankone.errors import CorpusError

DOCSTART = "-DOCSTART-"
CONLLU_COLUMNS = "id form lemma upos xpos feats head deprel deps misc".split(" ")
TOKEN_HEADERS = {"token", "tokens", "word", "words", "form"}
LABEL_HEADERS = {"label", "labels", "tag", "tags", "ner", "ner_tags", "pos", "upos"}

Split = Callable[[str], list[str]]


def read_conll(lines: list[str], name: str, choice: Choice) -> Rows:
    """Columns separated by blanks or, if the first row has one, by single TABs."""
    first = next((line for line in lines if line.strip()), "")
    return _read(lines, name, choice, _on_tabs if "\t" in first else _on_blanks)


def read_tsv(lines: list[str], name: str, choice: Choice) -> Rows:
    """Columns separated by single TABs (tokens may hold blanks), with or without a header row."""
    at = next((i for i, line in enumerate(lines) if line.strip()), None)
    if at is None:
        return Rows()
    header = [cell.strip().lower() for cell in lines[at].split("\t")]
    named = isinstance(choice.token, str) or isinstance(choice.label, str)
    if named or (header[0] in TOKEN_HEADERS and header[-1] in LABEL_HEADERS):
        choice = _by_number(choice, header, f"{name}, line {at + 1}")
        lines = [*[""] * (at + 1), *lines[at + 1 :]]
    return _read(lines, name, choice, _on_tabs)


def read_conllu(lines: list[str], name: str, choice: Choice) -> Rows:
    """Ten columns; comments, multiword ranges (3-4) and empty nodes (5.1) are passed over."""
    choice = _by_number(choice, CONLLU_COLUMNS, name)
    labelled = choice.labelled is not False
    rows = Rows()
    t = _place(choice.token or 2, 10, name, "token")
    k = _place(choice.label or 4, 10, name, "label") if labelled else t
    fresh = True
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            fresh = True
            continue
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 10:
            raise CorpusError(
                f"{len(cells)} columns where CoNLL-U has 10, separated by TABs",
                where=f"{name}, line {number}",
                remedy="mend the row, or read other layouts with --format conll",
            )
        if "-" in cells[0] or "." in cells[0]:
            continue
        if fresh:
            rows.starts.append(len(rows.tokens))
            fresh = False
        rows.tokens.append(cells[t])
        rows.lines.append(number)
        if labelled:
            rows.labels.append(cells[k])
    return rows


def _read(lines: list[str], name: str, choice: Choice, split: Split) -> Rows:
    rows, labelled = Rows(), choice.labelled
    tokens, labels, numbers = rows.tokens.append, rows.labels.append, rows.lines.append
    width = t = k = -1
    fresh = True
    for number, line in enumerate(lines, start=1):
        if not line or line.isspace():
            fresh = True
            continue
        cells = split(line)
        if cells[0] == DOCSTART:
            fresh = True
            continue
        if len(cells) != width:
            if width >= 0:
                raise CorpusError(
                    f"{len(cells)} columns where the rows before have {width}",
                    where=f"{name}, line {number}",
                    remedy="give every row the same columns, and part sentences by blank lines",
                )
            width = len(cells)
            where = f"{name}, line {number}"
            t = _place(choice.token or 1, width, where, "token")
            labelled = width > 1 if labelled is None else labelled
            k = _label_place(choice.label, width, where) if labelled else t
        if fresh:
            rows.starts.append(len(rows.tokens))
            fresh = False
        if not cells[t] or not cells[k]:
            raise CorpusError(
                "an empty token" if not cells[t] else "an empty label",
                where=f"{name}, line {number}",
                remedy="fill the cell in, or take the row out",
            )
        tokens(cells[t])
        numbers(number)
        if labelled:
            labels(cells[k])
    return rows


def _label_place(label: int | str | None, width: int, where: str) -> int:
    if label is None and width < 2:
        raise CorpusError(
            "only one column, so there are no labels",
            where=where,
            remedy="give token and label in each row, separated by a blank or a TAB",
        )
    return _place(-1 if label is None else label, width, where, "label")


def _place(column: int | str, width: int, where: str, what: str) -> int:
    """From "counted from 1, or from the end" to an index."""
    if isinstance(column, str):
        try:
            column = int(column)
        except ValueError:
            raise CorpusError(
                f"no {what} column named {column!r}: this layout has no names",
                where=where,
                remedy=f"give its number, 1 to {width}",
            ) from None
    if column == 0 or not -width <= column <= width:
        raise CorpusError(
            f"no column {column} for the {what}: the row has {width}",
            where=where,
            remedy=f"choose 1 to {width}, or -1 for the last",
        )
    return column - 1 if column > 0 else width + column


def _by_number(choice: Choice, names: list[str], where: str) -> Choice:
    """The choice with names of columns turned into their numbers."""

    def number(column: int | str | None) -> int | str | None:
        if not isinstance(column, str) or column.lstrip("-").isdigit():
            return column
        if column.lower() not in names:
            raise CorpusError(
                f"no column named {column!r}",
                where=where,
                remedy=f"choose one of {', '.join(names)}",
            )
        return names.index(column.lower()) + 1

    return replace(choice, token=number(choice.token), label=number(choice.label))


def _on_tabs(line: str) -> list[str]:
    return line.split("\t")


def _on_blanks(line: str) -> list[str]:
    cells = line.split(" ")
    return [cell for cell in cells if cell] if "" in cells else cells
