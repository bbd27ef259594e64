"""Plain text, one sentence per line, and how to distinguish it from columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field
from itertools import islice

from rankone.corpus.choice import has_column, place
from rankone.corpus.columns import blank, first_row
from rankone.corpus.rows import DOCSTART, Choice, Column, Columns, Rows, is_number
from rankone.errors import CorpusError

SEEN = 1000  # rows that are examined
MANY = 10  # lines of text hardly ever all have the same length


@dataclass(frozen=True)
class Expected:
    """What a model knows about the corpus it was made from: its labels, their column (None for the
    last), and the number of columns (None if it had none)."""

    labels: Set[str] = field(default_factory=frozenset)
    label: Column | None = None
    of: int | None = None

    def known(self, cells: list[str]) -> bool:
        """Whether the row has a label of the model where its corpus has labels."""
        column = -1 if self.label is None or not is_number(self.label) else self.label
        if len(cells) < 2 or not has_column(column, len(cells)):
            return False
        return cells[place(column, len(cells), "", "label")] in self.labels


class TextReader:
    """Every line is one sentence, split at white space."""

    columns = Columns()

    def read(self, lines: list[str], first: int, rows: Rows) -> None:
        """Add the rows of these lines, of which the first has this number."""
        for number, line in enumerate(lines, start=first):
            tokens = line.split()
            if tokens and tokens != [DOCSTART]:
                rows.starts.append(len(rows.tokens.ids))
                rows.tokens.extend(tokens)
                rows.lines.extend([number] * len(tokens))

    def anew(self) -> TextReader:
        """A reader for lines from the start of a sentence on."""
        return self


def text(head: list[str], name: str, choice: Choice, first: int = 1) -> TextReader:  # noqa: ARG001
    """Plain text has neither labels nor columns."""
    if choice.labelled:
        raise CorpusError(
            "plain text has no labels",
            where=name,
            remedy="give a labelled file, or labelled=False to read the text for a prediction",
        )
    if choice.token is not None or choice.label is not None:
        raise CorpusError(
            "plain text has no columns to choose from",
            where=name,
            remedy="leave token_column and label_column out, or choose another format",
        )
    return TextReader()


def is_text(lines: list[str], name: str, expected: Expected) -> bool:
    """Whether a file that may have columns is plain text; raises an error if it could be either.

    Rows with columns all have the same width, and labels of the model; lines of text have neither.
    One word per line is a column of tokens. The guide has the full rule.
    """
    cells = (line.replace("\t", " ").split(" ") for line in lines if not blank(line))
    rows = list(islice((row for row in map(_filled, cells) if row[0] != DOCSTART), SEEN))
    widths = Counter(map(len, rows))
    if "\t" in first_row(lines).strip() or set(widths) <= {1}:
        return False
    width, equal = widths.most_common(1)[0]
    if len(widths) > 1:  # the reader of columns would refuse it and name the row
        known = sum(len(row) == width and expected.known(row) for row in rows)
        return 2 * (equal if equal >= MANY else known) <= len(rows)
    known = sum(map(expected.known, rows))
    if len(rows) == 1:
        return not known or expected.of not in (None, width)
    if known:
        return False
    if (len(rows) < MANY) != (width == expected.of):
        return width != expected.of
    raise CorpusError(
        f"text or columns? Every line has {width} words, and no label of the model",
        where=name,
        remedy="say which: --format text or --format conll",
    )


def _filled(cells: list[str]) -> list[str]:
    """The cells of a row that are not empty, as the reader of columns sees them."""
    return [cell for cell in cells if cell]
