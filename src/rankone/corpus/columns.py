"""Readers for files with one token per line: CoNLL columns, TSV, CoNLL-U."""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass, field, replace

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
from rankone.corpus.rows import DOCSTART, Choice, Columns, Rows, is_number
from rankone.errors import CorpusError
from rankone.plural import plural

CONLLU_COLUMNS = "id form lemma upos xpos feats head deprel deps misc".split(" ")
CONLLU_SKIPPED = re.compile(r"\d+-\d+|\d+\.\d+")  # multiword tokens and empty nodes


@dataclass(slots=True)
class ColumnReader:
    """Reads the rows of one file, block after block.

    Rows have ``width`` cells, of which ``token`` and ``label`` (from 0) are wanted; before the
    first row these are 0 and -1 unless they are known. ``fresh`` and ``last`` are where the last
    block ended: whether a sentence begins next, and the id of the last word of CoNLL-U.
    """

    name: str
    choice: Choice
    separator: str = "\t"
    width: int = 0
    token: int = -1
    label: int = -1
    labelled: bool | None = None
    conllu: bool = False
    skip: int = 0  # the number of the header's line: it and what is before it are no rows
    names: list[str] = field(default_factory=list)
    fresh: bool = True
    last: int = 0

    @property
    def known(self) -> bool:
        """Whether it is known where tokens and labels are."""
        return self.token >= 0

    @property
    def columns(self) -> Columns:
        columns = Columns(self.token + 1, self.label + 1, self.width)
        return by_name(columns, self.names) if self.names else columns

    def read(self, lines: list[str], first: int, rows: Rows) -> None:
        """Add the rows of these lines, of which the first has this number."""
        if first <= self.skip:
            lines, first = lines[self.skip + 1 - first :], self.skip + 1
        if self.separator == "\t":
            lines = _trimmed(lines)
        else:
            lines = [line.replace("\t", " ") for line in lines]
        (self._read_conllu if self.conllu else self._read)(lines, first, rows)

    def anew(self) -> ColumnReader:
        """A reader that knows the layout, for lines from the start of a sentence on."""
        return replace(self, skip=0, fresh=True, last=0)

    def _settle(self, cells: list[str], where: str) -> None:
        """The first row says how many columns there are, and so which are wanted."""
        choice, width = self.choice, len(cells)
        token = place(1 if choice.token is None else choice.token, width, where, "token")
        labelled = choice.labelled
        if labelled is None:
            labelled = width > 1 and has_column(choice.label, width)
        label = label_place(choice.label, width, where) if labelled else token
        if labelled:
            apart(token, label, where)
        self.width, self.token, self.label, self.labelled = width, token, label, labelled

    def _read(self, lines: list[str], first: int, rows: Rows) -> None:
        words, names = rows.tokens.index, rows.labels.index
        tokens, labels, numbers = rows.tokens.ids.append, rows.labels.ids.append, rows.lines.append
        separator, width, t, k = self.separator, self.width, self.token, self.label
        labelled, fresh = self.labelled, self.fresh
        for number, line in enumerate(lines, start=first):
            cells = line.split(separator)
            if len(cells) != width or "" in cells or cells[0] == DOCSTART:  # rare
                if separator == " ":
                    cells = [cell for cell in cells if cell]
                if blank(line) or cells[0].partition(" ")[0] == DOCSTART:
                    fresh = True
                    continue
            if len(cells) != width and width:
                raise CorpusError(
                    f"{plural(len(cells), 'column')} where the rows before have {width}, separated "
                    "by " + ("TABs" if separator == "\t" else "blanks"),
                    where=f"{self.name}, line {number}",
                    remedy="give every row the same columns, and end sentences with a blank line"
                    + ("" if self.choice.labelled else "; plain text needs the format text"),
                )
            if t < 0:
                self._settle(cells, f"{self.name}, line {number}")
                width, t, k, labelled = self.width, self.token, self.label, self.labelled
            token, label = cells[t], cells[k]
            if token == DOCSTART:
                fresh = True
                continue
            if not token or not label:
                _check_cells(token, label, f"{self.name}, line {number}")
            if fresh:
                rows.starts.append(len(rows.tokens.ids))
                fresh = False
            tokens(words[token])
            if labelled:
                labels(names[label])
            numbers(number)
        self.fresh = fresh

    def _read_conllu(self, lines: list[str], first: int, rows: Rows) -> None:
        t, k = self.token, self.label
        for number, line in enumerate(lines, start=first):
            if blank(line):
                self.last, self.fresh = 0, True
                continue
            if line.startswith("#"):
                continue
            cells = line.split("\t")
            where = f"{self.name}, line {number}"
            if len(cells) != 10:
                raise CorpusError(
                    f"{plural(len(cells), 'column')} where CoNLL-U has 10, separated by TABs",
                    where=where,
                    remedy="fix the row, or read other layouts with --format conll",
                )
            if not (cells[0].isdecimal() and len(cells[0]) < 10 and int(cells[0]) > self.last):
                if CONLLU_SKIPPED.fullmatch(cells[0]):
                    continue
                known = self.last and cells[0].isdecimal()
                id = reprlib.repr(cells[0])
                raise CorpusError(
                    f"the id {id} after {self.last}" if known else f"{id} is not a CoNLL-U id",
                    where=where,
                    remedy="number the words of a sentence 1, 2, 3, and end it with a blank line",
                )
            self.last = int(cells[0])
            _check_cells(cells[t], cells[k], where)
            if self.fresh:
                rows.starts.append(len(rows.tokens.ids))
                self.fresh = False
            rows.tokens.ids.append(rows.tokens.index[cells[t]])
            rows.lines.append(number)
            if self.labelled:
                rows.labels.ids.append(rows.labels.index[cells[k]])


