"""Gather the context ids of a corpus, piece by piece: what is kept of them."""

from __future__ import annotations

from math import frexp, inf

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.certification.ball_arithmetic import Balls, linear
from rankone.certification.context_ids import ContextIds, outline
from rankone.certification.float_balls import Chunk, FloatBalls
from rankone.certification.gated_balls import GatedBalls, GatedChunk
from rankone.certification.told_apart import least_distance
from rankone.nn import Architecture, TokenClassifier
from rankone.spans import places


class Gathered:
    """The context ids of `tokens`, in order.

    Of a network with gates all that attention adds is kept: a few numbers per context. Of another
    one, figures that are likely to be needed; the rest is computed again where it is.
    """

    def __init__(
        self,
        shape: Architecture,
        balls: FloatBalls | GatedBalls,
        rows: Ints,
        offsets: Ints,
        tokens: Ints,
        direction: Floats | None = None,
    ) -> None:
        """Without a direction, it is chosen from what comes first (`main_direction`)."""
        self.shape, self.balls = shape, balls
        self.rows, self.offsets, self.tokens = rows, offsets, tokens
        count, dim = len(tokens), shape.dim
        self.written = balls.written if isinstance(balls, GatedBalls) else np.arange(dim)
        self.direction, self.done = direction, 0
        self.along = Balls(np.empty(count), np.empty(count))
        self.size, self.place = np.empty(count), np.empty(count, np.int64)
        self.positions = max(1, shape.positions)
        few = isinstance(balls, GatedBalls)
        self.shade, self.reach = np.empty((2, 0 if few else count))
        self.windows = isinstance(balls, GatedBalls) and balls.windows is not None
        self.kept = Balls(*np.empty((2, len(self.written), count if few else 0)))
        if self.windows:  # where radii hardly differ, the largest does for all
            self.kept = Balls(self.kept.mid, np.zeros((len(self.written), 1)))

    def add(self, chunk: Chunk | GatedChunk) -> None:
        if self.direction is None:
            self.direction = main_direction(chunk.moved.mid, self.written, self.shape.dim)
        own = self.tokens[self.done : np.searchsorted(self.tokens, chunk.last)] - chunk.first
        part = slice(self.done, self.done + len(own))
        moved, where = chunk.moved[:, own], chunk.positions[own]
        words = self.rows[chunk.first + own]
        self.along[part] = linear(self.direction[self.written], moved)
        if isinstance(chunk, GatedChunk):
            assert isinstance(self.balls, GatedBalls)
            self.kept.mid[:, part] = moved.mid
            if self.windows:
                widest = moved.rad.max(1, keepdims=True, initial=0.0)
                np.maximum(self.kept.rad, widest, out=self.kept.rad)
            else:
                self.kept.rad[:, part] = moved.rad
            self.size[part] = self.balls.sizes(words, where, moved)
        else:
            self.shade[part], self.reach[part], self.size[part] = outline(chunk.q[:, own])
        # word and position, if there are positions, determine X + E
        self.place[part] = words * self.positions
        if self.shape.positions:
            self.place[part] += where
        self.done += len(own)

    def ids(self, network: TokenClassifier) -> ContextIds:
        few = isinstance(self.balls, GatedBalls)
        assert self.direction is not None
        return ContextIds(
            self.tokens,
            self.place,
            self.direction,
            self.along,
            None if few else self.shade,
            None if few else self.reach,
            self.size,
            self.locate,
            is_straight(network),
            self.written if few else None,
            self.all_kept() if few else None,
            least_distance(network, *np.divmod(self.place, self.positions)),
        )

    def all_kept(self) -> Balls:
        return Balls(self.kept.mid, np.broadcast_to(self.kept.rad, self.kept.mid.shape))

    def locate(self, at: Ints) -> tuple[Balls, Balls]:
        """What attention adds to contexts number `at`, and their context ids."""
        if isinstance(self.balls, GatedBalls):
            words, where = np.divmod(self.place[at], self.positions)
            return self.balls.located(words, where, self.all_kept()[:, at])
        return _points(self.balls, self.rows, self.offsets, self.tokens[at])


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


def is_straight(network: TokenClassifier) -> bool:
    """Whether attention moves all tokens along one line."""
    heads = network.blocks[0].attention.heads
    return len(heads) == 1 and heads[0].output.shape[1] == 1


def main_direction(moved: Floats, written: Ints, dim: int) -> Floats:
    """Roughly the direction in which attention moves tokens apart most; never 0."""
    direction = np.zeros(dim)
    direction[written] = widest_difference(moved)
    return direction


def widest_difference(moved: Floats) -> Floats:
    widest = int(np.ptp(moved, axis=1).argmax())
    found = moved[:, moved[widest].argmax()] - moved[:, moved[widest].argmin()]
    largest = float(np.abs(found).max())
    if 0 < largest < inf:  # scaled so that products with it do not overflow
        return np.asarray(found / 2.0 ** frexp(largest)[1])
    return np.random.default_rng(1).normal(size=len(moved))
