"""A model: a network together with its words and labels."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rankone.arrays import Ints
from rankone.corpus import Corpus
from rankone.corpus.read import Source, read_like
from rankone.corpus.tasks import Task, task_of
from rankone.corpus.texts import split_text
from rankone.errors import CorpusError, SettingError
from rankone.nn import store
from rankone.nn.classifier import TokenClassifier, dtype_name
from rankone.nn.evaluate import Numbers
from rankone.nn.fingerprints import Fingerprints
from rankone.nn.memory import Made, Memory
from rankone.nn.ragged import LONGER, check_lengths
from rankone.nn.readout import Reader, Readout, by_sentence
from rankone.nn.store import Words

LISTS = "give a list of strings for each sentence: [['a', 'rose'], ['the', 'rose']]"
TEXTS = "give a list of texts: ['A rose.', 'No rose.']"


class Model:
    """Row i of the token table is ``vocabulary[i]``; the last row is for all other words.

    ``reading`` says how the corpus was read (columns, scheme, case), so that other text can be
    read the same way. ``made`` has the settings that a model was constructed with, if it can be
    changed, and ``memory`` its sentences, if it is editable. ``contexts`` are fingerprints of what
    a model of the next token was made of, if it has them.
    """

    def __init__(
        self,
        network: TokenClassifier,
        vocabulary: Words | Callable[[], Words],
        labels: Words,
        reading: Mapping[str, Any] | None = None,
        made: Made | None = None,
        memory: Memory | Callable[[], Memory] | None = None,
        contexts: Fingerprints | Callable[[], Fingerprints] | None = None,
    ) -> None:
        """Vocabulary, memory and contexts may be functions, which are called when they are first
        asked for."""
        self.network, self._vocabulary = network, vocabulary
        self.labels, self.reading = labels, dict(reading or {})
        self.made, self._memory, self._contexts = made, memory, contexts

    @cached_property
    def memory(self) -> Memory | None:
        return self._memory() if callable(self._memory) else self._memory

    @cached_property
    def contexts(self) -> Fingerprints | None:
        return self._contexts() if callable(self._contexts) else self._contexts

    @cached_property
    def vocabulary(self) -> Words:
        return self._vocabulary() if callable(self._vocabulary) else self._vocabulary

    def __repr__(self) -> str:
        return f"Model({self.network.shape})"

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and other processes: the words themselves, not the way to get them."""
        memory = None if self.memory is None else replace(self.memory, state=None)
        own = {name: x for name, x in self.__dict__.items() if name not in ("memory", "contexts")}
        given = {"_memory": memory, "_contexts": self.contexts}
        return {**own, "_vocabulary": self.vocabulary, **given}

    @property
    def positions(self) -> int:
        """Rows of the table of positions, 0 for none."""
        return self.network.shape.positions

    @property
    def task(self) -> Task:
        """What its corpus asked for."""
        return task_of(self.reading.get("task", "tags"))

    def predict(self, sentences: Any) -> list[list[str]]:
        """The label of every token, a list for each sentence (a list of words, or a `Sentence`) of
        a list or of a corpus.

        Unknown words share the last row of the table. A sentence longer than the table of positions
        is labelled in pieces as long as the table, each as a sentence of its own.
        """
        ids, offsets = self._numbered(sentences)
        full = offsets[np.append(True, np.diff(offsets) > 0)]  # without those that are empty
        names = np.array(self.labels, dtype=object)[self.label_ids(ids, full)].tolist()
        return [names[a:b] for a, b in pairwise(offsets.tolist())]

    def _numbered(self, sentences: Any) -> tuple[Ints, Ints]:
        """Rows of the table for the words of sentences, and where each sentence begins."""
        sentences = getattr(sentences, "sentences", sentences)  # of a corpus
        if not isinstance(sentences, Iterable):
            raise SettingError(f"no sentences in {reprlib.repr(sentences)}", remedy=LISTS)
        given = [_words(sentence, f"sentence {i}") for i, sentence in enumerate(sentences, 1)]
        rows = self.rows(list(chain.from_iterable(given)))
        return rows, np.cumsum([0, *map(len, given)])

    def classify(self, documents: Any) -> list[str]:
        """The label of every document (a text, a list of tokens, or a `Sentence`) of a list or of a
        corpus, by a model of the task "class".

        Unknown tokens share the last row of the table. A document without tokens has no label, and
        the label of a piece is not that of the document: both are refused.
        """
        if not self.task.whole:
            raise SettingError(
                f"a model of the task {self.task.name!r} has no label for a whole document",
                remedy="call predict, or memorize with the task 'class'",
            )
        documents = getattr(documents, "sentences", documents)  # of a corpus
        if isinstance(documents, str) or not isinstance(documents, Iterable):
            raise SettingError(f"no documents in {reprlib.repr(documents)}", remedy=TEXTS)
        given = [self._tokens(document, i) for i, document in enumerate(documents)]
        if not given:
            return []
        lengths = np.array([*map(len, given)])
        check_lengths(lengths, self.positions, lambda i: f"document {i + 1}", LONGER)
        ends = np.cumsum(lengths)
        ids = self.label_ids(self.rows(list(chain.from_iterable(given))), np.append(0, ends))
        return [self.labels[i] for i in ids[ends - 1].tolist()]

    def _tokens(self, document: Any, number: int) -> list[str]:
        where = f"document {number + 1}"
        if isinstance(document, str):
            if "tokenizer" in self.reading:
                return split_text(document, self.reading, where)
            raise SettingError(
                "the model was made of tokens, and does not say how a text becomes tokens",
                where=where,
                remedy="give a list of tokens for each document",
            )
        words = _words(document, where, TEXTS)
        if not words:
            raise CorpusError("an empty document", where=where, remedy="take it out")
        return words

    def read(self, path: Source, *, labelled: bool | None = None, **given: Any) -> Corpus:
        """Read a file, or several, as the model's own corpus was read, except for options of
        `read_corpus` that are `given`.

        Labels are read if there are any; ``labelled=True`` refuses a file without them. Otherwise a
        file without the columns of the model's corpus may be read as plain text, and
        ``corpus.remarks`` says so.
        """
        return read_like(path, self.reading, self.labels, labelled=labelled, **given)

    def rows(self, words: Sequence[str]) -> Ints:
        """Rows of the token table for these words."""
        if words == self.vocabulary:
            return np.arange(len(words))
        unknown, index = len(self.vocabulary), self._index
        return np.fromiter((index.get(word, unknown) for word in words), np.int64, len(words))

    def label_ids(self, token_ids: Ints, offsets: Ints) -> Ints:
        """Labels as numbers, for sentences ``offsets[j]:offsets[j + 1]`` of rows of the table;
        those that are longer than the table of positions are cut into pieces."""
        if not len(token_ids):
            return np.empty(0, np.int64)
        return Reader.of(self.network, len(token_ids)).label_ids(token_ids, offsets)

    def log_probabilities(self, sentences: Any) -> Iterator[Numbers]:
        """log p(label) for every token and every label of the model, in its own precision: an array
        (tokens, labels) for each sentence, one after the other.

        Sentences are given as to `predict`. Of the task "next" a label is the token that follows.
        """
        ids, offsets = self._numbered(sentences)
        none = np.empty((0, len(self.labels)), np.dtype(dtype_name(self.network)))
        full = offsets[np.append(True, np.diff(offsets) > 0)]
        blocks = self._read(ids, full, lambda head, z: head.log_probabilities(z))
        return by_sentence(blocks, offsets, none)

    def losses(self, corpus: Corpus) -> Numbers:
        """-log p of the label of every token of a corpus, in nats: NaN where none is asked for,
        infinite where the model does not have it. Their mean is the cross-entropy.

        However many labels there are, only a few tokens have all of theirs at a time.
        """
        number = {name: i for i, name in enumerate(self.labels)}
        names = corpus.check_labelled().label_names
        known = np.array([*(number.get(name, -1) for name in names), -1])
        gold = known[corpus.label_ids]
        found = np.full(corpus.n_tokens, np.inf, np.dtype(dtype_name(self.network)))
        ids, first = self.rows(corpus.vocabulary)[corpus.token_ids], 0
        for block in self._read(ids, corpus.offsets, lambda head, z: head.log_probabilities(z)):
            own = np.flatnonzero(gold[first : first + len(block)] >= 0)
            found[first + own] = -block[own, gold[first + own]]
            first += len(block)
        found[corpus.label_ids < 0] = np.nan
        return found

    def _read(
        self, ids: Ints, offsets: Ints, read: Callable[[Readout, Numbers], Iterable[Numbers]]
    ) -> Iterator[Numbers]:
        """What `read` makes of the features of some tokens after the other."""

        return Reader.of(self.network, len(ids)).read(ids, offsets, read) if len(ids) else iter(())

    def save(
        self, directory: str | os.PathLike[str], *, report: Mapping[str, Any] | None = None
    ) -> list[Path]:
        """Write the model directory, whole or not at all; returns the files."""
        return store.save(directory, self.files(report=report))

    def files(self, *, report: Mapping[str, Any] | None = None) -> dict[str, bytes]:
        """What `save` writes."""
        given = self.network, self.vocabulary, self.labels, self.reading
        return store.contents_of(*given, report, self.made, self.memory, self.contexts)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.vocabulary)}


def _words(sentence: Any, where: str, remedy: str = LISTS) -> list[str]:
    """The words of a sentence; a string is not a sentence, and words must be strings."""
    given = getattr(sentence, "tokens", sentence)
    words = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else None
    wrong = [given] if words is None else [word for word in words if not isinstance(word, str)]
    if words is None or wrong:
        raise SettingError(
            f"{reprlib.repr(wrong[0])} is not a {'list of words' if words is None else 'word'}",
            where=where,
            remedy=remedy,
        )
    return words


def load(directory: str | os.PathLike[str]) -> Model:
    """A model from its directory; version, shapes and finiteness are checked first."""
    return Model(*store.load(directory))
