"""Two toy tasks that are in no table, to test that whatever takes a corpus honours its task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rankone import Corpus
from rankone.corpus import tasks
from rankone.corpus.rows import Rows, Words
from rankone.corpus.tasks import Task


def _last(rows: Rows) -> Rows:
    ends = _ends(rows)
    ids = np.where(ends, rows.labels.numbers(), -1)
    return replace(rows, labels=Words.renamed(list(rows.labels.index), ids))


def _next(rows: Rows) -> Rows:
    ids = np.where(_ends(rows), -1, np.roll(rows.tokens.numbers(), -1))
    return replace(rows, labels=Words.renamed(list(rows.tokens.index), ids))


def _ends(rows: Rows) -> np.ndarray:
    """Where sentences end."""
    ends = np.zeros(len(rows.tokens.ids) + 1, dtype=bool)
    ends[np.array(rows.starts)[1:]] = True
    ends[-1] = True
    return ends[1:]


LAST = Task("toy-last", "the label of the last token of the sentence", _last)
NEXT = Task("toy-next", "the next token of the sentence", _next, causal=True, from_labels=False)
TOYS = {task.name: task for task in (LAST, NEXT)}
ALL = {**tasks.TASKS, **TOYS}


def register(patch: pytest.MonkeyPatch) -> None:
    """Put the toys into the table, for one test."""
    for name, task in TOYS.items():
        patch.setitem(tasks.TASKS, name, task)


def corpus_of(sentences: list[tuple[list[str], list[str]]], task: str) -> Corpus:
    """The corpus that asks for this, toy or not; it may ask for nothing."""
    with pytest.MonkeyPatch.context() as patch:
        register(patch)
        return Corpus.from_sentences(sentences, task=task)  # type: ignore[arg-type]