def conll(head: list[str], name: str, choice: Choice, first: int = 1) -> ColumnReader:  # noqa: ARG001
    """Columns separated by white space or, if the first row has a TAB, by single TABs."""
    return ColumnReader(name, choice, "\t" if "\t" in first_row(head).strip() else " ")


def tsv(head: list[str], name: str, choice: Choice, first: int = 1) -> ColumnReader:
    """Columns separated by single TABs (tokens may contain blanks), with or without a header."""
    at = next((i for i, line in enumerate(head) if not blank(line)), None)
    if at is None:
        return ColumnReader(name, choice)
    header = [cell.strip().lower() for cell in _trimmed([head[at]])[0].split("\t")]
    by_names = any(isinstance(c, str) and not is_number(c) for c in (choice.token, choice.label))
    if not by_names and not is_header(header):
        return ColumnReader(name, choice)
    defaults = Choice(
        token=next((h for h in header if h in TOKEN_HEADERS), 1),
        label=next((h for h in reversed(header) if h in LABEL_HEADERS), -1),
    )
    choice = replace(
        choice,
        token=defaults.token if choice.token is None else choice.token,
        label=defaults.label if choice.label is None else choice.label,
    )
    choice = by_number(choice, header, f"{name}, line {first + at}")
    return ColumnReader(name, choice, width=len(header), skip=first + at, names=header)


def conllu(head: list[str], name: str, choice: Choice, first: int = 1) -> ColumnReader:  # noqa: ARG001
    """Ten columns; comments, multiword ranges (3-4) and empty nodes (5.1) are skipped."""
    choice = by_number(choice, CONLLU_COLUMNS, name)
    labelled = choice.labelled is not False
    t = place(2 if choice.token is None else choice.token, 10, name, "token")
    k = place(4 if choice.label is None else choice.label, 10, name, "label") if labelled else t
    if labelled:
        apart(t, k, name)
    return ColumnReader(name, choice, "\t", 10, t, k, labelled, conllu=True, names=CONLLU_COLUMNS)


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
