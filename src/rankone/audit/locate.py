"""Where the labels of a corpus stand in the text of its file, to the character."""

from __future__ import annotations

import json
import re
from functools import lru_cache

from rankone.corpus.blocks import MARK
from rankone.corpus.columns import CONLLU_COLUMNS, blank, first_row
from rankone.corpus.corpus import Corpus

Span = tuple[int, int]  # first character, and the one behind the last
NUMBER = re.compile("-?(0|[1-9][0-9]{0,17})")
CELL = re.compile("[^ \t]+")
WHITE = re.compile(r"[ \t\r\n]*")  # of JSON
# Characters that a label cannot have, by what separates columns; in JSON it may have any.
BAD = {" ": "[ \t\r\n]", "\t": "\\A |[\t\r\n]| \\Z", "": "(?!)"}


class LabelPlaces:
    """Finds the label of any token of a corpus in the text that the corpus was read from.

    ``separator`` is what stands between columns: TAB, blank for any white space, "" for JSON lines.
    """

    def __init__(self, text: str, corpus: Corpus) -> None:
        self.text, self.corpus = text, corpus
        self.lines = line_spans(text)
        lines = [text[first:behind] for first, behind in self.lines]
        self.separator = "" if corpus.format == "jsonl" else "\t"
        if corpus.format == "conll" and "\t" not in first_row(lines).strip():
            self.separator = " "
        self.column = corpus.columns.label
        if isinstance(self.column, str) and self.separator:
            row = next((line for line in lines if not blank(line)), "")
            header = [cell.strip().lower() for cell in row.split("\t")]
            names = CONLLU_COLUMNS if corpus.format == "conllu" else header
            self.column = names.index(self.column) + 1
        self._strings = lru_cache(1)(self._strings_of)  # labels of one line are asked for in a row

    def span(self, token: int) -> Span:
        """Where the label of the token stands."""
        line = int(self.corpus.lines[token])
        if not isinstance(self.column, int):
            return self._strings(line)[int(self.corpus.positions[token])]
        first, behind = self.lines[line - 1]
        a, b = _cells(self.text[first:behind], self.separator)[self.column - 1]
        return first + a, first + b

    def read(self, piece: str) -> str:
        """The label that is spelled so."""
        return piece if self.separator else str(json.loads(piece))

    def spell(self, label: str, before: str) -> str:
        """A label as the file spells it, in place of what stands there."""
        if self.separator or before[0] != '"':
            return label
        return json.dumps(label, ensure_ascii=self.text.isascii())

    def problem(self, label: str, token: int) -> str | None:
        """Why the file cannot hold this label, if it cannot."""
        if re.search("[\0\ud800-\udfff]", label):
            return "has a character that no text file holds"
        if re.search(BAD[self.separator], label):
            return "has white space, which separates columns"
        if not self.separator and self.text[self.span(token)[0]] != '"':
            return None if NUMBER.fullmatch(label) else "is not a number, as the label is there"
        return None if label else "is empty"

    def _strings_of(self, line: int) -> list[Span]:
        first, behind = self.lines[line - 1]
        found = array_spans(self.text[first:behind], str(self.column))
        return [(first + a, first + b) for a, b in found]


def line_spans(text: str) -> list[Span]:
    """The lines of a text as `read_lines` sees them, without line ends and byte order marks."""
    end = "\n" if "\n" in text else "\r"
    spans, first = [], 0
    pieces = text.split(end)
    for number, piece in enumerate(pieces, start=1):
        behind = first + len(piece)
        marks = re.match(f"{MARK}{{0,{2 if number == 1 else 1}}}", piece)
        ended = end == "\n" and number < len(pieces) and piece.endswith("\r")
        spans.append((first + len(marks[0] if marks else ""), behind - ended))
        first = behind + 1
    return spans


def array_spans(line: str, key: str) -> list[Span]:
    """Where the items of a list stand: the value of a key of the object in a line of JSON.

    >>> line = '{"tokens": ["a", "b"], "labels": ["X", "Y"]}'
    >>> [line[a:b] for a, b in array_spans(line, "labels")]
    ['"X"', '"Y"']
    """
    value = json.JSONDecoder(parse_int=str).raw_decode

    def skip(at: int) -> int:
        return WHITE.match(line, at).end()  # type: ignore[union-attr]

    found: list[Span] = []
    at = skip(skip(0) + 1)  # behind the brace
    while line[at] != "}":
        name, at = value(line, at)
        at = skip(skip(at) + 1)  # behind the colon
        if name == key:
            found, first = [], skip(at + 1)
            while line[first] != "]":
                _, behind = value(line, first)
                found.append((first, behind))
                first = skip(behind)
                first = skip(first + 1) if line[first] == "," else first
        _, at = value(line, at)
        at = skip(at)
        at = skip(at + 1) if line[at] == "," else at
    return found


def _cells(row: str, separator: str) -> list[Span]:
    """The columns of a row, without the blanks around them."""
    if separator == " ":
        return [match.span() for match in CELL.finditer(row)]
    spans, first = [], 0
    for cell in row.split("\t"):
        start = first + len(cell) - len(cell.lstrip(" "))
        spans.append((start, max(start, first + len(cell.rstrip(" ")))))
        first += len(cell) + 1
    return spans
