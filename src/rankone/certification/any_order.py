"""Is every run in the weights' own type right, in whatever order it adds? For networks with gates.

With u the unit of rounding, a sum of m terms in any order is off by at most gamma_(m-1) times the
sum of their sizes. Keys and values are multiples of 2^-20 and small, and the query is a power of
two, so X + E, scores and their differences are exact. Let p be the softmax weights of n tokens. An
exponential within 2 units in the last place is off by the share 4u, which moves the average a by at
most 4u sum p |v - a|; the sum of the exponentials, the quotients, the products and the sum of these
are off by the share gamma_(2n+2) at most, whichever is divided first: in all (2n + 12) u sum p |v|.

The gates of a token's own group add exact zeros, and so do all coordinates that a unit does not
read. Outside its group a unit is off by less than what its penalty has to spare.
"""

from __future__ import annotations

from math import log2

import numpy as np
import torch

from rankone.arrays import Floats, Ints
from rankone.certification.attention_balls import array
from rankone.kernels import rank1_attention_ragged
from rankone.nn import TokenClassifier
from rankone.nn.evaluate import rank1_heads
from rankone.nn.gated import GatedFeedForward
from rankone.nn.gatekeeper import Gatekeeper, gated_layer_of, reach_of
from rankone.spans import places, spans

ARITHMETIC = (
    "sums in any order; every operation correctly rounded, a product and a sum perhaps in one; exp "
    "within 2 units in the last place, of scores as they are or less the largest; numbers below "
    "the normal range may become 0"
)
GRID, SMALL = 2.0**20, 8.0  # multiples of 1 / GRID below SMALL: sums and differences are exact
SPARE = 1.01  # for the rounding of these bounds themselves
TINY = 1e-30  # what may become 0, many times over


def right_in_any_order(
    network: TokenClassifier, rows: Ints, offsets: Ints, labels: Ints, gold: Ints
) -> bool | None:
    """Whether it is proved that all tokens with gold labels get these labels; None if the network
    is not of the kind for which this can be tried."""
    keeper, layer = Gatekeeper.of(network), gated_layer_of(network)
    if keeper is None or layer is None:
        return None
    heads = rank1_heads(network.blocks[0].attention)
    if heads is None:
        return None
    u = torch.finfo(network.dtype).eps / 2
    table, dim = array(network.table), network.shape.dim
    positions = np.zeros((1, dim)) if network.positions is None else array(network.positions)
    reads, writes = layer.reads.numpy(), layer.writes.numpy()
    columns = []
    for head in heads:
        key, query, value, output = (
            _single(x) for x in (head.key, head.query, head.value, head.output)
        )
        if key is None or query is None or value is None or output is None:
            return None
        at, scale = query
        asked = table[:, at] * scale
        steady = (asked == asked[0]).all() and not positions[:, at].any() and asked[0] > 0
        exact = all(_on_grid(x[:, i], w) for i, w in (key, value) for x in (table, positions))
        if not (steady and exact and log2(asked[0]).is_integer() and asked[0] <= 1.0 * SMALL):
            return None
        if output[1] != 1.0 or table[:, output[0]].any() or positions[:, output[0]].any():
            return None
        columns.append((key, value, output[0], float(asked[0])))
    written = [at for *_, at, _ in columns]
    silent = array(layer.penalty) * (1 - 4 * u * (dim + 8) ** 2)
    if sorted(written) != sorted(reads.tolist()) or len(set(written)) < len(written):
        return None
    if not (silent > reach_of(network, layer, table, positions)).all():
        return None

    weight, bias = array(network.head.weight), array(network.head.bias)
    if weight[:, np.setdiff1d(np.arange(dim), writes)].any():
        return None
    units = _Units(layer, len(columns), u)
    sure = True
    for first, last in spans(offsets):
        a, b = int(offsets[first]), int(offsets[last])
        ids, starts = rows[a:b], offsets[first : last + 1] - a
        spots = places(starts) if network.positions is not None else np.zeros(b - a, np.int64)
        n = spots + 1 if network.shape.causal else np.repeat(np.diff(starts), np.diff(starts))
        mid, off = np.empty((2, len(reads), b - a))
        for key, value, at, y in columns:
            k, v = (w * (table[ids, i] + positions[spots, i]) for i, w in (key, value))
            y_column = np.full(b - a, y)
            i = int(np.flatnonzero(reads == at)[0])
            causal = network.shape.causal
            mid[i] = rank1_attention_ragged(y_column, k, v, starts, causal=causal)
            size = rank1_attention_ragged(y_column, k, np.abs(v), starts, causal=causal)
            off[i] = SPARE * u * (2 * n + 12) * size + TINY
        base = table[np.ix_(ids, writes)] + positions[np.ix_(spots, writes)]
        out, slip = units.add(keeper, ids, spots, mid, off, base.T)
        sure = sure and _lead(weight[:, writes], bias, out, slip, u, labels[a:b], gold[a:b])
    return sure


