"""The kinds of findings that can fail a check, and what makes two findings the same.

A finding is known by its marks: the files without their folders, the tokens of the sentence, the
place in it and the labels, but not the lines, which shift. Marks are counted: one more copy of a
sentence is one mark more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rankone.audit.baseline import Baseline
from rankone.audit.findings import Row, excerpt, listed
from rankone.audit.leaks import letters_of
from rankone.audit.result import Audit
from rankone.corpus.corpus import PYTHON

SUSPECTS = "suspects"  # the only ones with a score


@dataclass(frozen=True)
class Finding:
    """A finding of any kind: where it is, what it is in words, its marks and its score."""

    rows: tuple[Row, ...]
    text: str
    marks: tuple[Hashable, ...]
    score: float = 1.0


def exact_leaks(found: Audit | Baseline) -> Iterator[Finding]:
    """Known by the two splits, the sentence, and the files of its copies."""
    return _leaks(found, "exact")


def near_leaks(found: Audit | Baseline) -> Iterator[Finding]:
    """The same with letters for the sentence: which of several sentences with these letters stands
    for all depends on their order."""
    return _leaks(found, "near")


def _leaks(found: Audit | Baseline, kind: str) -> Iterator[Finding]:
    for split in found.against:
        for leak in split.leaks:
            if leak.kind == kind:
                words, rows = leak.sentence, leak.here + leak.there
                same = words if kind == "exact" else "".join(map(letters_of, words))
                marks = tuple((same, _name(split.file), _name(row.file)) for row in rows)
                yield Finding(rows, f"also {listed(leak.there)}: {excerpt(words)}", marks)


def conflicts(found: Audit | Baseline) -> Iterator[Finding]:
    """Known by the files of the rows and by the labels, each alone: a row that now has another of
    the same labels makes nothing new."""
    inputs = [None if file == PYTHON else file for file in found.inputs[:1]]
    for conflict in found.conflicts:
        rows = tuple(
            Row(file, line)
            for label, lines in conflict.labels.items()
            for file, line in zip(
                conflict.files.get(label, inputs * len(lines)), lines, strict=True
            )
        )
        context = tuple(conflict.sentence), conflict.start, conflict.position
        marks = [
            *((context, "file", _name(row.file)) for row in rows),
            *((context, "label", label) for label in conflict.labels),
        ]
        yield Finding(rows, f"{conflict}: {conflict.excerpt()}", tuple(marks))


def duplicates(found: Audit | Baseline) -> Iterator[Finding]:
    """Known by the sentence and the files of its copies."""
    for found_twice in found.duplicates:
        words, rows = found_twice.sentence, found_twice.rows
        marks = tuple((words, _name(row.file)) for row in rows)
        yield Finding(rows, f"also {listed(rows[1:])}: {excerpt(words)}", marks)


def suspects(found: Audit | Baseline) -> Iterator[Finding]:
    """Known by each token of the run: file, sentence, place and label. The proposal and the score
    depend on all the other labels, so they do not matter."""
    for suspect in found.suspects:
        words, position, length = suspect.sentence, suspect.position, len(suspect.lines)
        labels = suspect.label.split(" ")
        labels = labels if len(labels) == length else [suspect.label]  # which may hold blanks
        marks = tuple(
            (words, suspect.start, _name(suspect.file), position + k, label)
            for k, label in enumerate(labels)
        )
        text = (
            f"{suspect.token!r} (token {position}): {suspect.label}, more likely "
            f"{suspect.proposal} (score {suspect.score:.3f}): "
            f"{excerpt(words, position - suspect.start, length)}"
        )
        yield Finding((Row(suspect.file, suspect.line),), text, marks, suspect.score)


def _name(file: str | None) -> str:
    """The name of a file without its folder."""
    return "" if file is None else Path(file).name


# By the names that a user gives them.
KINDS: Mapping[str, Callable[[Audit | Baseline], Iterator[Finding]]] = {
    "leaks": exact_leaks,
    "near-leaks": near_leaks,
    "conflicts": conflicts,
    "duplicates": duplicates,
    SUSPECTS: suspects,
}
OF_SPLITS = ("leaks", "near-leaks")  # those that need another split
