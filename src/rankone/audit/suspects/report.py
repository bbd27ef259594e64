"""Suspects in words: which tokens, what is proposed, and the rows that say so."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankone.arrays import Floats
from rankone.audit.findings import Evidence, Suspect
from rankone.audit.suspects.edits import Edits
from rankone.audit.suspects.tags import Tags
from rankone.audit.suspects.votes import Groups
from rankone.corpus.corpus import Corpus

KEPT = 100  # tokens of a sentence on either side
AROUND = 5  # tokens of a row of evidence on either side
ROWS = 5  # of evidence


@dataclass(frozen=True)
class Reporter:
    """Turns tokens into findings."""

    corpus: Corpus
    tags: Tags
    windows: dict[str, Groups]
    edits: Edits

    def report(
        self, chances: Floats, odds: Floats, count: int, above: float
    ) -> tuple[Suspect, ...]:
        """The best edits that do not overlap, the likeliest first: `count`, and all above."""
        taken = np.zeros(self.corpus.n_tokens, dtype=bool)
        found: list[tuple[int, Suspect]] = []
        for token in np.argsort(-odds, kind="stable").tolist():
            if len(found) >= count and chances[token] <= above:
                break
            if taken[token] or self.tags.ids[token] < 0:
                continue
            suspect, first = self._suspect(token, float(chances[token]))
            run = slice(first, first + len(suspect.lines))
            if suspect.lines and not taken[run].any():
                taken[run] = True
                found.append((token, suspect))
            taken[token] = True
        evidence = self._evidence([token for token, _ in found])
        return tuple(replace(suspect, evidence=evidence[token]) for token, suspect in found)

    def _suspect(self, token: int, chance: float) -> tuple[Suspect, int]:
        """The finding of a token, and its first token; it has no lines if nothing would change."""
        corpus, names = self.corpus, self.tags.names
        sentence = int(corpus.sentence_of[token])
        a, b = corpus.offsets[sentence : sentence + 2].tolist()
        a, b = max(a, token - KEPT), min(b, token + KEPT + 1)
        start, labels = self.edits.run(token)
        given = [names[i] for i in self.tags.ids[a:b].tolist()]
        changed = list(given)
        for i, label in enumerate(labels, start):
            if a <= i < b:
                changed[i - a] = names[label]
        old, new = self.tags.spelled(given), self.tags.spelled(changed)
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
            position=int(corpus.positions[a]) + first + 1,
            lines=tuple(lines),
            start=int(corpus.positions[a]) + 1,
        ), a + first

    def _evidence(self, tokens: list[int]) -> dict[int, tuple[Evidence, ...]]:
        """For each token the rows of the widest window in which another has the proposed label."""
        edits = self.edits
        found: dict[int, tuple[Evidence, ...]] = dict.fromkeys(tokens, ())
        for alike, groups in self.windows.items():
            group_of = groups.group_of(self.corpus.n_tokens)
            for token in tokens:
                if found[token]:
                    continue
                wanted = edits.candidates[token, edits.label[token]]
                members = groups.members(token, group_of)
                rows = members[self.tags.ids[members] == wanted][:ROWS].tolist()
                found[token] = tuple(self._row(row, alike) for row in rows)
        return found

    def _row(self, token: int, alike: str) -> Evidence:
        corpus = self.corpus
        sentence = int(corpus.sentence_of[token])
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
