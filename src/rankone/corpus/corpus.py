"""The corpus: labelled sentences, kept as columns of integers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np

from rankone.arrays import Ints
from rankone.choices import Task
from rankone.corpus import records, schemes
from rankone.corpus import texts as texts_
from rankone.corpus.rows import NO_LABEL, Choice, Columns, Rows, Sentence, spelled_out
from rankone.corpus.source import printable
from rankone.corpus.splitting import Splitting
from rankone.corpus.tasks import task_of
from rankone.corpus.tokenizers import tokenizer_of
from rankone.errors import CorpusError
from rankone.plural import plural
from rankone.spans import places

PYTHON = "<python>"


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Labelled sentences as columns.

    Token i of the corpus is ``vocabulary[token_ids[i]]`` with the label
    ``label_names[label_ids[i]]``, from line ``lines[i]``. Sentence j is the run
    ``offsets[j]:offsets[j + 1]`` from ``files[file_ids[j]]``, which is None if it was made in
    Python (its line is then its number). ``sentences`` gives the same as Python objects. A label id
    is -1 if the ``task`` does not ask for a label of the token; an unlabelled corpus has no label
    names, and asks for none. ``columns`` says where tokens and labels were found, ``remarks`` what
    was assumed to read them.
    """

    source: str
    vocabulary: tuple[str, ...]
    label_names: tuple[str, ...]
    token_ids: Ints
    label_ids: Ints
    offsets: Ints
    lines: Ints
    files: tuple[str | None, ...]
    file_ids: Ints
    format: str = "python"
    scheme: str | None = None  # how NER tags are written, None if the labels are not NER tags
    task: str = "tags"
    window: int = 0  # tokens that a model of it sees at most, 0 for all that it may; with a window,
    # documents begin with a mark
    columns: Columns = field(default_factory=Columns)
    remarks: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)  # how to read other text in the same way
    seconds: float = 0.0  # time taken to read it

    def __repr__(self) -> str:
        counts = (
            plural(self.n_sentences, "sentence"),
            plural(self.n_tokens, "token"),
            plural(len(self.vocabulary), "word"),
            plural(len(self.label_names), "label"),
        )
        return f"Corpus({self.source!r}: {', '.join(counts)})"

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences, in the order of the file."""
        words = [self.vocabulary[i] for i in self.token_ids.tolist()]
        known = [*self.label_names, NO_LABEL]  # index -1 finds the last
        names = [known[i] for i in self.label_ids.tolist()] if self.labelled else []
        lines, bounds = self.lines.tolist(), self.offsets.tolist()
        return tuple(
            Sentence(
                words[a:b],
                names[a:b],
                lines[a],
                lines[a:b] if len(set(lines[a:b])) > 1 else [],
                self.files[file],
            )
            for (a, b), file in zip(pairwise(bounds), self.file_ids.tolist(), strict=True)
        )

    @property
    def labelled(self) -> bool:
        return bool(self.label_names)

    def check_labelled(self) -> Corpus:
        """The corpus itself; raises an error if it has no labels."""
        if not self.labelled:
            raise CorpusError("no labels", where=self.source, remedy="give a labelled file")
        return self

    @property
    def n_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def n_sentences(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def asked(self) -> Ints:
        """The tokens for which the task asks for a label."""
        return np.flatnonzero(self.label_ids >= 0)

    @cached_property
    def lengths(self) -> Ints:
        """Tokens per sentence."""
        return np.diff(self.offsets)

    @cached_property
    def sentence_of(self) -> Ints:
        """The sentence of each token."""
        return np.repeat(np.arange(self.n_sentences), self.lengths)

    @cached_property
    def positions(self) -> Ints:
        """The place of each token in its sentence, from 0."""
        return places(self.offsets)

    @cached_property
    def longest(self) -> int:
        return int(self.lengths.max())

    def place(self, token: int) -> str:
        """Where a token comes from, for messages: file and line, or the number of the sentence."""
        sentence = int(self.offsets.searchsorted(token, side="right")) - 1
        file = self.files[self.file_ids[sentence]]
        if file is None:
            name = self.source if len(self.files) == 1 else PYTHON
            return f"{name}, sentence {self.lines[token]}"
        return f"{file}, line {self.lines[token]}"

    def place_of_sentence(self, sentence: int) -> str:
        """Where a sentence begins."""
        return self.place(int(self.offsets[sentence]))

    @cached_property
    def sha256(self) -> str:
        """The hash of words and labels, sentence by sentence. Blank lines, other columns and
        compression of the file do not matter."""
        text = sha256()
        for words in (self.vocabulary, self.label_names):
            text.update(spelled_out(words))
        for column in (self.token_ids, self.label_ids, self.offsets):
            text.update(column.astype("<i8").tobytes())
        return text.hexdigest()

    @classmethod
    def from_rows(
        cls, rows: Rows, *, source: str, format: str, scheme: str | None = None, task: str = "tags"
    ) -> Corpus:
        """Number tokens and labels in the order of their first appearance."""
        check_sentences(len(rows.starts), source)
        labels = rows.labels.numbers()
        number = {file: i for i, file in enumerate(dict.fromkeys(rows.files or [source]))}
        file_ids = (number[file] for file in rows.files)
        return cls(
            source=source,
            vocabulary=tuple(rows.tokens.index),
            label_names=tuple(rows.labels.index),
            token_ids=rows.tokens.numbers(),
            label_ids=labels if len(labels) else np.full(len(rows.tokens.ids), -1),
            offsets=np.append(np.frombuffer(rows.starts, dtype=np.int64), len(rows.tokens.ids)),
            lines=np.frombuffer(rows.lines, dtype=np.int64),
            files=tuple(number),
            file_ids=np.fromiter(file_ids, np.int64)
            if rows.files
            else np.zeros(len(rows.starts), dtype=np.int64),
            format=format,
            scheme=scheme,
            task=task,
            columns=rows.columns if len(labels) else replace(rows.columns, label=None),
        )

    @classmethod
    def from_sentences(
        cls,
        sentences: Iterable[Any],
        *,
        source: str | None = None,
        token_column: int | str | None = None,
        label_column: int | str | None = None,
        task: Task = "tags",
    ) -> Corpus:
        """From (tokens, labels) pairs, `Sentence` objects, mappings, or a Hugging Face dataset.

        `token_column` and `label_column` are keys of the mappings or columns of the dataset. The
        defaults are "tokens", or else "words", for tokens; and "labels", or else the only usual
        name that is there ("tags", "ner_tags", "upos"), for labels. Numbers of a ClassLabel become
        its names. Sentences of a corpus keep their lines and files; `source` is then by default the
        file they come from, or the names of several. `task` says what is asked of the tokens.

        >>> Corpus.from_sentences([(["a", "rose"], ["DET", "NOUN"])]).n_tokens
        2
        """
        started = time.perf_counter()
        asking, choice = task_of(task), Choice(token_column, label_column).checked()
        rows = records.read_records(sentences, printable(source or PYTHON), choice)
        name = printable(
            source or name_of_all([PYTHON if file is None else file for file in rows.files])
        )
        rows, found = asking.apply(*schemes.apply(rows, "keep", name))
        corpus = cls.from_rows(rows, source=name, format="python", scheme=found, task=task)
        reading = {"scheme": "auto"} if found == "IOB2" else {}
        reading |= {"task": task} if task != "tags" else {}
        return replace(corpus, reading=reading, seconds=time.perf_counter() - started)

    @classmethod
    def from_texts(
        cls,
        texts: Any,
        *,
        task: Task = "next",
        tokenizer: str | os.PathLike[str] = "words",
        window: int = 0,
        lower: bool = False,
        source: str | None = None,
        token_column: int | str | None = None,
        label_column: int | str | None = None,
    ) -> Corpus:
        """From documents: strings, (text, label) pairs, mappings with the keys "text" and "label",
        columns of these, or a Hugging Face dataset.

        The other settings are those of `read_corpus`. For the task "class" either all documents
        have a label, or none.

        >>> Corpus.from_texts(["A rose is a rose."]).vocabulary
        ('A', ' rose', ' is', ' a', '.')
        """
        started = time.perf_counter()
        asking, splitting = task_of(task), Splitting(tokenizer, window).checked(task)
        labelled = True if label_column is not None else None
        choice = asking.choice(Choice(token_column, label_column, labelled).checked())
        name = printable(source or PYTHON)
        rows = texts_.read_given(texts, name, tokenizer_of(tokenizer), choice, lower=bool(lower))
        rows, _ = asking.apply(rows, None, window=window)
        corpus = cls.from_rows(rows, source=name, format="python", task=task)
        reading = {"task": task, "lower": bool(lower), **splitting.reading}
        seconds = time.perf_counter() - started
        return replace(corpus, window=window, reading=reading, seconds=seconds)


def check_sentences(sentences: int, source: str) -> None:
    """Refuse a whole corpus without a sentence."""
    if not sentences:
        raise CorpusError(
            "no sentence in it",
            where=source,
            remedy="give a file with one token and its label per line",
        )


def name_of_all(sources: Iterable[str]) -> str:
    """One name for all files that the sentences come from."""
    names = list(dict.fromkeys(sources))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
