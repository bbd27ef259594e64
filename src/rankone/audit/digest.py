"""The digest of an audit: its figures, and as many of its findings as a page can hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby, islice
from typing import Any

from rankone.audit.findings import Duplicate, Evidence, Leak, Suspect
from rankone.audit.result import Audit
from rankone.audit.texts import Passage, TextConflict, TextFigures
from rankone.audit.verdict import columns_of, verdict
from rankone.corpus.conflicts import Conflict
from rankone.corpus.corpus import PYTHON
from rankone.pages import encode

LIMIT = 1000  # findings of each kind
BUDGETS = {  # bytes for the findings of each kind: less than 5 MB in all, labels and frame included
    "leaks": 1_000_000,
    "conflicts": 1_000_000,
    "duplicates": 700_000,
    "suspects": 1_900_000,  # which quote their evidence
    "passages": 300_000,
}
LABELS = 300  # of the corpus; the task of the next token has a label for every word
AROUND = 40  # tokens on either side of the one that a finding is about
LINES = 40  # that are spelled out for a label, or for one side of a leak
SIDES = 20  # labels of a conflict, rows of evidence, files
LETTERS = 200  # of a token or a label
LINE_END = "⏎"  # in a piece of a text
TEXT = 500  # letters of a row of evidence

FIGURES = (
    "format scheme task sentences tokens vocabulary longest longest_line mean_length "
    "sentences_with_repeated_token distinct_sentences surplus_copies disagreeing_sequences "
    "disagreeing_copies"
).split()

Json = dict[str, Any]
Place = tuple[str | None, int]  # a file, None for sentences made in Python, and a line


def digest(audit: Audit, limit: int = LIMIT) -> Json:
    """The figures of an audit, and at most `limit` findings of each kind, cut to a readable size.

    ``totals`` are the numbers of all findings. Files are numbers, into ``files``: names without the
    directories that they have no need of, because a page is sent to people who have others.
    """
    seen = Seen()
    whole, conflicts = audit.inputs == (PYTHON,), len(audit.conflicts)
    if audit.text is not None:  # which lists only some
        conflicts = audit.text.ceiling(audit.text.window).branching
    own = [audit.source] if whole else audit.inputs
    labels = list(audit.labels.items()) if audit.text is None else []  # else its vocabulary
    agreeing = {} if audit.text is None else {"agree": None}  # copies of a text always do
    findings: dict[str, Iterable[Json]] = {
        "leaks": (
            {"against": i, **_leak(leak, seen), **agreeing}
            for i, comparison in enumerate(audit.against)
            for leak in comparison.leaks
        ),
        "conflicts": (_conflict(conflict, audit, seen) for conflict in audit.conflicts),
        "duplicates": ({**_duplicate(twice, seen), **agreeing} for twice in audit.duplicates),
        "suspects": (_suspect(suspect, seen) for suspect in audit.suspects),
    }
    if audit.text is not None:
        findings["passages"] = (_passage(passage, seen) for passage in audit.text.passages)
    found = {
        "verdict": verdict(audit),
        "ok": audit.ok,
        "figures": {
            **{name: getattr(audit, name) for name in FIGURES},
            "columns": columns_of(audit),
            "labelled": sum(audit.labels.values()),
        },
        "own": [seen.number(name) for name in own[:SIDES]],
        "own_count": len(own),
        "labels": [[_cut(name), count] for name, count in labels[:LABELS]],
        "labels_count": len(labels),
        "ceilings": {name: asdict(ceiling) for name, ceiling in audit.ceilings.items()},
        "text": None if audit.text is None else _text(audit.text),
        "against": [
            {
                "files": [seen.number(name) for name in comparison.file.split(", ")],
                "known": {side: asdict(known) for side, known in comparison.known.items()},
                "ceilings": {
                    side: {name: asdict(ceiling) for name, ceiling in ceilings.items()}
                    for side, ceilings in comparison.ceilings.items()
                },
                "count": len(comparison.leaks),
            }
            for comparison in audit.against
        ],
        "totals": {
            "leaks": sum(len(comparison.leaks) for comparison in audit.against),
            "conflicts": conflicts,
            "duplicates": len(audit.duplicates),
            "suspects": len(audit.suspects),
            **({} if audit.text is None else {"passages": len(audit.text.passages)}),
        },
        "findings": {
            kind: _fitting(items, limit, BUDGETS[kind], seen) for kind, items in findings.items()
        },
    }
    return {**found, "files": tails(seen.names)}


class Seen:
    """The files that were named, each by a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.bytes = 0

    def number(self, name: str | None) -> int | None:
        """None for sentences made in Python, which are no file."""
        if name is None or name == PYTHON:
            return None
        if name not in self._numbers:
            self._numbers[name] = len(self._numbers)
            self.bytes += len(encode(name).encode())
        return self._numbers[name]

    @property
    def names(self) -> list[str]:
        return list(self._numbers)


