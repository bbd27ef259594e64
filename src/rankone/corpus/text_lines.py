"""Documents in lines: label, TAB, text; with a header, or columns that are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rankone.corpus.fields import listing
from rankone.corpus.rows import Choice, Column, Columns, is_number
from rankone.corpus.text_records import Document
from rankone.corpus.tokenizers import Tokenizer
from rankone.errors import CorpusError

LINES = "give label<TAB>text in each line, or JSON lines with text and label"
USUAL = {"label", "text"}  # both of them in the first line: a header


@dataclass(frozen=True, slots=True)
class _Layout:
    """The places of text and label in a line (None: no label is read). If they were not ``chosen``,
    a line must have just these two; but where no label is ``needed``, it may be a text alone."""

    text: int = 1
    label: int | None = 0
    chosen: bool = False
    needed: bool = True

    def cut(self, line: str, where: str) -> tuple[str, str | None, Columns]:
        """The text of a line, its label, and where they were found."""
        cells = line.split("\t")
        if not self.needed and len(cells) == 1:
            return line, None, Columns(1, None, 1)
        if not self.chosen and len(cells) > 2:
            raise CorpusError(
                f"{len(cells)} columns, but label and text are two",
                where=where,
                remedy="choose by label_column and token_column (--label-column 1 --token-column 2)"
                ", or give JSON lines, whose texts may have TABs",
            )
        places = [self.text] if self.label is None else [self.text, self.label]
        if any(not -len(cells) <= place < len(cells) for place in places):
            raise CorpusError("no label and text, separated by a TAB", where=where, remedy=LINES)
        text, *label = (cells[place] for place in places)
        if not text or label == [""]:
            raise CorpusError(
                "an empty label" if text else "an empty document",
                where=where,
                remedy="fill it in, or take the line out",
            )
        numbers = [place + 1 if place >= 0 else place for place in places]
        columns = Columns(numbers[0], numbers[1] if label else None, len(cells))
        return text, label[0] if label else None, columns


def documents_of_lines(
    text: str, name: str, tokenizer: Tokenizer, choice: Choice
) -> Iterator[Document]:
    """One document for every line that is not blank."""
    layout: _Layout | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        line, where = line.removesuffix("\r"), f"{name}, line {number}"
        if not line.strip(" "):
            continue
        if layout is None:
            layout, header = _layout(line.split("\t"), choice, where)
            if header:
                continue
        found, label, columns = layout.cut(line, where)
        if label is not None:
            label = _decoded(label, where, tokenizer)
        yield Document(found, where, number, name, label, columns)


def _layout(cells: list[str], choice: Choice, where: str) -> tuple[_Layout, bool]:
    """Where text and label are, by the first line; and whether that is a header."""
    names = [cell.strip() for cell in cells]
    labelled, needed = choice.labelled is not False, choice.labelled is True
    named = [c for c in (choice.token, choice.label) if c is not None and not is_number(c)]
    header = bool(named) or set(map(str.lower, names)) >= USUAL
    if not header and choice.token is None and choice.label is None:
        return _Layout(1, 0 if labelled else None, chosen=False, needed=needed), False
    if not needed and len(cells) == 1:
        return _Layout(needed=False), names[0] == choice.token
    names = names if named else [*map(str.lower, names)]
    label_name = "label" if choice.label is None else choice.label
    there = labelled and (needed or not header or is_number(label_name) or label_name in names)
    text = _place(choice.token, "text" if header else 2, names, where, "token")
    label = _place(choice.label, "label" if header else 1, names, where, "label") if there else None
    if text == label:
        raise CorpusError(
            "one column is taken as text and as label",
            where=where,
            remedy="choose two by label_column and token_column",
        )
    return _Layout(text, label, chosen=True, needed=needed), header


def _place(chosen: Column | None, usual: Column, names: list[str], where: str, what: str) -> int:
    """The place of a column, from 0 or from the end."""
    column = usual if chosen is None else chosen
    if is_number(column) and int(column) != 0:
        return int(column) - 1 if int(column) > 0 else int(column)
    if column not in names:
        raise CorpusError(
            f"no column {column!r}",
            where=where,
            remedy=f"it has {listing(names)}: choose one by {what}_column",
        )
    return names.index(str(column))


def _decoded(label: str, where: str, tokenizer: Tokenizer) -> str:
    """A label is text, whatever the tokenizer makes of the bytes of a text."""
    try:
        return tokenizer.encode(label).decode()
    except UnicodeDecodeError:
        raise CorpusError(
            "a label that is not valid UTF-8", where=where, remedy="convert the labels to UTF-8"
        ) from None
