"""Sequences and texts with their labels, as users of scikit-learn hold them."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.corpus import Corpus
from rankone.errors import CorpusError, SettingError

Sequences = Iterable[Sequence[str]]  # texts are sequences, too
Labels = Iterable[Any]  # a list for each sequence, or one for each
LISTS = "give a list of strings for every sequence: [['a', 'rose'], ['a', 'red', 'rose']]"
TEXTS = "give texts, ['A rose.', 'No rose.'], or a list of words for each"
LABELS = "give one label for each text, all of them strings, or all of them whole numbers"


class SequenceError(CorpusError, ValueError):
    """X or y is not what it should be; a ValueError too, as scikit-learn's own are."""


def one_each(y: Any) -> bool:
    """Whether y has one label for each member of X, and not a list of them."""
    first = next(iter(_members(y, "y", "a list of labels, or of lists of labels")), None)
    return isinstance(first, str | int | float | np.generic)


def labelled_documents(X: Any, y: Any) -> tuple[list[Any], NDArray[Any]]:
    """Texts, or lists of words, with a label for each."""
    documents, labels = documents_of(X), _members(y, "y", "a list of labels")
    if len(documents) != len(labels):
        raise SequenceError(
            f"{len(documents)} texts, but {len(labels)} labels in y",
            where="X",
            remedy="give one label for each text",
        )
    if not documents:
        raise SequenceError("no texts", where="X", remedy="give at least one")
    text = isinstance(labels[0], str)
    wanted = f"a {'string' if text else 'whole number'}, as labels are here"
    for i, label in enumerate(labels):
        if not (_is_name(label) if text else _is_whole(label)):
            raise _mistaken(label, f"y[{i}]", wanted, LABELS)
    return documents, y if isinstance(y, np.ndarray) else np.array(labels)


def _is_name(label: Any) -> bool:
    return isinstance(label, str) and bool(label) and "\0" not in label


def _is_whole(label: Any) -> bool:
    whole = isinstance(label, int | np.integer | np.bool_)
    return whole or (isinstance(label, float | np.floating) and float(label).is_integer())


def documents_of(X: Any) -> list[Any]:
    """Texts, or lists of words, whatever held them."""
    members = _members(X, "X", "a list of texts")
    texts = [isinstance(member, str) for member in members]
    if all(texts):
        return [str(text) for text in members]
    if any(texts):
        i = texts.index(not texts[0])
        wanted = (
            "a text, as the first one is" if texts[0] else "a list of words, as the first one is"
        )
        raise _mistaken(members[i], f"X[{i}]", wanted, TEXTS)
    return strings_of(members, "X")


def corpus_of(documents: list[Any], labels: list[Any], tokenizer: str | os.PathLike[str]) -> Corpus:
    """A corpus of the task "class"."""
    names = [*map(str, labels)]
    if isinstance(documents[0], str):
        pairs = list(zip(documents, names, strict=True))
        return Corpus.from_texts(pairs, task="class", tokenizer=tokenizer, source="X")
    refuse_tokenizer(tokenizer)
    if not all(documents):
        where = f"X[{documents.index([])}]"
        raise SequenceError("no words", where=where, remedy="take it out, and its label")
    sentences = [(words, [name] * len(words)) for words, name in zip(documents, names, strict=True)]
    return Corpus.from_sentences(sentences, task="class")


def refuse_tokenizer(tokenizer: str | os.PathLike[str]) -> None:
    """Lists of words are split already."""
    if tokenizer != "words":
        raise SettingError(
            "a tokenizer is for texts, and X has lists of words",
            remedy="leave out tokenizer, or give texts with one label each",
        )


def labelled_words(X: Sequences, y: Labels) -> tuple[list[list[str]], list[list[str]]]:
    """X and y as lists of lists, with a label for every word."""
    words, labels = strings_of(X, "X"), strings_of(y, "y")
    if len(words) != len(labels):
        raise SequenceError(
            f"{len(words)} sequences, but {len(labels)} in y",
            where="X",
            remedy="give one sequence of labels for each sequence of words",
        )
    for i, (w, names) in enumerate(zip(words, labels, strict=True)):
        if len(w) != len(names):
            raise SequenceError(
                f"{len(w)} words, but {len(names)} labels in y[{i}]",
                where=f"X[{i}]",
                remedy="give exactly one label per word",
            )
    if not any(words):
        raise SequenceError("no words", where="X", remedy="give a sequence that is not empty")
    return words, labels


def strings_of(given: Iterable[Any], name: str) -> list[list[str]]:
    """Lists of lists of strings, whatever held them."""
    found = []
    for i, items in enumerate(_members(given, name, "a list of sequences")):
        strings = _members(items, f"{name}[{i}]", "a list of strings")
        if set(map(type, strings)) - {str}:  # a quick look: numpy has strings of its own
            for j, string in enumerate(strings):
                if not isinstance(string, str):
                    raise _mistaken(string, f"{name}[{i}][{j}]", "a string")
        found.append(strings)
    return found


def _members(given: Any, where: str, wanted: str) -> list[Any]:
    """What a list, a tuple, an array or a Series holds; nothing in a string, set or iterator."""
    if isinstance(given, (list, tuple)):
        return list(given)
    listed = hasattr(given, "__len__") and hasattr(given, "__getitem__")
    if not listed or isinstance(given, str | bytes | Mapping) or getattr(given, "ndim", 1) < 1:
        raise _mistaken(given, where, wanted)
    return list(given)


def _mistaken(given: object, where: str, wanted: str, remedy: str = LISTS) -> SequenceError:
    return SequenceError(f"{reprlib.repr(given)} is not {wanted}", where=where, remedy=remedy)
