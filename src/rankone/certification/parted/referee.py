"""The referee for a corpus in parts: sentences are fetched where it needs them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rankone.arrays import Ints
from rankone.certification.coincide import Place
from rankone.certification.referee import Referee
from rankone.corpus.parted import PartedCorpus
from rankone.nn import TokenClassifier
from rankone.progress import Progress


class PartedReferee(Referee):
    """Tokens have the numbers of the whole corpus; `rows` are those of its words."""

    def __init__(
        self,
        network: TokenClassifier,
        corpus: PartedCorpus,
        rows: Ints,
        cap: int,
        progress: Progress,
    ) -> None:
        nothing = np.empty(0, np.int64)
        super().__init__(network, nothing, nothing, cap, progress)
        self.corpus, self.row_of = corpus, rows
        self.seen: dict[int, tuple[Ints, int]] = {}

    def fetch(self, tokens: Iterable[int]) -> None:
        """Make the sentences of these tokens known."""
        wanted: dict[int, list[tuple[int, int]]] = {}
        for token in set(tokens) - self.seen.keys():
            number, own = self.corpus.part_of(token)
            wanted.setdefault(number, []).append((token, own))
        for number, pairs in sorted(wanted.items()):
            columns = self.corpus.engine.take(self.corpus.parts[number].columns)
            offsets, ids = columns["offsets"], columns["token_ids"]
            sentences: dict[int, Ints] = {}
            for token, own in sorted(pairs):
                j = int(np.searchsorted(offsets, own, side="right")) - 1
                first, end = offsets[j : j + 2].tolist()
                if j not in sentences:
                    sentences[j] = self.row_of[ids[first:end]]
                self.seen[token] = sentences[j], own - first

    def place(self, token: int) -> Place:
        if token not in self.seen:
            self.fetch([token])
        rows, k = self.seen[token]
        causal = self.network.shape.causal  # of one layer
        return rows[: k + 1 if causal else len(rows)].tolist(), k
