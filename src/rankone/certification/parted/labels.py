"""What is known of the labels of all parts: counts, witnesses, and the tokens that stay open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, isnan

import numpy as np
from flint import arb

from rankone.arrays import Bools, Ints
from rankone.certification.certificate import Outcome
from rankone.certification.claims import LabelClaim, RunClaim
from rankone.certification.label_heads import Head
from rankone.certification.referee import Referee
from rankone.deadline import TimeIsUpError
from rankone.engines import Table
from rankone.nn.evaluate import Numbers


class Labels:
    """Stands for `Readings` of the whole corpus: the referee finds the open tokens in it, and
    writes what it decides. ``off`` and ``labels`` are those of open tokens, by their numbers."""

    def __init__(self, figures: Sequence[Table], unavoidable: int, labelled: bool) -> None:
        self.figures, self.unavoidable, self.labelled = figures, unavoidable, labelled
        self.distance = max(float(table["distance"][0]) for table in figures)
        self.margin, self.worst = arb(0.5), -1
        self.columns = {
            name: np.concatenate([table[name] for table in figures])
            for name in figures[0]
            if name.startswith(("open", "told", "plain", "other")) and name != "open_values"
        }
        self.open: list[int] = self.columns["open"].tolist()
        self.off = dict(zip(self.open, self.columns["open_off"].tolist(), strict=True))
        self.labels = dict(zip(self.open, self.columns["open_label"].tolist(), strict=True))
        rows = (row for table in figures for row in table["open_values"])
        self.run_values: dict[int, Numbers] = dict(zip(self.open, rows, strict=True))
        self.unreached = self._sum("unreached")

    def decide(self, head: Head, referee: Referee) -> bool:
        """Let the referee decide the open labels; whether time sufficed for all of them."""
        try:
            referee.decode(head, self)
        except TimeIsUpError:
            return False
        return not self.unreached

    @property
    def left(self) -> set[int]:
        """The open tokens that are still open."""
        return {token for token, off in self.off.items() if not off < 0.5}

    @property
    def tokens_left(self) -> int:
        return self.unreached + len(self.left)

    @property
    def sentences_left(self) -> int:
        still = np.isin(self.columns["open"], list(self.left))
        own = self.columns["open_sentence"][still]
        return self._sum("missed") + len(np.unique(own[own >= 0]))

    def left_with(self, others: Iterable[int], every: bool, contexts: int) -> int:
        """How many tokens are open, those of the contexts `others`, or of all, included."""
        if not every:
            return self.unreached + len(self.left.union(others))
        left, begins = self.left, self.columns["open_begins"].tolist()
        more = [t for t, begin in zip(self.open, begins, strict=True) if t in left and not begin]
        return contexts + self._sum("unreached_inside") + len(more)

    def decided_by(self, referee: Referee) -> int:
        """How many open tokens that begin no context it has decided."""
        left, begins = self.left, self.columns["open_begins"].tolist()
        done = {t for t, begin in zip(self.open, begins, strict=True) if not begin}
        return len((done & referee.tokens) - left)

    def claim(self) -> LabelClaim:
        """Whether more labels could have been right, and the smallest margin."""
        if not self.labelled:
            return LabelClaim()
        c, left = self.columns, self.left
        sure = np.array([token not in left for token in self.open], bool)
        label = np.array([self.labels[token] for token in self.open], np.int64)
        wrong = sure & (label != c["open_gold"])
        witnesses = list(zip(c["plain"].tolist(), c["plain_label"].tolist(), strict=True))
        alone = np.flatnonzero(wrong & (c["open_context"] < 0))
        witnesses += zip(c["open"][alone].tolist(), label[alone].tolist(), strict=True)
        witnesses += self._too_often(wrong, label)
        outcome = Outcome.UNDECIDED if self.tokens_left else Outcome.CERTIFIED
        if witnesses:
            outcome = Outcome.REFUTED
        margin, worst = self.margin, self.worst
        off, furthest = self._furthest()
        least = (0.5 - arb(off)).lower()
        if not margin < least:
            margin, worst = least, furthest
        return LabelClaim(
            outcome,
            self._sum("wrong") + int(wrong.sum()),
            self.unavoidable,
            None if self.tokens_left else margin,
            worst,
            tuple(sorted(witnesses)),
        )

    def run_claim(self) -> RunClaim:
        """Whether the run in the weights' own type chooses the labels of the exact network."""
        distance = inf if self.tokens_left else self.distance
        if not self.labelled:
            return RunClaim(None, distance)
        c, left = self.columns, self.left
        names = ("other", "other_label", "other_run")
        found = list(zip(*(c[name].tolist() for name in names), strict=True))
        found += [
            (token, self.labels[token], run)
            for token, run in zip(self.open, c["open_run"].tolist(), strict=True)
            if token not in left and self.labels[token] != run
        ]
        if found:
            return RunClaim(Outcome.REFUTED, distance, tuple(sorted(found)))
        outcome = Outcome.UNDECIDED if self.tokens_left else Outcome.CERTIFIED
        return RunClaim(outcome, distance)

    def _too_often(self, wrong: Bools, label: Ints) -> list[tuple[int, int]]:
        """Of contexts with several labels, the wrong tokens of those that are wrong more often
        than need be."""
        c, mine = self.columns, np.flatnonzero(self.columns["open_context"] >= 0)
        token = np.concatenate([c["told"], c["open"][mine]])
        context = np.concatenate([c["told_context"], c["open_context"][mine]])
        bad = np.concatenate([c["told_wrong"], wrong[mine]])
        least = np.concatenate([c["told_least"], c["open_least"][mine]])
        chosen = np.concatenate([c["told_label"], label[mine]])
        if not len(token):
            return []
        _, number = np.unique(context, return_inverse=True)
        more = np.bincount(number, bad) > np.bincount(number, least)
        at = np.flatnonzero(bad & more[number])
        return list(zip(token[at].tolist(), chosen[at].tolist(), strict=True))

    def _furthest(self) -> tuple[float, int]:
        """The largest distance of an output from its label, and the first token that has it."""
        pairs = [
            (-float(t["off"][0]), int(t["furthest"][0])) for t in self.figures if t["off"][0] > -inf
        ]
        pairs += [(-inf if isnan(off) else -off, token) for token, off in self.off.items()]
        off, token = min(pairs)
        return -off, token

    def _sum(self, name: str) -> int:
        return sum(int(table[name][0]) for table in self.figures)
