"""Conflicts: one context with several labels."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from itertools import groupby, islice
from typing import Any

from rankone.arrays import Ints
from rankone.corpus.corpus import PYTHON, Corpus

SHOWN = 10  # lines per label, and labels, that are listed
AROUND = 8  # tokens shown on either side
KEPT = 100  # tokens kept on either side: long sentences with many conflicts must fit in memory


@dataclass(frozen=True)
class Conflict:
    """One context with several labels: its token, its place in the (first) sentence, the sentence,
    and the lines that carry each label.

    Of a long sentence only 100 tokens on either side are kept; the first word kept is token
    ``start``. If the rows come from several files, ``files`` names the file of each line. For
    sentences made in Python, lines are numbers of sentences (``unit``).
    """

    token: str
    position: int  # from 1
    sentence: list[str]
    labels: dict[str, list[int]]
    start: int = 1
    files: dict[str, list[str]] = field(default_factory=dict)
    unit: str = "line"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.token!r} (token {self.position}): {self.sides()}"

    def sides(self) -> str:
        """A few lines for each label, and the number of others."""
        sides = [f"{label} {self.places(label)}" for label in islice(self.labels, SHOWN)]
        if self.n_labels > SHOWN:
            sides.append(f"and {self.n_labels - SHOWN:,} more labels")
        return "; ".join(sides)

    @property
    def n_labels(self) -> int:
        """How many different labels it has."""
        return len(self.labels)

    def n_rows(self, label: str) -> int:
        """How many rows have this label."""
        return len(self.labels[label])

    def excerpt(self) -> str:
        """The part of the sentence around the token, which is in brackets."""
        at = self.position - self.start
        before, after = self.sentence[max(at - AROUND, 0) : at], self.sentence[at + 1 :][:AROUND]
        parts = ["..."] * (at > AROUND) + before + [f"[{self.token}]"] + after
        return " ".join(parts + ["..."] * (at + AROUND + 1 < len(self.sentence)))

    def places(self, label: str, at_most: int = SHOWN) -> str:
        """The first lines with this label, and how many more there are."""
        lines = self.labels[label]
        files = self.files.get(label, [""] * len(lines))
        shown = list(zip(files, lines, strict=True))[:at_most]
        parts = [
            _listed(self.unit, [line for _, line in group]) + (f" of {file}" if file else "")
            for file, group in groupby(shown, lambda pair: pair[0])
        ]
        rows = self.n_rows(label)
        more = f" and {rows - len(shown):,} more" if rows > len(shown) else ""
        return f"{'on' if self.unit == 'line' else 'in'} {', '.join(parts)}{more}"


def find_conflicts(corpus: Corpus, groups: Ints, members: Ints) -> list[Conflict]:
    """The contexts with more than one label, and the lines of all their rows, in file order.

    `members` are the tokens of those contexts, as `best_targets` finds them.
    """
    found: dict[int, Conflict] = {}
    add_conflicts(found, corpus, groups, members, corpus.files)
    return list(found.values())


def add_conflicts(
    found: dict[int, Conflict],
    corpus: Corpus,
    groups: Ints,
    members: Ints,
    files: Collection[str | None],
) -> None:
    """Add the rows of one part of a corpus; `files` are those of the whole corpus."""
    unit = "sentence" if set(files) == {None} else "line"
    several = len(files) > 1
    columns = groups, corpus.sentence_of, corpus.positions, corpus.label_ids, corpus.lines
    for group, sentence, position, label, line in zip(
        *(column[members].tolist() for column in columns), strict=True
    ):
        if group not in found:
            first, behind = corpus.offsets[sentence : sentence + 2].tolist()
            start = max(position - KEPT, 0)
            ids = corpus.token_ids[first + start : min(first + position + KEPT + 1, behind)]
            words = [corpus.vocabulary[i] for i in ids.tolist()]
            token = words[position - start]
            found[group] = Conflict(token, position + 1, words, {}, start + 1, unit=unit)
        conflict, name = found[group], corpus.label_names[label]
        conflict.labels.setdefault(name, []).append(line)
        if several:
            file = corpus.files[corpus.file_ids[sentence]] or PYTHON
            conflict.files.setdefault(name, []).append(file)


def _listed(unit: str, numbers: Iterable[int]) -> str:
    numbers = list(numbers)
    return f"{unit}{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
