"""Accepted proposals written into the file of a corpus, in which nothing else changes."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankone.audit.fit import AGAIN, fit, label_of, own_rows
from rankone.audit.locate import LabelPlaces
from rankone.audit.rows import ReviewRow, read_rows
from rankone.choices import Format, Scheme
from rankone.corpus.blocks import MARK, lines_of
from rankone.corpus.builtin import is_builtin
from rankone.corpus.corpus import Corpus
from rankone.corpus.layouts import guess, rows_of
from rankone.corpus.read import read_corpus
from rankone.corpus.rows import Choice, Column
from rankone.corpus.schemes import as_iob1
from rankone.corpus.source import read_data
from rankone.errors import CorpusError, RowsError, SettingError
from rankone.files import write_file

OTHERS = "propose other labels"


@dataclass(frozen=True)
class Applied:
    """The file with the accepted proposals: ``data``, unpacked if the file was gzipped.

    ``applied`` counts the accepted rows that are in it, ``changed`` the labels that are others now.
    Of the accepted rows, ``elsewhere`` are of other files, and ``unlabelled`` propose no label:
    duplicates and leaks, which are for a person to remove.
    """

    source: str
    format: str
    applied: int
    changed: int
    elsewhere: int
    unlabelled: int
    data: bytes = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether the accepted rows are in the file. Those of other files may be missing, unless
        there are no others: then this is likely to be the wrong file."""
        return not self.unlabelled and (self.applied > 0 or not self.elsewhere)

    def to_json(self) -> dict[str, Any]:
        """The figures."""
        names = "source format applied changed elsewhere unlabelled".split()
        return {"ok": self.ok, **{name: getattr(self, name) for name in names}}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file, gzipped if its name ends in .gz."""
        packed = os.fspath(path).lower().endswith(".gz")
        return write_file(path, gzip.compress(self.data, mtime=0) if packed else self.data)


def apply(
    path: str | os.PathLike[str],
    rows: Iterable[ReviewRow] | str | os.PathLike[str],
    *,
    format: Format = "auto",
    token_column: Column | None = None,
    label_column: Column | None = None,
    scheme: Scheme = "keep",
    lower: bool = False,
) -> Applied:
    """Put the proposals of accepted rows into a corpus file, once all of them are known to fit.

    The options are those that the file was audited with. `rows` are the rows or their file. A row
    is of this file if it names the same path. If no row does, the rows of a file of the same name
    are taken, so that files can be moved. With ``scheme="iob2"``, rows for a file in IOB1 are
    spelled in IOB1 again.
    """
    rows = read_rows(rows) if isinstance(rows, str | os.PathLike) else list(rows)
    if is_builtin(path) or (Path(path).exists() and not Path(path).is_file()) or path == "-":
        raise SettingError("not a file", where=os.fspath(path), remedy="give the path of a corpus")
    choice = Choice(token_column, label_column).checked()
    layout: dict[str, Any] = {"token_column": choice.token, "label_column": choice.label}
    stored = read_corpus(path, format=format, **layout)
    if stored.format == "parquet":
        raise SettingError(
            "Parquet is not text",
            where=os.fspath(path),
            remedy="correct the file that it was made of",
        )
    seen = stored
    if scheme != "keep" or lower:
        seen = read_corpus(path, format=format, scheme=scheme, lower=lower, **layout)
    accepted = [(number, row) for number, row in enumerate(rows, start=1) if row.accepted]
    own = own_rows(accepted, {row.file for row in rows}, path)
    asked = [(number, row) for number, row in own if row.token or row.label or row.proposal]
    text = read_data(path)[1].decode()
    places = LabelPlaces(text, stored)
    tags = scheme == "iob2" or (scheme == "auto" and stored.scheme == "IOB1")
    wanted = fit(asked, seen, places, lower=lower, tags=tags)
    labels = respelled(wanted, stored, seen)
    new = replaced(labels, places)
    if labels:
        _check(new, labels, stored, choice, format)
    return Applied(
        source=stored.source,
        format=stored.format,
        applied=len(asked),
        changed=len(labels),
        elsewhere=len(accepted) - len(own),
        unlabelled=len(own) - len(asked),
        data=new.encode(),
    )


def respelled(wanted: Mapping[int, str], stored: Corpus, seen: Corpus) -> dict[int, str]:
    """The new labels as the file spells them, of those tokens whose labels change.

    In IOB1 the spelling of a tag depends on the tag before it, so a token is spelled again if its
    own tag has changed or that one.
    """
    new = dict(wanted)
    if stored.scheme == "IOB1" and seen.scheme == "IOB2":
        for sentence in {int(stored.sentence_of[token]) for token in wanted}:
            first, behind = stored.offsets[sentence : sentence + 2].tolist()
            before = [label_of(seen, token) for token in range(first, behind)]
            after = [wanted.get(first + k, tag) for k, tag in enumerate(before)]
            for k, tag in enumerate(as_iob1(after)):
                if before[max(k - 1, 0) : k + 1] != after[max(k - 1, 0) : k + 1]:
                    new[first + k] = tag
    return {
        token: label for token, label in sorted(new.items()) if label != label_of(stored, token)
    }


def replaced(labels: Mapping[int, str], places: LabelPlaces) -> str:
    """The text with these labels, whose tokens are in order."""
    parts, at = [], 0
    for token, label in labels.items():
        first, behind = places.span(token)
        before = places.text[first:behind]
        if places.read(before) != label_of(places.corpus, token):
            raise CorpusError("changed while it was read", where=places.corpus.source, remedy=AGAIN)
        parts += [places.text[at:first], places.spell(label, before)]
        at = behind
    return "".join([*parts, places.text[at:]])


def _check(
    text: str, labels: Mapping[int, str], stored: Corpus, choice: Choice, format: Format
) -> None:
    """Read what is to be written: the same tokens with these labels, or it is not written."""
    lines = lines_of(text.removeprefix(MARK))
    ids = enumerate(stored.label_ids.tolist())
    expected = [labels.get(i, stored.label_names[label]) for i, label in ids]
    try:
        kind = guess(stored.source, lines) if format == "auto" else format
        rows = rows_of(lines, kind, stored.source, choice)
    except CorpusError as error:
        problem = f"with these labels it could not be read ({error.what})"
        raise RowsError(problem, where=error.where, remedy=OTHERS) from None
    tokens = [stored.vocabulary[i] for i in stored.token_ids.tolist()]
    now = [list(rows.tokens), list(rows.labels), list(rows.lines), list(rows.starts)]
    if now != [tokens, expected, stored.lines.tolist(), stored.offsets[:-1].tolist()]:
        problem = "with these labels it would be read as another corpus"
        raise RowsError(problem, where=stored.source, remedy=OTHERS)
