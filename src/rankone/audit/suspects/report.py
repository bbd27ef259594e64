"""Suspects in words: which tokens, what is proposed, and the rows that say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankone.arrays import Ints
from rankone.audit.findings import Evidence, Suspect
from rankone.audit.suspects.edits import Edits
from rankone.audit.suspects.tags import Tags
from rankone.corpus.corpus import Corpus
from rankone.engines import Table

KEPT = 100  # tokens of a sentence on either side
AROUND = 5  # tokens of a row of evidence on either side


@dataclass(frozen=True)
class Change:
    """An edit that is reported: for which token, the proposed label of that token, the first token
    that the edit changes and the labels from there on."""

    token: int
    wanted: int
    start: int
    labels: list[int]

    def moved(self, by: int) -> Change:
        """The same where the first token has this number."""
        return replace(self, token=self.token + by, start=self.start + by)


def table_of(found: Sequence[Change]) -> Table:
    """Changes as a table."""
    return {
        "token": np.array([change.token for change in found], np.int64),
        "wanted": np.array([change.wanted for change in found], np.int64),
        "start": np.array([change.start for change in found], np.int64),
        "lengths": np.array([len(change.labels) for change in found], np.int64),
        "labels": np.array([y for change in found for y in change.labels], np.int64),
    }


def changes_of(table: Table) -> list[Change]:
    """The changes of such a table."""
    ends = np.cumsum(table["lengths"]).tolist()
    labels = table["labels"].tolist()
    first = (table[name].tolist() for name in ("token", "wanted", "start"))
    bounds = zip([0, *ends], ends, strict=False)
    return [
        Change(token, wanted, start, labels[a:b])
        for token, wanted, start, (a, b) in zip(*first, bounds, strict=True)
    ]


def changes(corpus: Corpus, tags: Tags, edits: Edits, order: Ints) -> Iterator[Change]:
    """The edits that do not overlap, for tokens in this order."""
    taken = np.zeros(corpus.n_tokens, dtype=bool)
    for token in order.tolist():
        if taken[token] or tags.ids[token] < 0:
            continue
        wanted = int(edits.candidates[token, edits.label[token]])
        change = Change(token, wanted, *edits.run(token))
        suspect, first = suspect_of(corpus, tags, change, 0.0)
        run = slice(first, first + len(suspect.lines))
        if suspect.lines and not taken[run].any():
            taken[run] = True
            yield change
        taken[token] = True


def suspect_of(corpus: Corpus, tags: Tags, change: Change, chance: float) -> tuple[Suspect, int]:
    """The finding of a change, and its first token; it has no lines if nothing would change."""
    names, token = tags.names, change.token
    sentence = int(corpus.offsets.searchsorted(token, side="right")) - 1
    a, b = corpus.offsets[sentence : sentence + 2].tolist()
    begins, a, b = a, max(a, token - KEPT), min(b, token + KEPT + 1)
    given = [names[i] for i in tags.ids[a:b].tolist()]
    changed = list(given)
    for i, label in enumerate(change.labels, change.start):
        if a <= i < b:
            changed[i - a] = names[label]
    old, new = tags.spelled(given), tags.spelled(changed)
    differs = [k for k, (x, y) in enumerate(zip(old, new, strict=True)) if x != y]
    first, behind = (differs[0], differs[-1] + 1) if differs else (0, 0)
    words = [corpus.vocabulary[i] for i in corpus.token_ids[a:b].tolist()]
    lines = corpus.lines[a + first : a + behind].tolist()
    return Suspect(
        file=corpus.files[corpus.file_ids[sentence]],
        line=lines[0] if lines else 0,
        sentence=tuple(words),
        token=" ".join(words[first:behind]),
        label=" ".join(old[first:behind]),
        proposal=" ".join(new[first:behind]),
        score=chance,
        position=a - begins + first + 1,
        lines=tuple(lines),
        start=a - begins + 1,
    ), a + first


def evidence_of(corpus: Corpus, token: int, alike: str) -> Evidence:
    """A row that speaks against a label."""
    sentence = int(corpus.offsets.searchsorted(token, side="right")) - 1
    a, b = corpus.offsets[sentence : sentence + 2].tolist()
    first, last = max(a, token - AROUND), min(b, token + AROUND + 1)
    words = [corpus.vocabulary[i] for i in corpus.token_ids[first:last].tolist()]
    words[token - first] = f"[{words[token - first]}]"
    return Evidence(
        file=corpus.files[corpus.file_ids[sentence]],
        line=int(corpus.lines[token]),
        label=corpus.label_names[corpus.label_ids[token]],
        text=" ".join(["..."] * (first > a) + words + ["..."] * (last < b)),
        alike=alike,
    )
