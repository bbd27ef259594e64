"""Readers for files with one token per line: CoNLL columns, TSV, CoNLL-U."""

from __future__ import annotations

from collections.abc import Callable

from rankone.corpus.corpus import Rows
from rankone.errors import CorpusError

DOCSTART = "-DOCSTART-"
CONLLU_COLUMNS = {
    name: i
    for i, name in enumerate(
        ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
    )
}
TOKEN_HEADERS = {"token", "tokens", "word", "words", "form"}
LABEL_HEADERS = {"label", "labels", "tag", "tags", "ner", "ner_tags", "pos", "upos"}

Split = Callable[[str], list[str]]


def read_conll(
    lines: list[str], name: str, token: int | str | None, label: int | str | None, labelled: bool
) -> Rows:
    """Columns separated by blanks or, if the first row has one, by single TABs."""
    first = next((line for line in lines if line.strip()), "")
    return _read(lines, name, token, label, labelled, _on_tabs if "\t" in first else _on_blanks)


def read_tsv(
    lines: list[str], name: str, token: int | str | None, label: int | str | None, labelled: bool
) -> Rows:
    """Columns separated by single TABs (tokens may hold blanks), with or without a header row."""
    at = next((i for i, line in enumerate(lines) if line.strip()), None)
    if at is None:
        return Rows()
    header = [cell.strip().lower() for cell in lines[at].split("\t")]
    named = isinstance(token, str) or isinstance(label, str)
    if named or (header[0] in TOKEN_HEADERS and header[-1] in LABEL_HEADERS):
        token = _named(token, header, f"{name}, line {at + 1}")
        label = _named(label, header, f"{name}, line {at + 1}")
        lines = [*[""] * (at + 1), *lines[at + 1 :]]
    return _read(lines, name, token, label, labelled, _on_tabs)


def read_conllu(
    lines: list[str], name: str, token: int | str | None, label: int | str | None, labelled: bool
) -> Rows:
    """Ten columns; comments, multiword ranges (3-4) and empty nodes (5.1) are passed over."""
    words = list(CONLLU_COLUMNS)
    token_column = _named(token, words, name) if token is not None else 2
    label_column = _named(label, words, name) if label is not None else 4
    rows = Rows()
    t = _place(token_column, 10, name, "token")
    k = _place(label_column, 10, name, "label") if labelled else t
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


def _read(
    lines: list[str],
    name: str,
    token: int | str | None,
    label: int | str | None,
    labelled: bool,
    split: Split,
) -> Rows:
    rows = Rows()
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
            t = _place(token or 1, width, where, "token")
            k = _label_place(label, width, where) if labelled else t
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


def _named(column: int | str | None, names: list[str], where: str) -> int | None:
    """The number of a column given by name; numbers pass through."""
    if column is None or isinstance(column, int) or column.lstrip("-").isdigit():
        return None if column is None else int(column)
    if column.lower() not in names:
        raise CorpusError(
            f"no column named {column!r}", where=where, remedy=f"choose one of {', '.join(names)}"
        )
    return names.index(column.lower()) + 1


def _on_tabs(line: str) -> list[str]:
    return line.split("\t")


def _on_blanks(line: str) -> list[str]:
    cells = line.split(" ")
    return [cell for cell in cells if cell] if "" in cells else cells
