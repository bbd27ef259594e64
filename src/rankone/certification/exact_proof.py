"""Prove the claims for a network whose weights are exact numbers, or for a later layer.

Everything is a fraction until the first softmax that is not an average; from there on, balls of
rising precision. All columns go through the network together, so a deep readout costs what its
linear pieces cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, comb, log2, log10

import numpy as np
from flint import arb, ctx

from rankone.arrays import Ints
from rankone.certification.certificate import Left, Outcome
from rankone.certification.claims import MappingClaim, Proof, RunClaim, judge_labels
from rankone.certification.float_evaluation import Readings
from rankone.certification.referee import FIRST, PER_BIT, precision
from rankone.corpus import Corpus
from rankone.corpus.contexts import visible_contexts
from rankone.deadline import TimeIsUpError, tick, time_left
from rankone.nn import TokenClassifier
from rankone.nn.exact import ExactNetwork
from rankone.nn.exact.evaluate import Evaluation, Sentence, evaluate
from rankone.nn.exact.floats import from_float
from rankone.nn.exact.model import winner
from rankone.nn.exact.network import Row, dot
from rankone.nn.exact.numbers import ONE, ZERO, Vector, ball, exact
from rankone.progress import Progress

DIRECTIONS = 4  # on which distances of context ids are measured, besides the axes


@dataclass(frozen=True)
class Tokens:
    """The different sentences of a corpus, and where each token is in them."""

    sentences: list[Sentence]
    home: Ints  # number of the token's sentence among those
    place: Ints

    @classmethod
    def of(cls, corpus: Corpus, rows: Ints) -> Tokens:
        names: dict[Sentence, int] = {}
        homes = []
        for a, b in zip(corpus.offsets[:-1].tolist(), corpus.offsets[1:].tolist(), strict=True):
            homes.append(names.setdefault(tuple(rows[a:b].tolist()), len(names)))
        home = np.repeat(np.array(homes, dtype=np.int64), corpus.lengths)
        return cls(list(names), home, corpus.positions)

    def columns(self, found: Evaluation) -> Ints:
        """The column of every token."""
        places = zip(self.home.tolist(), self.place.tolist(), strict=True)
        return np.array([found.where[j][k] for j, k in places], dtype=np.int64)


def prove_exactly(
    network: ExactNetwork, corpus: Corpus, rows: Ints, gold: Ints, cap: int, progress: Progress
) -> Proof:
    """Judge the claims; the time limit is the caller's."""
    clock = time.perf_counter()
    tokens, layer = Tokens.of(corpus, rows), _layer(network)
    depth = sum(block.attention is not None for block in network.blocks)
    given = {"positions": network.positions is not None, "causal": network.causal}
    contexts = visible_contexts(corpus, **given, depth=max(1, depth))
    labelled = any(network.head.rows) or any(network.bias)
    readings = Readings.room(len(rows))
    readings.run_labels[:] = 0
    mapping = MappingClaim(Outcome.UNDECIDED, arb("inf"), layer=layer)
    used, late = 0, False
    try:
        for _ in _rising(cap, network):
            used = ctx.prec
            found = evaluate(network, tokens.sentences, _told(progress))
            columns = tokens.columns(found)
            readings = _readings(found, columns, gold, labelled)
            mapping = _mapping(found, columns, contexts, layer)
            if readings.sure.all() and mapping.outcome is not Outcome.UNDECIDED:
                break
            if not _has_balls(found):
                break
    except TimeIsUpError:
        late = True
    if mapping.outcome is Outcome.UNDECIDED:
        first = np.flatnonzero(contexts == np.arange(len(contexts))).tolist()
        mapping = replace(mapping, left=comb(len(first), 2), open=frozenset(first), late=late)
    labels = judge_labels(readings, gold, contexts, labelled)
    sure = readings.sure
    undecided = mapping.open | set(np.flatnonzero(~sure).tolist())
    count = int((~sure).sum())
    sentences = len(np.unique(corpus.sentence_of[~sure])) if count else 0
    seconds = time.perf_counter() - clock
    return Proof(
        mapping,
        labels,
        RunClaim(None, 0.0),
        contexts=int((contexts == np.arange(len(contexts))).sum()),
        left=Left(count, sentences, mapping.left, time=late) if undecided else None,
        decided={
            "float": 0,
            "exact": len(rows) - len(undecided),
            "undecided": len(undecided),
        },
        digits=ceil(used * log10(2)),
        seconds={"float": 0.0, "exact": seconds, "total": seconds},
    )


def judge_later(
    claim: MappingClaim,
    network: TokenClassifier,
    corpus: Corpus,
    rows: Ints,
    contexts: Ints,
    cap: int,
    progress: Progress,
) -> MappingClaim:
    """What the last layer that attends tells apart, where that is not the first."""
    if network.shape.depth == 1:
        return claim
    whole = from_float(network)
    tokens, layer = Tokens.of(corpus, rows), _layer(whole)
    if layer == 1:
        return claim
    try:
        for _ in _rising(cap, whole):
            found = evaluate(whole, tokens.sentences, _told(progress))
            columns = tokens.columns(found)
            later = _mapping(found, columns, contexts, layer)
            if later.outcome is not Outcome.UNDECIDED or not _has_balls(found):
                return later if later.outcome is Outcome.CERTIFIED else claim
    except TimeIsUpError:
        pass
    return claim


