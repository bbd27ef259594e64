"""The gate: which findings fail a check, unless a baseline has them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rankone.audit.baseline import Baseline
from rankone.audit.findings import Row
from rankone.audit.kinds import KINDS, OF_SPLITS, SUSPECTS
from rankone.audit.result import Audit
from rankone.errors import SettingError

ABOVE = 0.5  # the score above which a suspect fails, unless the user gives another


@dataclass(frozen=True)
class Failure:
    """A finding that the gate does not let through: its kind, its rows, and what it is."""

    kind: str
    rows: tuple[Row, ...]
    text: str

    def __str__(self) -> str:
        """On one line, which begins with the place, as compilers print it."""
        return f"{self.rows[0]}: {self.kind}: {self.text}"


@dataclass(frozen=True)
class Gate:
    """The kinds of findings that fail, and the score above which a suspect does."""

    kinds: tuple[str, ...]
    above: float = ABOVE

    @classmethod
    def parse(cls, text: str) -> Gate:
        """The gate that a list of kinds describes.

        >>> Gate.parse("leaks,suspects>0.95")
        Gate(kinds=('leaks', 'suspects'), above=0.95)
        """
        above, kinds = ABOVE, list[str]()
        for part in text.split(","):
            name, sign, number = (piece.strip() for piece in part.partition(">"))
            if name not in KINDS:
                raise SettingError(
                    f"cannot fail on {name!r}",
                    remedy=f"choose from {', '.join(KINDS)}, with commas between them",
                )
            if name in kinds:
                raise SettingError(
                    f"cannot fail on {name} twice", remedy="give each kind of finding once"
                )
            kinds.append(name)
            if sign:
                above = _score(name, number)
        return cls(tuple(kinds), above)

    @property
    def of_splits(self) -> tuple[str, ...]:
        """The kinds that need another split."""
        return tuple(kind for kind in self.kinds if kind in OF_SPLITS)

    @property
    def score(self) -> float | None:
        """The score above which every suspect is needed (None: no suspect is)."""
        return self.above if SUSPECTS in self.kinds else None

    def failures(self, audit: Audit, baseline: Baseline | None = None) -> tuple[Failure, ...]:
        """The findings of these kinds that the baseline does not have.

        One that has more rows than in the baseline, or a label that it has not there, is new.
        """
        failures: list[Failure] = []
        for kind in self.kinds:
            known = [] if baseline is None else KINDS[kind](baseline)
            left = Counter(mark for finding in known for mark in finding.marks)
            for finding in KINDS[kind](audit):
                if kind == SUSPECTS and finding.score <= self.above:
                    continue
                marks = Counter(finding.marks)
                if marks - left:
                    failures.append(Failure(kind, finding.rows, finding.text))
                left -= marks
        return tuple(failures)


def _score(name: str, number: str) -> float:
    if name != SUSPECTS:
        raise SettingError(
            f"{name} have no score to compare",
            remedy=f"give a number to {SUSPECTS} only, as in {SUSPECTS}>0.95",
        )
    try:
        score = float(number)
    except ValueError:
        score = -1.0
    if not 0 <= score < 1:
        raise SettingError(
            f"{number or 'nothing'!r} is no score to compare {SUSPECTS} with",
            remedy=f"give a number from 0 to less than 1, as in {SUSPECTS}>0.95",
        )
    return score
