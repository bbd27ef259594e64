"""A contextual mapping for given token vectors, as Theorem 2 has it."""

from __future__ import annotations

from functools import partial

import numpy as np

from rankone.construct.changes import Changes, changes_on_line
from rankone.construct.mapping import ContextualMapping, Floats
from rankone.construct.readout import RAMP, Kind
from rankone.construct.targets import ContextTargets
from rankone.corpus import Corpus
from rankone.kernels import rank1_attention_ragged

SPREAD = 16.0  # largest difference of two scores: logits of order 1 to 10 separate best
SHARES = 4.0 ** -np.arange(12)  # of the line that context may take, beside the token's own place
ROUNDING = 1e-3  # output error by rounding that is accepted for the sake of fewer units


def given_mapping(
    corpus: Corpus,
    targets: ContextTargets,
    vectors: Floats,
    *,
    length: int,
    causal: bool,
    kind: Kind,
    rng: np.random.Generator,
) -> ContextualMapping:
    """Random directions for key, query and readout; positions as in Corollary 2, repaired.

    E_k = k (4 r_max / sqrt d) (1, ..., 1): the encoding of eq. 48 puts two tokens at different
    positions too close together where d <= 3; a step of 2 r_max + epsilon does not, and epsilon
    is at most 2 r_max. The directions lean on (1, ..., 1) just so far that all positions together
    span as much as the tokens do, else the position would drown the token.

    The readout gives context only a share of the line. With a small share the contexts of one token
    stay together, so that few neighbours carry different labels and few units are needed; but
    gaps shrink with it. The smallest readout wins whose rounding error stays below `ROUNDING`.

    The unknown word is the mean of the vectors.
    """
    dim = vectors.shape[1]
    table = np.concatenate([vectors, vectors.mean(0, keepdims=True)])
    positions, reach = None, 0.0
    if length > 1:
        step = 4 * float(np.linalg.norm(vectors, axis=1).max())
        positions = np.outer(np.arange(1, length + 1), np.full(dim, step / np.sqrt(dim)))
        reach = step * length
    v1, v2 = (_direction(vectors, reach, 1.0, rng.standard_normal(dim)) for _ in range(2))
    project = partial(_project, corpus, table, positions)
    key, query = project(v1), project(v2)
    spread = float(np.abs(query).max() * np.ptp(key))
    v2, query = (v * (SPREAD / spread if spread else 1.0) for v in (v2, query))
    average = rank1_attention_ragged(query, key, key, corpus.offsets, causal=causal)
    size = max(float(np.std(average)), float(np.abs(average).max()) * 1e-3)

    draw, tried = rng.standard_normal(dim), []
    for share in SHARES.tolist():
        direction = _direction(vectors, reach, share, draw)
        out = int(np.abs(direction).argmax())
        direction /= direction[out]
        weight = share / size * float(np.std(project(direction)) or 1.0)
        changes = _changes(project(direction) + weight * average, targets, kind)
        error = _rounding(changes)
        mapping = ContextualMapping(
            table, positions, v1, v2, weight * np.eye(dim)[out], direction, out
        )
        by_error = error > ROUNDING or kind == "paper"  # then units cannot be saved
        tried.append((error > ROUNDING, error if by_error else len(changes.left), len(tried), mapping))
    return min(tried)[-1]


def _changes(ids: Floats, targets: ContextTargets, kind: Kind) -> Changes:
    """The gaps the readout must bridge: between labels, or between all contexts."""
    if kind == "merged":
        return changes_on_line(ids, targets.labels)
    seen = np.unique(targets.contexts)
    return changes_on_line(ids[seen], np.argsort(np.argsort(ids[seen])) % 2)


def _rounding(changes: Changes) -> float:
    """About how far rounding puts the output off: units bend by 1 / gap at numbers of size |s|."""
    gap = changes.right - changes.left
    if not len(gap) or gap.min() <= 0:
        return np.inf if len(gap) else 0.0
    jump = np.abs(changes.after - changes.before) / (RAMP * gap)
    size = max(np.abs(changes.left).max(), np.abs(changes.right).max())
    return float(np.finfo(float).eps * size * np.linalg.norm(jump))


def _direction(vectors: Floats, reach: float, share: float, draw: Floats) -> Floats:
    """`draw`, tilted so that tokens have standard deviation 1 on it and positions span `share`."""
    ones = np.full(len(draw), len(draw) ** -0.5)
    across = draw - (draw @ ones) * ones if reach else draw
    along = vectors @ across
    spread = float(np.std(along))
    if spread <= 1e-9 * float(np.abs(vectors).max()):  # one token, or nothing but `ones` to lean on
        return draw / float(np.abs(vectors @ draw).max() or 1.0)
    return across / spread + (share / reach * ones if reach else 0.0)


def _project(
    corpus: Corpus, table: Floats, positions: Floats | None, direction: Floats
) -> Floats:
    """direction^T (X + E) for every token of the corpus."""
    values = (table @ direction)[corpus.token_ids]
    if positions is not None:
        values += (positions @ direction)[corpus.positions]
    return values
