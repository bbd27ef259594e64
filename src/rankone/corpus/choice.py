"""Find a column by its number, by its name, or by convention."""

from __future__ import annotations

from dataclasses import replace

from rankone.corpus.rows import Choice, Column, Columns, is_number
from rankone.errors import CorpusError

TOKEN_HEADERS = {"token", "tokens", "word", "words", "form"}
LABEL_HEADERS = {"label", "labels", "tag", "tags", "ner", "ner_tags", "entity", "pos", "upos"}


def is_header(cells: list[str]) -> bool:
    """Whether a first row names the columns: it has a usual name for tokens and one for labels."""
    return not TOKEN_HEADERS.isdisjoint(cells) and not LABEL_HEADERS.isdisjoint(cells)


def has_column(column: Column | None, width: int) -> bool:
    """Whether a row of this width has the column."""
    return column is None or (is_number(column) and 0 < abs(int(column)) <= width)


def label_place(label: Column | None, width: int, where: str) -> int:
    if label is None and width < 2:
        raise CorpusError(
            "only one column, so there are no labels",
            where=where,
            remedy="give token and label in each row, separated by a blank or a TAB "
            "(with --format tsv by a TAB)",
        )
    return place(-1 if label is None else label, width, where, "label")


def apart(token: int, label: int, where: str) -> None:
    """Refuse one column for both: every ceiling would be 100 %."""
    if token == label:
        raise CorpusError(
            f"column {token + 1} is taken as token and as label",
            where=where,
            remedy="choose another --label-column or --token-column",
        )


def place(column: Column, width: int, where: str, what: str) -> int:
    """The index of a column that is counted from 1, or from the end if negative."""
    if not is_number(column):
        raise CorpusError(
            f"no {what} column named {column!r}: this layout has no names",
            where=where,
            remedy=f"give its number, 1 to {width}",
        )
    column = int(column)
    if column == 0 or not -width <= column <= width:
        raise CorpusError(
            f"no column {column} for the {what}: the row has {width}",
            where=where,
            remedy=f"choose 1 to {width}, or -1 for the last",
        )
    return column - 1 if column > 0 else width + column


def by_number(choice: Choice, names: list[str], where: str) -> Choice:
    """The choice with names of columns turned into their numbers."""

    def number(column: Column | None) -> Column | None:
        if not isinstance(column, str) or is_number(column):
            return column
        if names.count(column.lower()) != 1:
            how_many = "no column" if column.lower() not in names else "more than one column"
            raise CorpusError(
                f"{how_many} named {column!r}",
                where=where,
                remedy=f"choose one of {', '.join(names)}, or a number",
            )
        return names.index(column.lower()) + 1

    return replace(choice, token=number(choice.token), label=number(choice.label))


def by_name(columns: Columns, names: list[str]) -> Columns:
    """The columns with numbers turned into names, where a name is unique."""

    def name(column: Column | None) -> Column | None:
        if not isinstance(column, int):
            return column
        found = names[column - 1]
        unique = bool(found) and names.count(found) == 1 and not is_number(found)
        return found if unique else column

    return replace(columns, token=name(columns.token), label=name(columns.label))
