"""The findings of an audit as rows that an annotator can go through, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rankone.audit.findings import Duplicate, Row, Suspect
from rankone.audit.result import Audit
from rankone.corpus.conflicts import Conflict
from rankone.corpus.corpus import PYTHON
from rankone.errors import RowsError

YES = frozenset("x yes y true 1 ok accept accepted".split())
NO = frozenset(["", *"no n false 0 reject rejected".split()])
AROUND = 50  # tokens on either side that are shown
SHOWN = 10  # places that are listed


@dataclass(frozen=True, kw_only=True)
class ReviewRow:
    """One finding in one place; ``accept`` is empty until a person marks it.

    ``kind`` is suspect, conflict, duplicate, leak or near-leak. The last three are about a whole
    sentence and have no token; nor have conflicts between the labels of documents. ``position`` is
    the place of the token in its sentence, from 1. ``token``, ``label`` and ``proposal`` may be
    those of several tokens, with blanks between them. ``origin`` says where the row was read from;
    it is not written.
    """

    file: str
    line: int
    position: int | None = None
    sentence: str = ""
    token: str = ""
    label: str = ""
    proposal: str = ""
    kind: str = ""
    score: float | None = None
    evidence: str = ""
    accept: str = ""
    origin: str = field(default="", compare=False)

    @property
    def accepted(self) -> bool:
        """What the mark means; one that means neither yes nor no is refused."""
        mark = self.accept.strip().lower()
        if mark not in YES | NO:
            raise RowsError(
                f"accept is {self.accept!r}, which is neither yes nor no",
                where=self.origin or None,
                remedy="mark what you accept with x or yes, and leave the others empty",
            )
        return mark in YES


def rows_of_audit(audit: Audit) -> list[ReviewRow]:
    """Suspects, then conflicts, duplicates and leaks.

    Of a conflict, every place that has not the label of more than half of them; if no label has so
    many, every place, without a proposal. Of a duplicate, every copy but the first. Of leaks, every
    sentence of the corpus that also stands in another split.
    """
    return [
        *map(_suspect, audit.suspects),
        *(row for conflict in audit.conflicts for row in _conflict(conflict, audit.inputs[0])),
        *(row for duplicate in audit.duplicates for row in _duplicate(duplicate)),
        *_leaks(audit),
    ]


def _suspect(found: Suspect) -> ReviewRow:
    evidence = (
        f"{e.label} at {_place(e.file, e.line)}: {e.text} ({e.alike})" for e in found.evidence
    )
    return ReviewRow(
        file=found.file or PYTHON,
        line=int(found.line),
        position=int(found.position),
        sentence=_excerpt(found.sentence, found.position - found.start),
        token=found.token,
        label=found.label,
        proposal=found.proposal,
        kind="suspect",
        score=float(found.score),
        evidence="; ".join(evidence),
    )


def _conflict(found: Conflict, file: str) -> Iterator[ReviewRow]:
    most = max(found.labels, key=lambda label: len(found.labels[label]))
    proposal = most if 2 * len(found.labels[most]) > sum(map(len, found.labels.values())) else ""
    whole = not found.token  # the document, not a token of it
    for label, lines in found.labels.items():
        files = found.files.get(label, [file] * len(lines))
        for place, line in zip(files, lines, strict=True) if label != proposal else ():
            yield ReviewRow(
                file=place,
                line=line,
                position=None if whole else found.position,
                sentence=_excerpt(found.sentence, 0 if whole else found.position - found.start),
                token=found.token,
                label=label,
                proposal=proposal,
                kind="conflict",
                evidence=f"the same {'document' if whole else 'sentence'} has {found}",
            )


def _duplicate(found: Duplicate) -> Iterator[ReviewRow]:
    for row in found.rows[1:]:
        others = [other for other in found.rows if other != row]
        yield _sentence(row, found.sentence, "duplicate", f"also at {_places(others, found.agree)}")


def _leaks(audit: Audit) -> Iterator[ReviewRow]:
    """One row for each sentence, exact if any of its leaks is."""
    sentences: dict[Row, tuple[tuple[str, ...], list[str], set[Row]]] = {}
    exact: set[Row] = set()
    leaks = [leak for comparison in audit.against for leak in comparison.leaks]
    for leak in sorted(leaks, key=lambda leak: leak.kind != "exact"):
        if leak.kind == "exact":
            exact.update(leak.here)
        for row in leak.here:
            _, evidence, known = sentences.setdefault(row, (leak.sentence, [], set()))
            new = [place for place in leak.there if place not in known]
            known.update(new)
            how = "also at" if leak.kind == "exact" else "nearly the same at"
            if new:
                evidence.append(f"{how} {_places(new, leak.agree)}")
    for row, (words, evidence, _) in sentences.items():
        kind = "leak" if row in exact else "near-leak"
        yield _sentence(row, words, kind, "; ".join(evidence))


def _sentence(row: Row, words: Sequence[str], kind: str, evidence: str) -> ReviewRow:
    file, sentence = row.file or PYTHON, _excerpt(words, 0)
    return ReviewRow(file=file, line=row.line, sentence=sentence, kind=kind, evidence=evidence)


def _places(rows: Sequence[Row], agree: bool | None) -> str:
    shown = [_place(row.file, row.line) for row in rows[:SHOWN]]
    more = f" and {len(rows) - SHOWN:,} more" if len(rows) > SHOWN else ""
    labels = {None: "", True: " (the labels agree)", False: " (the labels differ)"}[agree]
    return f"{'; '.join(shown)}{more}{labels}"


def _place(file: str | None, line: int) -> str:
    return f"sentence {line}" if file is None else f"{file}, line {line}"


def _excerpt(words: Sequence[str], at: int) -> str:
    """A sentence as far as it is near a token."""
    first, behind = max(at - AROUND, 0), at + AROUND + 1
    dots = ["..."]
    return " ".join([*dots * (first > 0), *words[first:behind], *dots * (behind < len(words))])