class _Units:
    """What the units of a token's group add, and how far that may be off."""

    def __init__(self, layer: GatedFeedForward, heads: int, u: float) -> None:
        self.slopes, self.bias, self.amplitude = map(
            array, (layer.slopes, layer.bias1, layer.amplitude)
        )
        codes = array(layer.codes)
        self.o = codes[layer.plus.numpy()] - codes[layer.minus.numpy()]
        self.gates, self.heads, self.u = len(layer.gates), heads, u

    def add(
        self, keeper: Gatekeeper, ids: Ints, spots: Ints, mid: Floats, off: Floats, base: Floats
    ) -> tuple[Floats, Floats]:
        token, unit = keeper.reached(ids, spots, self.gates)
        steep, u = self.slopes[unit].T, self.u
        a, rad = mid[:, token], off[:, token]
        z = (steep * a).sum(0) + self.bias[unit]
        sizes = (np.abs(steep) * (np.abs(a) + rad)).sum(0) + np.abs(self.bias[unit])
        slip = (np.abs(steep) * rad).sum(0) + SPARE * u * (self.heads + 2) * sizes + TINY
        active, tokens = np.maximum(z, 0.0), len(ids)
        reached = np.where(z + slip > 0, active + slip, 0.0)
        slip = np.where(z + slip > 0, slip, 0.0)
        terms = np.bincount(token, reached > 0, tokens)
        out, most = base.copy(), np.abs(base)
        away = np.zeros_like(base)
        for i in range(len(base)):
            share = self.amplitude[unit] * self.o[unit, i]
            out[i] += np.bincount(token, share * active, tokens)
            away[i] = np.bincount(token, np.abs(share) * slip, tokens)
            most[i] += np.bincount(token, np.abs(share) * reached, tokens)
        return out, SPARE * (away + u * (terms + 5) * most)


def _lead(
    weight: Floats, bias: Floats, out: Floats, slip: Floats, u: float, labels: Ints, gold: Ints
) -> bool:
    """Whether every token's label leads all others, by more than both may be off."""
    asked = np.flatnonzero(gold >= 0)
    step = max(1, (1 << 22) // len(bias))
    for i in range(0, len(asked), step):
        part = asked[i : i + step]
        logits = weight @ out[:, part] + bias[:, None]
        sizes = np.abs(weight) @ (np.abs(out[:, part]) + slip[:, part]) + np.abs(bias)[:, None]
        terms = np.count_nonzero(weight, axis=1)[:, None] + 1
        one = (terms == 2) & (bias[:, None] == 0)  # one coordinate, times a power of two or not
        away = SPARE * (np.abs(weight) @ slip[:, part] + u * np.where(one, 1, terms + 1) * sizes)
        chosen = labels[part][None]
        own = np.take_along_axis(logits - away, chosen, 0)
        rivals = logits + away
        np.put_along_axis(rivals, chosen, -np.inf, 0)
        if not (own > rivals.max(0)).all():
            return False
    return True


def _single(vector: Floats) -> tuple[int, float] | None:
    """The only coordinate that is not 0, and what it is."""
    at = np.flatnonzero(vector)
    return (int(at[0]), float(vector[at[0]])) if len(at) == 1 else None


def _on_grid(values: Floats, weight: float) -> bool:
    scaled = values * GRID
    return bool(weight == 1.0 and (scaled == np.rint(scaled)).all() and np.abs(values).max() <= 2)
