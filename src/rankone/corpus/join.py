"""Several corpora as one: the files of a data set, or its splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, combinations
from typing import Any, Protocol

import numpy as np

from rankone.corpus.corpus import Corpus, name_of_all
from rankone.corpus.parts import numbered
from rankone.corpus.rows import Columns
from rankone.corpus.tasks import asks_next
from rankone.errors import CorpusError

SHOWN = 5  # labels that a message names


def join(corpora: Sequence[Corpus]) -> Corpus:
    """The sentences of all corpora, in order; every row keeps its file and its line.

    Corpora that do not belong together are refused: another layout, another scheme of entity tags,
    or hardly a label in common.

    >>> one, two = (Corpus.from_sentences([([w], ["X"])], source=w) for w in "ab")
    >>> join([one, two])
    Corpus('a, b': 2 sentences, 2 tokens, 2 words, 1 label)
    """
    if len(corpora) == 1:
        return corpora[0]
    for one, two in combinations(corpora, 2):
        check_alike(one, two)
    parts, sources = numbered(corpora), {corpus.source for corpus in corpora}
    named = [
        [part.source if file is None and len(sources) > 1 else file for file in part.files]
        for part in parts
    ]
    files = tuple(dict.fromkeys(file for names in named for file in names))
    starts = list(accumulate((part.n_tokens for part in parts), initial=0))
    offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts, strict=False)]
    file_ids = [
        np.array([files.index(name) for name in names])[part.file_ids]
        for part, names in zip(parts, named, strict=True)
    ]
    schemes = {part.scheme for part in parts} - {None}
    return replace(
        parts[0],
        source=name_of_all([part.source for part in parts]),
        token_ids=np.concatenate([part.token_ids for part in parts]),
        label_ids=np.concatenate([part.label_ids for part in parts]),
        offsets=np.append(np.concatenate(offsets), starts[-1]),
        lines=np.concatenate([part.lines for part in parts]),
        files=files,
        file_ids=np.concatenate(file_ids),
        scheme=schemes.pop() if schemes else None,
        remarks=tuple(dict.fromkeys(remark for part in parts for remark in part.remarks)),
        seconds=sum(part.seconds for part in parts),
    )


class Read(Protocol):
    """How a file was read, or is going to be."""

    @property
    def source(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def columns(self) -> Columns: ...
    @property
    def reading(self) -> Mapping[str, Any]: ...


def check_layouts(one: Read, two: Read) -> None:
    """Refuse two files of different layouts."""
    if "python" in (one.format, two.format):
        return
    for alike, what, option in (
        (one.format == two.format, "format", "--format"),
        (_same_columns(one, two), "columns", "--label-column"),
    ):
        if not alike:
            raise CorpusError(
                f"read as {getattr(one, what)}, but {two.source} as {getattr(two, what)}",
                where=one.source,
                remedy=f"give files of one layout, or say how to read them ({option})",
            )


def check_alike(one: Corpus, two: Corpus) -> None:
    """Refuse two corpora that were not written in the same way."""
    check_layouts(one, two)
    if {one.scheme, two.scheme} == {"IOB1", "IOB2"}:
        raise CorpusError(
            f"entity tags in {one.scheme}, but {two.scheme} in {two.source}",
            where=one.source,
            remedy="read all of them as IOB2 (--scheme iob2)",
        )
    if asks_next(one.task):  # labels are tokens, of which texts may share few
        return
    ours, theirs = (set(corpus.label_names) - {"O"} for corpus in (one, two))
    if 2 * len(ours & theirs) < min(len(ours), len(theirs)):
        raise CorpusError(
            f"labels {_some(ours - theirs)}, but {_some(theirs - ours)} in {two.source}",
            where=one.source,
            remedy="choose the same label column (--label-column), or rename the labels",
        )


def _same_columns(one: Read, two: Read) -> bool:
    """Whether tokens and labels are in the same columns, or where the user said they are."""
    for what in ("token", "label"):
        columns = [getattr(corpus.columns, what) for corpus in (one, two)]
        chosen = [corpus.reading.get(f"{what}_column") for corpus in (one, two)]
        if columns[0] != columns[1] and (chosen[0] is None or chosen[0] != chosen[1]):
            return False
    return True


def _some(names: set[str]) -> str:
    shown = sorted(names)[:SHOWN]
    return ", ".join(shown) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
