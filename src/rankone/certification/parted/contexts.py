"""The contexts of all parts, in buckets that an engine keeps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rankone.certification.claims import LOOSE, NOTHING
from rankone.certification.context_gaps import Gaps, Nearest, Widest, different_places, norm_of
from rankone.certification.context_ids import ContextIds
from rankone.certification.parted.evaluate import Kit
from rankone.certification.parted.gaps import (
    NOT_BETTER,
    contexts_of,
    nearest_contexts,
    nearest_of,
    rough_contexts,
    sizes_of,
)
from rankone.certification.referee import Referee
from rankone.certification.told_apart import least_distance
from rankone.deadline import time_left
from rankone.engines import Engine, Ref, Shared, Table
from rankone.engines.engine import exchanged, stacked
from rankone.errors import SettingError
from rankone.nn import TokenClassifier
from rankone.progress import Progress

BYTES = 2000  # that a context takes where all are compared in one place


class Scattered:
    """``count`` contexts; ``whole`` if time sufficed for all parts. ``ids`` are all of them in one
    place, if they had to be compared there."""

    def __init__(
        self,
        kit: Kit,
        engine: Engine,
        shared: Shared,
        figures: Sequence[Table],
        sent: Sequence[list[Ref]],
        progress: Progress,
    ) -> None:
        self.kit, self.engine, self.shared, self.figures = kit, engine, shared, figures
        self.count = sum(int(table["contexts"][0]) for table in figures)
        self.whole = all(bool(table["whole"][0]) for table in figures)
        self.buckets, self.progress = exchanged(sent), progress
        self.better: Table = NOT_BETTER
        self.ids: ContextIds | None = None

    def refine(self, referee: Referee) -> float:
        """Let the referee compute what float64 does not know well enough; returns the largest
        norm."""
        along, norm, size, scale = map(self._most, ("along", "norm", "size", "scale"))
        finite = all(bool(table["finite"][0]) for table in self.figures)
        if not finite or not along <= LOOSE * scale + NOTHING:
            calls = [(self.shared, refs, scale) for refs in self.buckets]
            refs = self.engine.each(rough_contexts, calls, partial(self.progress, "distances"))
            tables = [self.engine.take(ref) for ref in refs]
            self.engine.drop(refs)
            along, norm, size = (
                max(float(t[name][0]) for t in tables) for name in ("along", "norm", "size")
            )
            columns = ("token", "place", "mid", "rad")
            ids = contexts_of(
                self.kit, [{name: t[name] for name in columns} for t in tables], NOT_BETTER
            )
            ids = replace(ids, size=sizes_of(self.kit, ids))
            referee.fetch(ids.tokens.tolist())
            ids = referee.refine(ids, np.arange(len(ids.tokens)))
            assert ids.kept is not None
            self.better = {
                "token": ids.tokens,
                "along": ids.along.mid,
                "along_rad": ids.along.rad,
                "mid": ids.kept.mid.T,
                "rad": ids.kept.rad.T,
            }
            along = max(along, float(ids.along.rad.max(initial=0.0)))
            norm, size = max(norm, norm_of(ids.kept)), max(size, float(ids.size.max(initial=0.0)))
        self.widest = Widest(along, norm)
        return size

    def nearest(self) -> Nearest:
        """The closest contexts of one word at one position."""
        until = time.time() + time_left()
        calls = [(self.shared, refs, self.better, self.widest, until) for refs in self.buckets]
        refs = self.engine.each(nearest_contexts, calls, partial(self.progress, "distances"))
        found = Nearest.merged(nearest_of(self.engine.take(ref)) for ref in refs)
        self.engine.drop(refs)
        return found

    def apart(self, network: TokenClassifier) -> float:
        """How far contexts of different words or positions are apart at least."""
        words, places = (
            np.unique(np.concatenate([table[name] for table in self.figures]))
            for name in ("words", "places")
        )
        return least_distance(network, words, places)

    def compare_others(self, gaps: Gaps) -> None:
        """Compare contexts of different words or positions, in this process."""
        if BYTES * self.count > self.engine.room:
            raise SettingError(
                "contexts of different words cannot be told apart by whole numbers in their "
                "vectors, so all are compared, which takes more memory than is allowed",
                remedy="allow more (--memory), or leave out memory and engine (--memory, --engine)",
            )
        tables = [self.engine.take(ref) for refs in self.buckets for ref in refs]
        ids = contexts_of(self.kit, [stacked(tables)], self.better)
        self.ids = replace(ids, size=sizes_of(self.kit, ids))
        different_places(self.ids, gaps)

    def drop(self) -> None:
        for refs in self.buckets:
            self.engine.drop(refs)

    def _most(self, name: str) -> float:
        return max(float(table[name][0]) for table in self.figures)
