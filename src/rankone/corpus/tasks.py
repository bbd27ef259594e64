"""Tasks: what a corpus asks for. A task says which tokens are asked, and for which label.

``label_ids[i]`` of a corpus is the number of the label wanted for token i, or -1 if none is asked
for. A new task is one entry of `TASKS` and its name in `rankone.choices.Task`;
tests/corpus/test_tasks.py runs over the table.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from rankone.corpus.rows import Choice, Rows, Words
from rankone.errors import CorpusError, SettingError

BEGIN = "<|begin|>"  # in front of a document, where a model sees only a window of it
END = "<|end|>"  # what follows the last token of a document


@dataclass(frozen=True)
class Task:
    """``ask`` turns what a reader returned into rows whose labels are the targets (-1: not asked).

    ``causal``: a model must not see what comes after the token. ``from_labels``: targets are made
    from the labels of the file; otherwise from its words alone, and any text will do. ``text``:
    its documents are texts, which a tokenizer splits, rather than columns of tokens. ``whole``: the
    last token is asked for all of its document, and no other.
    """

    name: str
    description: str
    ask: Callable[[Rows], Rows]
    causal: bool = False
    from_labels: bool = True
    text: bool = False
    whole: bool = False

    def choice(self, choice: Choice) -> Choice:
        """What the reader should find: no labels, if the task makes them from words."""
        return choice if self.from_labels else replace(choice, label=None, labelled=False)

    def apply(
        self, rows: Rows, scheme: str | None, labelled: bool | None = True, window: int = 0
    ) -> tuple[Rows, str | None]:
        """The rows with their targets, and the scheme of entity tags if they still are tags."""
        asks = labelled is not False and (not self.from_labels or len(rows.labels.ids) > 0)
        asked = self.ask(rows) if asks else rows
        same = asked.labels is rows.labels
        return begun(asked) if window else asked, scheme if same else None


def next_tokens(rows: Rows) -> Rows:
    """Every token asks for the one after it, the last of a document for its end."""
    words = rows.tokens
    for mark, what in ((BEGIN, "beginning"), (END, "end")):
        if mark in words.index:
            raise CorpusError(
                f"the token {mark!r}, which stands for the {what} of a document",
                remedy="take it out of the text",
            )
    ids = np.append(words.numbers()[1:], len(words.index))
    ids[np.array(rows.starts[1:], dtype=np.int64) - 1] = len(words.index)
    return replace(rows, labels=Words.renamed([*words.index, END], ids))


def begun(rows: Rows) -> Rows:
    """The same with `BEGIN` in front of every document; nothing is asked of it.

    A window may hold less than it has room for only where a document begins. Softmax gives a block
    of tokens the same average as its repetition, so without a mark "ab" and "abab" would look the
    same there.
    """
    words, starts = rows.tokens, np.array(rows.starts, dtype=np.int64)
    ids = np.insert(words.numbers(), starts, len(words.index))
    lines, labels = np.array(rows.lines, dtype=np.int64), rows.labels
    if labels.ids:
        labels = Words.renamed(list(labels.index), np.insert(labels.numbers(), starts, -1))
    out = replace(
        rows,
        tokens=Words.renamed([*words.index, BEGIN], ids),
        labels=labels,
        lines=array("q"),
        starts=array("q", (starts + np.arange(len(starts))).tolist()),
    )
    out.lines.frombytes(np.insert(lines, starts, lines[starts]).tobytes())
    return out


def of_whole(rows: Rows) -> Rows:
    """Only the last token of a document is asked, for the label that it has there."""
    last = np.zeros(len(rows.tokens.ids), dtype=bool)
    last[np.array([*rows.starts[1:], len(last)], dtype=np.int64) - 1] = True
    ids = np.where(last, rows.labels.numbers(), -1)
    return replace(rows, labels=Words.renamed(list(rows.labels.index), ids))


TASKS = {
    "tags": Task("tags", "a label for every token, as the file has it", lambda rows: rows),
    "next": Task(
        "next",
        "the token that follows every token of a text",
        next_tokens,
        causal=True,
        from_labels=False,
        text=True,
    ),
    "class": Task("class", "a label for every document", of_whole, text=True, whole=True),
}


def task_of(name: str) -> Task:
    """The task of this name."""
    if name not in TASKS:
        raise SettingError(f"unknown task {name!r}", remedy=f"choose one of {', '.join(TASKS)}")
    return TASKS[name]


def of_texts(name: str) -> bool:
    """Whether a corpus of this task holds texts."""
    return name in TASKS and TASKS[name].text


def asks_next(name: str) -> bool:
    """Whether the labels of this task are the tokens that follow in a text."""
    return of_texts(name) and not TASKS[name].from_labels
