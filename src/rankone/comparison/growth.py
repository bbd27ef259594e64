"""How constructions grow: each is built for 1, 2, 4, ... sentences until something ends it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, log, log2
from pathlib import Path
from typing import Any

import numpy as np

from rankone import choices
from rankone.certification.certify import CAP, check_limits
from rankone.comparison.compare import (
    SECONDS,
    asking,
    built_row,
    check_constructions,
    none_fits,
    posed,
    variants,
)
from rankone.comparison.result import Row, named, written_table
from rankone.construct.yun2020.shift import Shift, grid
from rankone.corpus import Corpus, as_corpus
from rankone.corpus.contexts import sentences_with_repeats
from rankone.corpus.parts import cut
from rankone.documents import dump, figures
from rankone.errors import SettingError
from rankone.files import made, write_file
from rankone.progress import Progress

REPORT, TABLE = "growth.json", "growth.csv"
LENGTH, WORDS, LABELS = 8, 32, 4  # of made-up corpora
MOST = 1 << 14  # sentences of them
FITTED = ("parameters", "nonzero", "bits", "bits_total", "layers", "seconds")
FEW = 3  # points that an exponent is fitted to, at least
GRID_DIMENSIONS = range(1, 8)  # for which the layers of yun2020 are counted


@dataclass(frozen=True)
class Curve:
    """The rows of one construction for growing corpora, by their number of contexts.

    ``exponents`` are the slopes of straight lines through the logarithms, fitted to the upper half
    of the curve; ``end`` says what ended it.
    """

    construction: str
    variant: str | None
    contexts: tuple[int, ...]
    rows: tuple[Row, ...]
    exponents: dict[str, float | None]
    end: str

    @property
    def name(self) -> str:
        return named(self.construction, self.variant)

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        return figures(self)


@dataclass(frozen=True)
class Growth:
    """The curves of all constructions on growing corpora.

    ``labels`` is C, so contexts times log2 C is the information that a network must hold.
    ``grid_layers`` has the attention layers of yun2020 for grids of 2^d points, which are
    exponential in d: ``grid_base`` is the fitted base. ``interrupted``: Ctrl-C ended it early.
    """

    source: str
    labels: int
    curves: tuple[Curve, ...]
    grid_layers: dict[int, int]
    grid_base: float | None
    interrupted: bool
    seconds: dict[str, float]

    @property
    def ok(self) -> bool:
        return all(curve.ok for curve in self.curves)

    def to_json(self) -> dict[str, Any]:
        return figures(self)

    def save(self, directory: str | os.PathLike[str], *, plots: bool = True) -> list[Path]:
        """Write the figures (JSON, CSV) and the plots; returns the files."""
        from rankone.comparison.plots import draw_growth

        rows = [row for curve in self.curves for row in curve.rows]
        with made(directory) as home:
            files = [
                write_file(home / REPORT, dump(self.to_json(), indent=2)),
                write_file(home / TABLE, written_table(rows)),
            ]
            return [*files, *draw_growth(home, self)] if plots else files


def grow(
    corpus: Corpus | str | os.PathLike[str] | Iterable[Any] | None = None,
    *,
    constructions: Sequence[choices.Construction] | None = None,
    positions: bool | None = None,
    last: bool = False,
    cap: int = CAP,
    seconds: float = SECONDS,
    most: int = MOST,
    seed: int = 0,
    progress: Progress = lambda *_: None,
) -> Growth:
    """Build each construction for the first 1, 2, 4, ... sentences of a corpus.

    Without a corpus, sentences are made up: sets of 8 out of 32 words, each token with one of four
    labels at random, so that nothing can be compressed. `last` asks for the label of the last token
    of each sentence only. A curve ends after `most` sentences, with
    the first row that is not certified, or when twice the last row's time would go over `seconds`
    in all. Exponents are fitted to the curve against the number of contexts.
    """
    chosen = check_constructions(constructions)
    check_limits(cap, seconds)
    SettingError.unless(
        type(most) is int and most >= 1, "most", most, "a number of sentences from 1"
    )
    began = time.perf_counter()
    source, size, first, count = _growing(corpus, most, last, seed)
    curves, interrupted = list[Curve](), False
    try:
        for name, variant in variants(chosen):
            curves.append(
                _curve(name, variant, first, size, positions, cap, seconds, seed, progress)
            )
    except KeyboardInterrupt:
        interrupted = True
    if not interrupted and all(not curve.contexts for curve in curves):
        raise none_fits(first(1), [row for curve in curves for row in curve.rows])
    times = {curve.name: sum(row.seconds for row in curve.rows) for curve in curves}
    layers = _grid_layers() if "yun2020" in chosen else {}
    return Growth(
        source=source,
        labels=count,
        curves=tuple(curves),
        grid_layers=layers,
        grid_base=_base(layers),
        interrupted=interrupted,
        seconds={**times, "total": time.perf_counter() - began},
    )


def made_up(
    sentences: int, *, length: int = LENGTH, words: int = WORDS, labels: int = LABELS, seed: int = 0
) -> Corpus:
    """Different sets of words with random labels; the first sentences do not depend on how many
    there are."""
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, ...], list[str]] = {}
    while len(found) < sentences:
        chosen = tuple(sorted(rng.permutation(words)[:length].tolist()))
        drawn = [f"L{label}" for label in rng.integers(labels, size=length).tolist()]
        found.setdefault(chosen, drawn)
    return Corpus.from_sentences(([f"w{i}" for i in s], tags) for s, tags in found.items())


def _growing(
    corpus: Any, most: int, last: bool, seed: int
) -> tuple[str, int, Callable[[int], Corpus], int]:
    """The name of the data, how many sentences there are, the first so many, and C."""
    if corpus is None:
        return "made up", most, lambda n: asking(made_up(n, seed=seed), last), LABELS
    whole = as_corpus(corpus)
    size = min(most, whole.n_sentences)

    def first(n: int) -> Corpus:
        return asking(whole if n == whole.n_sentences else cut(whole, [n])[0], last)

    return whole.source, size, first, len(whole.label_names)


def _curve(
    name: str,
    variant: str,
    first: Callable[[int], Corpus],
    size: int,
    positions: bool | None,
    cap: int,
    seconds: float,
    seed: int,
    progress: Progress,
) -> Curve:
    rows, contexts, spent, n = list[Row](), list[int](), 0.0, 1
    end = f"all {size:,} sentences"
    while True:
        corpus = first(n)
        placed = sentences_with_repeats(corpus) > 0 if positions is None else positions
        problem = posed(corpus, placed)

        def tell(stage: str, share: float, n: int = n) -> None:
            progress(f"N = {n:,}: {stage}", share)

        row = built_row(problem, name, variant, cap, seconds - spent, seed, tell)
        spent += row.seconds
        if row.certificate is None or not row.certificate.ok:
            end = f"N = {n:,}: {row.reason}"
            rows.append(_slim(row))
            break
        rows.append(_slim(row))
        contexts.append(len(problem.contexts))
        if n == size:
            break
        n = min(2 * n, size)
        if spent + 2 * row.seconds > seconds:
            end = f"N = {n:,} would go over {seconds:g} s (--seconds)"
            break
    exponents = {what: _exponent(contexts, rows[: len(contexts)], what) for what in FITTED}
    return Curve(name, variant or None, tuple(contexts), tuple(rows), exponents, end)


def _slim(row: Row) -> Row:
    """Without the model, of which there would be many."""
    return replace(row, model=None, certificate=None)


def _exponent(contexts: Sequence[int], rows: Sequence[Row], what: str) -> float | None:
    """The slope of log(figure) against log(contexts), over the upper half of the curve."""
    pairs = [
        (log(x), log(getattr(row, what)))
        for x, row in zip(contexts, rows, strict=True)
        if getattr(row, what)
    ]
    upper = pairs[-max(FEW, ceil(len(pairs) / 2)) :]
    if len({x for x, _ in upper}) < FEW:
        return None
    x, y = np.array(upper).T
    return float(np.polyfit(x, y, deg=1)[0])


def _grid_layers() -> dict[int, int]:
    """Attention layers of yun2020 for 2^d words."""
    return {d: Shift(grid(2**d), LENGTH).depth for d in GRID_DIMENSIONS}


def _base(layers: dict[int, int]) -> float | None:
    if len(layers) < FEW:
        return None
    upper = [*layers.items()][len(layers) // 2 :]
    d, logs = np.array([(d, log2(n)) for d, n in upper]).T
    return float(2 ** np.polyfit(d, logs, deg=1)[0])
