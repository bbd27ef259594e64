"""Several corpora as one: the files of a data set, or its splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from rankone.corpus.corpus import Corpus, name_of_all
from rankone.corpus.growing import Column
from rankone.corpus.rows import PART, Columns
from rankone.corpus.tasks import asks_next
from rankone.errors import CorpusError

SHOWN = 5  # labels that a message names


def join(corpora: Iterable[Corpus]) -> Corpus:
    """The sentences of all corpora, in order; every row keeps its file and its line.

    Corpora that do not belong together are refused: another layout, another scheme of entity tags,
    or hardly a label in common. They are taken one after the other, and what is made of them is
    narrow until the last: an iterator that reads them needs no more memory than their whole.

    >>> one, two = (Corpus.from_sentences([([w], ["X"])], source=w) for w in "ab")
    >>> join([one, two])
    Corpus('a, b': 2 sentences, 2 tokens, 2 words, 1 label)
    """
    joined = Joined()
    for corpus in corpora:
        joined.add(corpus)
        del corpus
    return joined.whole()


class Joined:
    """What is known of the corpora so far; the columns of the first wait until there are two."""

    def __init__(self) -> None:
        self.first: Corpus | None = None
        self.alike = Alike()
        self.words, self.labels = dict[str, int](), dict[str, int]()
        names = ("token_ids", "label_ids", "offsets", "lines", "file_ids")
        self.columns = {name: Column() for name in names}
        self.files = list[tuple[str, str | None]]()  # with the source of the corpus
        self.tokens, self.seconds = 0, 0.0
        self.sources, self.remarks = list[str](), dict[str, None]()

    def add(self, corpus: Corpus) -> None:
        """Take one more corpus."""
        self.alike.add(corpus)
        self.sources.append(corpus.source)
        self.seconds += corpus.seconds
        self.remarks |= dict.fromkeys(corpus.remarks)
        if self.first is None:
            self.first = corpus
            return
        if len(self.sources) == 2:
            self._take(self.first)
            nothing = np.empty(0, dtype=np.int64)
            emptied: dict[str, Any] = dict.fromkeys(self.columns, nothing)
            self.first = replace(self.first, **emptied)
        self._take(corpus)

    def _take(self, corpus: Corpus) -> None:
        for ids, names, numbers, column in (
            (corpus.token_ids, corpus.vocabulary, self.words, self.columns["token_ids"]),
            (corpus.label_ids, corpus.label_names, self.labels, self.columns["label_ids"]),
        ):
            new = [numbers.setdefault(name, len(numbers)) for name in names]
            table = np.array([*new, -1], dtype=np.int64) + 1  # so that -1, the last, is 0
            for at in range(0, len(ids), PART):
                column.add(table[ids[at : at + PART]])
        self.columns["lines"].add(corpus.lines)
        self.columns["offsets"].add(corpus.offsets[:-1] + self.tokens)
        self.columns["file_ids"].add(corpus.file_ids + len(self.files))
        self.files += [(corpus.source, file) for file in corpus.files]
        self.tokens += corpus.n_tokens

    def whole(self) -> Corpus:
        """All of them as one; a single one is that one itself."""
        if self.first is None:
            raise CorpusError("no corpus", remedy="give at least one")
        if len(self.sources) == 1:
            return self.first
        self.alike.check_labels()
        several = len(set(self.sources)) > 1
        named = [source if file is None and several else file for source, file in self.files]
        number = {file: i for i, file in enumerate(dict.fromkeys(named))}
        self.columns["offsets"].add(np.array([self.tokens]))
        columns: dict[str, Any]
        columns = {name: column.numbers() for name, column in self.columns.items()}
        columns["token_ids"] -= 1
        columns["label_ids"] -= 1
        columns["file_ids"] = np.array([number[file] for file in named])[columns["file_ids"]]
        return replace(
            self.first,
            source=name_of_all(self.sources),
            vocabulary=tuple(self.words),
            label_names=tuple(self.labels),
            files=tuple(number),
            scheme=self.alike.scheme,
            remarks=tuple(self.remarks),
            seconds=self.seconds,
            **columns,
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


@dataclass
class Alike:
    """What a corpus is compared with: the first, and the labels and schemes of all."""

    first: Corpus | None = None
    labels: list[tuple[str, set[str]]] = field(default_factory=list)  # of each source
    schemes: dict[str, str] = field(default_factory=dict)  # and a corpus that has it

    @property
    def scheme(self) -> str | None:
        return next(iter(self.schemes), None)

    def add(self, corpus: Corpus) -> None:
        """Refuse a corpus that was not written in the same way as those before."""
        self.first = self.first or corpus
        check_layouts(self.first, corpus)
        if not asks_next(corpus.task):  # where labels are tokens, texts may share few
            self.labels.append((corpus.source, set(corpus.label_names) - {"O"}))
        if corpus.scheme is not None:
            self.schemes.setdefault(corpus.scheme, corpus.source)
        if {"IOB1", "IOB2"} <= set(self.schemes):
            scheme, other = self.schemes
            raise CorpusError(
                f"entity tags in {scheme}, but {other} in {corpus.source}",
                where=self.schemes[scheme],
                remedy="read all of them as IOB2 (--scheme iob2)",
            )

    def check_labels(self) -> None:
        """Refuse a corpus that shares hardly a label with all others."""
        seen = Counter(label for _, labels in self.labels for label in labels)
        for i in (*range(1, len(self.labels)), *range(min(1, len(self.labels)))):
            source, own = self.labels[i]
            others = {label for label in own if seen[label] > 1} if own else set()
            more = len(seen) - (len(own) - len(others))  # labels that others have
            if 2 * len(others) < min(len(own), more):
                rest = set().union(
                    *(labels for _, labels in self.labels[:i] + self.labels[i + 1 :])
                )
                first = self.labels[0 if i else 1][0]
                raise CorpusError(
                    f"labels {_some(rest - own)}, but {_some(own - rest)} in {source}",
                    where=first,
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