def tails(names: Sequence[str]) -> list[str]:
    """As much of the end of each path as tells them apart.

    >>> tails(["/home/me/a/train.conll", "/home/me/b/train.conll"])
    ['a/train.conll', 'b/train.conll']
    """
    parts = [re.split(r"[/\\]+", name) for name in names]
    shown = list(names)
    for size in range(1, max(map(len, parts), default=0) + 1):
        shown = ["/".join(part[-size:]) for part in parts]
        if len({*shown}) == len(names):
            break
    return shown


def _leak(leak: Leak, seen: Seen) -> Json:
    return {
        "kind": leak.kind,
        "agree": leak.agree,
        **_sentence(leak.sentence),
        "here": _rows(seen, ((row.file, row.line) for row in leak.here)),
        "there": _rows(seen, ((row.file, row.line) for row in leak.there)),
    }


def _conflict(conflict: Conflict, audit: Audit, seen: Seen) -> Json:
    """Its rows are those of the only file of the corpus, unless it says otherwise."""
    only = audit.inputs[0] if conflict.unit == "line" else None
    sides = [
        {
            "label": _cut(repr(label) if audit.text else label),
            "rows": {
                **_rows(
                    seen, zip(conflict.files.get(label, [only] * len(lines)), lines, strict=True)
                ),
                "count": conflict.n_rows(label),
            },
        }
        for label, lines in islice(conflict.labels.items(), SIDES)
    ]
    at = conflict.position - conflict.start
    whole = isinstance(conflict, TextConflict)
    sentence = (
        _sentence(conflict.sentence)
        if whole
        else _sentence(conflict.sentence, at, 1, left_out=conflict.start - 1)
    )
    return {**sentence, "sides": sides, "sides_count": conflict.n_labels}


def _passage(passage: Passage, seen: Seen) -> Json:
    rows = _rows(seen, ((row.file, row.line) for row in passage.rows))
    sides = list(passage.continuations.items())[:SIDES]
    return {
        **_sentence([passage.text]),
        "length": passage.length,
        "rows": {**rows, "count": passage.copies},
        "next": [[_cut(repr(token)), count] for token, count in sides],
        "next_count": len(passage.continuations) + passage.others,
    }


def _text(text: TextFigures) -> Json:
    return {
        "window": text.window,
        "enough": text.enough,
        "ceilings": [row.to_json() for row in text.ceilings],
    }


def _duplicate(duplicate: Duplicate, seen: Seen) -> Json:
    return {
        "agree": duplicate.agree,
        **_sentence(duplicate.sentence),
        "rows": _rows(seen, ((row.file, row.line) for row in duplicate.rows)),
    }


def _suspect(suspect: Suspect, seen: Seen) -> Json:
    run = len(suspect.lines)
    return {
        **_sentence(
            suspect.sentence, suspect.position - suspect.start, run, left_out=suspect.start - 1
        ),
        "labels": _each(suspect.label, run),
        "proposals": _each(suspect.proposal, run),
        "score": suspect.score,
        "file": seen.number(suspect.file),
        "lines": [suspect.lines[0], suspect.lines[-1]] if run else [suspect.line] * 2,
        "evidence": [_evidence(row, seen) for row in suspect.evidence[:SIDES]],
        "evidence_count": len(suspect.evidence),
    }


def _evidence(row: Evidence, seen: Seen) -> Json:
    text = row.text if len(row.text) <= TEXT else row.text[:TEXT] + "…"
    place = {"file": seen.number(row.file), "line": row.line}
    return {**place, "label": _cut(row.label), "text": text, "alike": row.alike}


def _sentence(words: Sequence[str], at: int | None = None, run: int = 0, left_out: int = 0) -> Json:
    """The words near token `at`, where the marked run begins, and how many words are left out."""
    run = min(run, AROUND)
    first = max(at - AROUND, 0) if at is not None else 0
    behind = at + run + AROUND if at is not None else 2 * AROUND
    return {
        "words": [_cut(word.replace("\n", LINE_END)) for word in words[first:behind]],
        "mark": [] if at is None else [at - first, run],
        "cut": [first + left_out, max(len(words) - behind, 0)],
    }


def _rows(seen: Seen, rows: Iterable[Place]) -> Json:
    """The lines of each file, as far as they are spelled out, and how many there are."""
    rows = list(rows)
    groups = groupby(rows[:LINES], lambda row: row[0])
    at = [[seen.number(file), [line for _, line in group]] for file, group in groups]
    return {"at": at, "count": len(rows)}


def _each(labels: str, run: int) -> list[str]:
    """The label of each token of a run; all in one if they cannot be told apart."""
    parts = labels.split(" ")
    return [_cut(part) for part in parts[:AROUND]] if len(parts) == run else [_cut(labels)]


def _cut(word: str) -> str:
    return word if len(word) <= LETTERS else word[:LETTERS] + "…"


def _fitting(items: Iterable[Json], limit: int, budget: int, seen: Seen) -> list[Json]:
    """The first of them, within the limit and, with the files that they name, the budget."""
    kept: list[Json] = []
    spent = -seen.bytes
    for item in islice(items, limit):
        spent += len(encode(item).encode())
        if spent + seen.bytes > budget:
            break
        kept.append(item)
    return kept
