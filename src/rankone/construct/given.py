"""A contextual mapping for given token vectors, as Theorem 2 has it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankone.construct.line import Changes, Line, changes_on_line
from rankone.construct.mapping import ContextualMapping, Floats
from rankone.construct.readout import WIDE
from rankone.construct.targets import ContextTargets
from rankone.corpus import Corpus

SPREAD = 1.0, 16.0  # largest difference of two scores: logits of order 1 to 10 separate best
SHARES = 4.0 ** -np.arange(12)  # of the line that context may take, beside the token's own place
ROUNDING = 1e-3  # output error by rounding that is accepted for the sake of fewer units


def given_line(
    corpus: Corpus,
    targets: ContextTargets,
    *,
    vectors: Floats,
    length: int,
    causal: bool,
    all_apart: bool,
    rng: np.random.Generator,
) -> Line:
    """Random directions for key, query and readout; positions as in Corollary 2, repaired.

    E_k = k (4 r_max / sqrt d) (1, ..., 1): the encoding of eq. 48 puts two tokens at different
    positions too close together where d <= 3; a step of 2 r_max + epsilon does not, and epsilon
    is at most 2 r_max. The directions lean on (1, ..., 1) just so far that all positions together
    span as much as the tokens do, else the position would drown the token. They are as long as
    the vectors are short, so the size of the vectors does not matter.

    The readout gives context only a share of the line. With a small share the contexts of one token
    stay together, so that few neighbours carry different labels and few units are needed; but
    gaps shrink with it. The smallest readout wins whose rounding error stays below `ROUNDING`; if
    all contexts must lie apart, not just those with different labels (`all_apart`), the most
    accurate one.

    The unknown word is the mean of the vectors.
    """
    dim = vectors.shape[1]
    table = np.concatenate([vectors, vectors.mean(0, keepdims=True)])
    positions, reach = None, 0.0
    if length > 1:
        step = 4 * float(np.linalg.norm(vectors, axis=1).max())
        positions = np.outer(np.arange(1, length + 1), np.full(dim, step / np.sqrt(dim)))
        reach = step * length
    v1, v2, draw = rng.standard_normal((3, dim))
    v1, v2 = (_tilt(v, vectors, reach, 1.0) for v in (v1, v2))
    mapping = ContextualMapping(table, positions, v1, v2, np.zeros(dim), v1, np.zeros(dim))
    spread = np.abs(mapping.project(corpus, v2)).max() * np.ptp(mapping.project(corpus, v1))
    wanted = np.exp(rng.uniform(*np.log(SPREAD)))
    mapping = replace(mapping, v2=v2 * (wanted / spread if spread else 1.0))
    average = mapping.averages(corpus, causal)
    size = max(float(np.std(average)), float(np.abs(average).max()) * 1e-3)

    best: tuple[bool, float, Line] | None = None
    for share in SHARES.tolist():
        direction = _tilt(draw, vectors, reach, share)
        out = int(np.abs(direction).argmax())
        own = mapping.project(corpus, direction)
        weight = share / size * float(np.std(own) or 1.0)
        ids = own + weight * average
        changes = changes_on_line(ids, targets.labels)
        error = _rounding(_all_gaps(ids, targets) if all_apart else changes)
        coarse = error > ROUNDING
        cost = error if coarse or all_apart else float(len(changes.left))
        if best is None or (coarse, cost) < best[:2]:
            write = np.eye(dim)[out] / direction[out]
            placed = replace(mapping, output=weight * write, direction=direction, write=write)
            best = coarse, cost, Line(placed, ids, changes)
    assert best is not None
    return best[-1]


def _all_gaps(ids: Floats, targets: ContextTargets) -> Changes:
    """As if every context had a label of its own."""
    seen = np.unique(targets.contexts)
    return changes_on_line(ids[seen], np.argsort(np.argsort(ids[seen])) % 2)


def _rounding(changes: Changes) -> float:
    """About how far rounding puts the output off: units bend by 1 / gap at numbers of size |s|."""
    gap = changes.right - changes.left
    if not len(gap) or gap.min() <= 0:
        return np.inf if len(gap) else 0.0
    jump = np.abs(changes.after - changes.before) / (WIDE * gap)
    size = max(np.abs(changes.left).max(), np.abs(changes.right).max())
    return float(np.finfo(float).eps * size * np.linalg.norm(jump))


def _tilt(draw: Floats, vectors: Floats, reach: float, share: float) -> Floats:
    """`draw`, tilted so that tokens have standard deviation 1 on it and positions span `share`."""
    ones = np.full(len(draw), len(draw) ** -0.5)
    across = draw - (draw @ ones) * ones if reach else draw
    spread = float(np.std(vectors @ across))
    if spread <= 1e-9 * float(np.abs(vectors).max()):  # one token, or nothing but `ones` to lean on
        return draw / float(np.abs(vectors @ draw).max() or 1.0)
    return across / spread + (share / reach * ones if reach else 0.0)