def _layer(network: ExactNetwork) -> int:
    """The number of the last block that attends, from 1."""
    attending = [i for i, block in enumerate(network.blocks, 1) if block.attention is not None]
    return attending[-1] if attending else 1


def _rising(cap: int, network: ExactNetwork) -> Iterator[None]:
    """Twice the precision each time, from that of the weights on where the cap allows."""
    most = ceil(cap * log2(10))
    precise = min(most, max(FIRST, 64 + _longest(network)))
    while True:
        if precise * PER_BIT > time_left():
            raise TimeIsUpError
        with precision(precise):
            yield
        if precise >= most:
            return
        precise = min(most, 2 * precise)


def _longest(network: ExactNetwork) -> int:
    """The bits of the longest numerator among the weights."""
    numbers = (int(x.p).bit_length() for layer in network.layers for x in layer.numbers)
    return max(numbers, default=0)


def _told(progress: Progress) -> Callable[[float], None]:
    return lambda share: progress(f"exact, {ctx.prec:,} bits", share)


def _has_balls(found: Evaluation) -> bool:
    vectors = (*found.ids, *found.logits)
    return any(isinstance(x, arb) for vector in vectors for x in vector)


def _readings(found: Evaluation, columns: Ints, gold: Ints, labelled: bool) -> Readings:
    """Labels with their margins: 1/2, or half the lead of the logit if that is less."""
    readings = Readings.room(len(gold))
    labels = np.zeros(len(found.logits), np.int32)
    sure = np.ones(len(found.logits), np.bool_)
    margins: list[arb] = []
    for i, logits in enumerate(found.logits):
        label = winner(logits) if labelled else 0
        sure[i], labels[i] = label is not None, label or 0
        margins.append(_margin(logits, label) if labelled and label is not None else arb(0.5))
    readings.labels[:] = readings.run_labels[:] = labels[columns]
    readings.off[:] = np.where(sure[columns], 0.0, np.nan)
    readings.leave(np.flatnonzero(gold < 0))
    for token in np.flatnonzero((gold >= 0) & sure[columns]).tolist():
        margin = margins[columns[token]]
        if margin < readings.margin:
            readings.margin, readings.worst = margin, token
    return readings


def _margin(logits: Vector, label: int) -> arb:
    """Lower bounds are compared, not balls: of balls that overlap neither is known as the least."""
    behind = (logits[label] - logit for c, logit in enumerate(logits) if c != label)
    lead = min([arb(1), *(ball(x).lower() for x in behind)])
    return (lead / 2).lower()


def _mapping(found: Evaluation, columns: Ints, contexts: Ints, layer: int) -> MappingClaim:
    """Distances of all contexts that must differ."""
    first = np.flatnonzero(contexts == np.arange(len(contexts))).tolist()
    sizes = [_size(found.ids[column]) for column in {*columns.tolist()}]
    r = max(sizes) if all(size.is_finite() for size in sizes) else arb("inf")
    owner: dict[object, int] = {}
    points = []
    for token in first:
        column = int(columns[token])
        point = found.ids[column]
        known = any(isinstance(x, arb) for x in point)
        name: object = column if known else tuple(point)
        if name in owner:
            pair = owner[name], token
            return MappingClaim(Outcome.REFUTED, r, pair=pair, layer=layer)
        owner[name] = token
        points.append((point, token))
    if len(points) == 1:
        return MappingClaim(Outcome.CERTIFIED, r, arb("inf"), layer=layer)
    if not r.is_finite():
        return MappingClaim(Outcome.UNDECIDED, r, layer=layer)
    best: tuple[arb, tuple[int, int]] | None = None
    for direction in _directions(len(found.seen)):
        gap = _gap(points, direction)
        if gap is not None and (best is None or gap[0] > best[0]):
            best = gap
    if best is None:
        return MappingClaim(Outcome.UNDECIDED, r, layer=layer)
    return MappingClaim(Outcome.CERTIFIED, r, best[0], best[1], layer=layer)


def _directions(dim: int) -> Iterator[Row]:
    """The axes, and some directions that are no axis."""
    rng = np.random.default_rng(0)
    for c in range(dim):
        yield ((c, ONE),)
    for _ in range(DIRECTIONS if dim > 1 else 0):
        yield tuple((c, exact(x)) for c, x in enumerate(rng.integers(1, 1 << 62, dim).tolist()))


def _gap(
    points: Sequence[tuple[Vector, int]], direction: Row
) -> tuple[arb, tuple[int, int]] | None:
    """The least distance along a direction, and its pair; None if some are not surely apart."""
    tick()
    line = [(dot(direction, point), token) for point, token in points]
    if any(isinstance(s, arb) and not s.is_finite() for s, _ in line):
        return None
    line.sort(key=lambda item: item[0].mid() if isinstance(item[0], arb) else item[0])
    least: arb | None = None
    pair = (0, 0)
    for (a, i), (b, j) in pairwise(line):
        gap = b - a
        if not gap > 0:
            return None
        lower = ball(gap).lower()  # of balls that overlap, neither is known as the least
        if least is None or lower < least:
            least, pair = lower, (i, j)
    assert least is not None
    length = ball(sum((g * g for _, g in direction), ZERO)).sqrt()
    return (least / length).lower(), pair


def _size(vector: Vector) -> arb:
    """An upper bound on the norm."""
    return ball(sum((x * x for x in vector), ZERO)).sqrt().upper()
