"""Evaluate every token in float64, with error bounds: context ids, labels and the float64 run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, isnan

import numpy as np
from flint import arb
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.certification.any_order import AnyOrder
from rankone.certification.context_ids import ContextIds
from rankone.certification.entropy import Losses
from rankone.certification.float_balls import Chunk, FloatBalls
from rankone.certification.gated_balls import GatedBalls, GatedChunk
from rankone.certification.gathered import Gathered
from rankone.certification.label_heads import Head, MixedHead, head_of
from rankone.certification.leads import Decoded, narrowed
from rankone.deadline import TimeIsUpError, tick
from rankone.nn import Evaluator, TokenClassifier
from rankone.nn.evaluate import Numbers
from rankone.progress import Progress
from rankone.spans import SPAN

PIECE = 1 << 12  # tokens evaluated at once, unless the network is a constructed one


@dataclass
class Readings:
    """The label of every token, in balls and in the network's own run (in the type of its weights).

    ``labels`` and ``off`` are those of `Decoded`, ``run_labels`` the labels of that run. The
    referee fills in what is open. For tokens that were not reached in time ``run_labels`` is -1 and
    ``off`` is NaN. ``distance`` bounds how far the run's values are from the exact ones, except for
    undecided tokens; ``run_values`` has the run's values of the tokens that balls leave undecided.
    ``margin`` is the smallest margin among those that the referee decided, which may be smaller
    than any float, and ``worst`` the token that has it. ``loss`` is an upper bound on the sum of
    -log p of the labels that are asked.
    """

    labels: NDArray[np.int32]
    off: Floats
    run_labels: NDArray[np.int32]
    distance: float = 0.0
    run_values: dict[int, Numbers] = field(default_factory=dict)
    margin: arb = field(default_factory=lambda: arb(0.5))
    worst: int = -1
    loss: float = inf

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
    balls: FloatBalls | GatedBalls | None = None,
    order: AnyOrder | None = None,
    losses: tuple[Ints, Ints] | None = None,
) -> tuple[ContextIds | None, Readings]:
    """The context id of every context, and the label of every token, for the head of these balls
    (`head_for`).

    Balls and the network's own run go through the corpus together, so that only figures are kept;
    `order` sees each piece too, and `losses` are the contexts and labels whose losses are wanted.
    If the time limit is hit first, there are no context ids, and readings only up to that point.
    """
    balls = balls or GatedBalls.of(network) or FloatBalls(network)
    only = balls.out if isinstance(balls, GatedBalls) else None
    tokens = np.flatnonzero(contexts == np.arange(len(contexts)))
    gathered = Gathered(network.shape, balls, rows, offsets, tokens)
    lost = None
    if losses is not None and isinstance(head, MixedHead):
        lost = Losses(head, *losses)
    evaluator = Evaluator(network, only=only)
    readings = follow(gathered, evaluator, head, size_for(network), progress, order, lost)
    if not readings.reached.all():
        return None, readings
    if lost is not None:
        readings.loss = lost.total()
    return gathered.ids(network), readings


def follow(
    gathered: Gathered,
    evaluator: Evaluator,
    head: Head,
    size: int,
    progress: Progress,
    order: AnyOrder | None = None,
    lost: Losses | None = None,
) -> Readings:
    """Go through the tokens that are gathered, about `size` at a time, until the time limit."""
    balls, rows, offsets = gathered.balls, gathered.rows, gathered.offsets
    readings = Readings.room(len(rows))
    for chunk, z in _side_by_side(balls, evaluator, rows, offsets, size, progress):
        gathered.add(chunk)
        exact = head.decode(chunk.features)
        if order is not None and isinstance(chunk, GatedChunk):
            order.see(chunk, exact.labels, exact.off)
        if lost is not None:
            lost.see(chunk.first, chunk.features)
        readings.add(chunk.first, exact, *head.run(z))
    return readings


def size_for(network: TokenClassifier) -> int:
    """How many tokens balls hold at once."""
    constructed = network.shape.depth == 1 and network.shape.feedforward in ("rank1", "gated")
    return SPAN if constructed else PIECE


class Columns:
    """Columns that come in blocks, as many at a time as are asked for."""

    def __init__(self, blocks: Iterator[Numbers]) -> None:
        self.blocks, self.left = blocks, next(blocks)

    def take(self, count: int) -> Numbers:
        parts = [self.left[:, :count]]
        self.left = self.left[:, count:]
        while (missing := count - sum(part.shape[1] for part in parts)) > 0:
            block = next(self.blocks)
            parts.append(block[:, :missing])
            self.left = block[:, missing:]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def head_for(network: TokenClassifier, balls: FloatBalls | GatedBalls | None) -> Head:
    """The head, for the coordinates of features that these balls give."""
    if isinstance(balls, GatedBalls):
        return head_of(narrowed(network.head, balls.out))
    return head_of(network.head)


def _side_by_side(
    balls: FloatBalls | GatedBalls,
    evaluator: Evaluator,
    rows: Ints,
    offsets: Ints,
    size: int,
    progress: Progress,
) -> Iterator[tuple[Chunk | GatedChunk, Numbers]]:
    """Balls and the features of the network's own run, piece by piece, until the time limit.

    The run uses the chunks of `Evaluator`, as in prediction; balls use their own.
    """
    try:
        tick()
        features = Columns(evaluator.features(rows, offsets))
        for chunk in balls.run(rows, offsets, size):
            progress("float64", chunk.last / len(rows))
            yield chunk, features.take(chunk.last - chunk.first)
            tick()
    except TimeIsUpError:
        return
