"""Evaluate every token in float64, with error bounds: context ids, labels and the float64 run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import frexp, inf, isnan

import numpy as np
from flint import arb
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.certification.ball_arithmetic import Balls, linear
from rankone.certification.context_ids import ContextIds, outline
from rankone.certification.float_balls import Chunk, FloatBalls
from rankone.certification.label_heads import Decoded, Head
from rankone.deadline import TimeIsUpError, tick
from rankone.nn import Evaluator, TokenClassifier
from rankone.nn.evaluate import Numbers
from rankone.progress import Progress
from rankone.spans import SPAN, places, spans

PIECE = 1 << 12  # tokens evaluated at once, unless the network is a constructed one


@dataclass
class Readings:
    """The label of every token, in balls and in the network's own run (in the type of its weights).

    ``labels`` and ``off`` are those of `Decoded`, ``run_labels`` the labels of that run. The
    referee fills in what is open. For tokens that were not reached in time ``run_labels`` is -1 and
    ``off`` is NaN. ``distance`` bounds how far the run's values are from the exact ones, except for
    undecided tokens; ``run_values`` has the run's values of the tokens that balls leave undecided.
    ``margin`` is the smallest margin among those that the referee decided, which may be smaller
    than any float, and ``worst`` the token that has it.
    """

    labels: NDArray[np.int32]
    off: Floats
    run_labels: NDArray[np.int32]
    distance: float = 0.0
    run_values: dict[int, Numbers] = field(default_factory=dict)
    margin: arb = field(default_factory=lambda: arb(0.5))
    worst: int = -1

    @classmethod
    def room(cls, tokens: int) -> Readings:
        nowhere = np.full(tokens, -1, np.int32)
        return cls(nowhere, np.full(tokens, np.nan), nowhere.copy())

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Which tokens were evaluated at all."""
        return np.asarray(self.run_labels != -1)

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Which tokens have a label that is proved."""
        return np.asarray(self.off < 0.5)

    def leave(self, tokens: Ints) -> None:
        """Nothing is asked of these tokens: whatever label they get is right, and the run's too."""
        self.labels[tokens] = self.run_labels[tokens] = 0
        self.off[tokens] = 0.0
        for token in self.run_values.keys() & set(tokens.tolist()):
            del self.run_values[token]

    def add(self, first: int, exact: Decoded, values: Numbers, labels: Ints) -> None:
        """Enter the tokens from number `first` on."""
        part = slice(first, first + len(labels))
        self.labels[part], self.off[part], self.run_labels[part] = exact.labels, exact.off, labels
        decided = exact.off < 0.5
        with np.errstate(invalid="ignore"):
            distance = np.abs(values - exact.values.mid) * (1 + 2.0**-50) + exact.values.rad
        largest = float(distance[:, decided].max(initial=0.0))
        self.distance = max(self.distance, inf if isnan(largest) else largest)
        for i in np.flatnonzero(~decided).tolist():
            self.run_values[first + i] = values[:, i]


def evaluate(
    network: TokenClassifier,
    rows: Ints,
    offsets: Ints,
    contexts: Ints,
    head: Head,
    progress: Progress,
) -> tuple[ContextIds | None, Readings]:
    """The context id of every context, and the label of every token.

    Balls and the network's own run go through the corpus together, so that only figures are kept.
    If the time limit is hit first, there are no context ids, and readings only up to that point.
    """
    balls, tokens = FloatBalls(network), np.flatnonzero(contexts == np.arange(len(contexts)))
    along = Balls(np.empty(len(tokens)), np.empty(len(tokens)))
    shade, reach, size = np.empty((3, len(tokens)))
    place, positions = np.empty(len(tokens), np.int64), max(1, network.shape.positions)
    readings = Readings.room(len(rows))
    direction: Floats | None = None
    done = 0
    for chunk, z in _side_by_side(balls, network, rows, offsets, progress):
        if direction is None:
            direction = main_direction(chunk.moved.mid)
        own = tokens[done : np.searchsorted(tokens, chunk.last)] - chunk.first
        part = slice(done, done + len(own))
        along[part] = linear(direction, chunk.moved[:, own])
        shade[part], reach[part], size[part] = outline(chunk.q[:, own])
        # word and position, if there are positions, determine X + E
        place[part] = rows[chunk.first + own] * positions
        if network.positions is not None:
            place[part] += chunk.positions[own]
        readings.add(chunk.first, head.decode(chunk.features), *head.run(z))
        done += len(own)
    if direction is None or not readings.reached.all():
        return None, readings

    def locate(at: Ints) -> tuple[Balls, Balls]:
        return _points(balls, rows, offsets, tokens[at])

    heads = network.blocks[0].attention.heads
    straight = len(heads) == 1 and heads[0].output.shape[1] == 1
    ids = ContextIds(tokens, place, direction, along, shade, reach, size, locate, straight)
    return ids, readings


def _side_by_side(
    balls: FloatBalls, network: TokenClassifier, rows: Ints, offsets: Ints, progress: Progress
) -> Iterator[tuple[Chunk, Numbers]]:
    """Balls and the features of the network's own run, piece by piece, until the time limit.

    The run uses the chunks of `Evaluator`, as in prediction; balls use smaller ones where they are
    slow.
    """
    constructed = network.shape.depth == 1 and network.shape.feedforward in ("rank1", "gated")
    size = SPAN if constructed else PIECE
    try:
        tick()
        for (a, b), z in zip(
            spans(offsets), Evaluator(network).features(rows, offsets), strict=True
        ):
            start = int(offsets[a])
            for chunk in balls.run(rows, offsets[a : b + 1], size):
                progress("float64", chunk.last / len(rows))
                yield chunk, z[:, chunk.first - start : chunk.last - start]
                tick()
    except TimeIsUpError:
        return


def _points(balls: FloatBalls, rows: Ints, offsets: Ints, tokens: Ints) -> tuple[Balls, Balls]:
    """What attention adds to some tokens, and their context ids, from whole sentences."""
    sentences, back = np.unique(
        np.searchsorted(offsets, tokens, side="right") - 1, return_inverse=True
    )
    lengths = np.diff(offsets)[sentences]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    inner = places(starts)
    moved, q = balls.context_ids(rows[np.repeat(offsets[sentences], lengths) + inner], starts)
    at = starts[back] + tokens - offsets[sentences[back]]
    return moved[:, at], q[:, at]


def main_direction(moved: Floats) -> Floats:
    """Roughly the direction in which attention moves tokens apart most; never 0."""
    widest = int(np.ptp(moved, axis=1).argmax())
    found = moved[:, moved[widest].argmax()] - moved[:, moved[widest].argmin()]
    largest = float(np.abs(found).max())
    if 0 < largest < inf:  # scaled so that products with it do not overflow
        return np.asarray(found / 2.0 ** frexp(largest)[1])
    return np.random.default_rng(1).normal(size=len(moved))
