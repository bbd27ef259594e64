"""Whether accepted rows fit the corpus as it is now, and which labels they ask for."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Set
from pathlib import Path

from rankone.audit.locate import LabelPlaces
from rankone.audit.rows import ReviewRow
from rankone.corpus.corpus import Corpus
from rankone.corpus.schemes import TAG
from rankone.corpus.source import printable
from rankone.errors import RowsError
from rankone.plural import plural

AGAIN = "audit the file as it is now, and mark the new rows"
Numbered = list[tuple[int, ReviewRow]]  # rows, counted from 1
SHORT = reprlib.Repr()
SHORT.maxstring = 60


def own_rows(rows: Numbered, files: Set[str], path: str | os.PathLike[str]) -> Numbered:
    """Those of the rows that are about the file at `path`, where `files` are all that are named.

    They name the same path; or, if none of the files does, they are those of the only file of the
    same name.
    """
    names = {file for file in files if _same(file, path)}
    if not names:
        names = {file for file in files if _base(file) == _base(os.fspath(path))}
        if len(names) > 1:
            raise RowsError(
                f"rows of several files of this name: {', '.join(sorted(names))}",
                where=os.fspath(path),
                remedy="apply them where the files were audited, or keep the rows of one of them",
            )
    return [(number, row) for number, row in rows if row.file in names]


def fit(
    rows: Numbered, corpus: Corpus, places: LabelPlaces, *, lower: bool, tags: bool
) -> dict[int, str]:
    """The label that is wanted for each token; rows that do not fit are refused, all at once.

    `corpus` is as the rows have seen it. `tags` says whether labels must be entity tags.
    """
    wanted: dict[int, tuple[str, str]] = {}
    refusals = []
    for number, row in rows:
        origin = row.origin or f"row {number}"
        try:
            first, labels = _asked(row, corpus, places, lower, tags, origin)
            for token, label in enumerate(labels, start=first):
                other, by = wanted.setdefault(token, (label, origin))
                if other != label:
                    raise RowsError(
                        f"wants {label!r} for {word_of(corpus, token)!r} ({corpus.place(token)}), "
                        f"but {by} wants {other!r}",
                        where=origin,
                        remedy="accept one of the two",
                    )
        except RowsError as refusal:
            refusals.append(refusal)
    if refusals:
        leading, more = refusals[0], len(refusals) - 1
        also = f"; {plural(more, 'more row does', 'more rows do')} not fit" if more else ""
        raise RowsError(leading.what + also, where=leading.where, remedy=leading.remedy)
    return {token: label for token, (label, _) in wanted.items()}


def word_of(corpus: Corpus, token: int) -> str:
    """The word that a token is."""
    return corpus.vocabulary[int(corpus.token_ids[token])]


def label_of(corpus: Corpus, token: int) -> str:
    """The label of a token."""
    return corpus.label_names[int(corpus.label_ids[token])]


def _asked(
    row: ReviewRow, corpus: Corpus, places: LabelPlaces, lower: bool, tags: bool, origin: str
) -> tuple[int, list[str]]:
    """The first token of a row, and the labels that it wants from there on."""
    first, size = _run(row, corpus, len(places.lines), lower, origin)
    where = corpus.place(first)
    if not row.proposal:
        remedy = "fill the proposal in, or do not accept the row"
        raise RowsError(f"no proposal for {row.token!r} ({where})", where=origin, remedy=remedy)
    labels = row.proposal.split(" ") if size > 1 else [row.proposal]
    if len(labels) != size:
        what = f"{plural(len(labels), 'label')} for {plural(size, 'token')} ({where})"
        remedy = "propose one label for each token, with blanks between them"
        raise RowsError(what, where=origin, remedy=remedy)
    for token, label in enumerate(labels, start=first):
        problem = places.problem(label, token)
        if problem is None and tags and not TAG.fullmatch(label):
            problem = "is not an IOB tag"
        if problem is not None:
            what = f"the label {label!r} {problem} ({where})"
            raise RowsError(what, where=origin, remedy="propose another label")
    return first, labels


def _run(row: ReviewRow, corpus: Corpus, lines: int, lower: bool, origin: str) -> tuple[int, int]:
    """The first of the tokens that a row names, and how many they are."""
    first, behind = corpus.lines.searchsorted([row.line, row.line + 1]).tolist()
    where = f"{corpus.source}, line {row.line}"
    if first == behind:
        what = f"{where} holds no token"
        if row.line > lines:
            what = f"{where} is beyond the end, line {lines}"
        raise RowsError(what, where=origin, remedy=AGAIN)
    starts = range(first, behind)
    if len(starts) > 1 and row.position is not None:  # a whole sentence on one line
        starts = starts[row.position - 1 : row.position] if row.position else starts[:0]
    end = int(corpus.offsets[corpus.sentence_of[first] + 1])
    found = [(start, size) for start in starts if (size := _size(row, corpus, start, end, lower))]
    if len(found) > 1:
        raise RowsError(
            f"{row.token!r} stands {len(found)} times on {where}",
            where=origin,
            remedy="give its place in the sentence, from 1, in the column position",
        )
    if not found:
        there = range(starts[0] if starts else first, end)[: row.token.count(" ") + 1]
        words = SHORT.repr(" ".join(word_of(corpus, token) for token in there))
        labels = SHORT.repr(" ".join(label_of(corpus, token) for token in there))
        raise RowsError(
            f"{where} holds {words} labelled {labels}, "
            f"not {SHORT.repr(row.token)} labelled {SHORT.repr(row.label)}",
            where=origin,
            remedy=AGAIN,
        )
    return found[0]


def _size(row: ReviewRow, corpus: Corpus, start: int, end: int, lower: bool) -> int:
    """How many tokens from `start` on are those of the row, 0 if they are not."""
    words = labels = ""
    wanted = row.token.lower() if lower else row.token
    for token in range(start, end):
        word = word_of(corpus, token)
        words += (" " if token > start else "") + word
        labels += (" " if token > start else "") + label_of(corpus, token)
        if words == wanted and labels == row.label:
            return token - start + 1
        if len(words) >= len(wanted):
            break
    return 0


def _same(file: str, path: str | os.PathLike[str]) -> bool:
    try:
        return file == printable(os.fspath(path)) or Path(file).resolve() == Path(path).resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL
        return False


def _base(file: str) -> str:
    """The name without the directories, in the manner of any system."""
    return re.split(r"[/\\]", file)[-1]
