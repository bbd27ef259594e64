"""Rows of queries and keys, and the parts in which they attend: whole, or causal by halves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from rankone.kernels.portable.factored_weights import SIZE, FactoredWeights
from rankone.kernels.portable.placement import power_of_two, range_of
from rankone.kernels.portable.weight_table import WeightTable

LEAF = 256  # length of a range that is attended to score by score, if causal
TOKENS = 1 << 18  # attended to together
PAIR_COST = SIZE**2 // 2  # of two blocks, in scores: some pairs are beyond the cutoff
NOBODY = -4.0  # below every key of `Rows`


class ScorePart(NamedTuple):
    """Rows are cut into ranges of these widths; in some of them, some queries see some keys."""

    query_width: int
    key_width: int
    queries: slice = slice(None)
    keys: slice = slice(None)
    triangular: bool = False  # query k of a range sees its keys l <= k only
    ranges: slice = slice(None)

    def of_queries(self, x: Tensor) -> Tensor:
        """A view (..., ranges, queries) of (..., R, q)."""
        return x.view(*x.shape[:-2], -1, self.query_width)[..., self.ranges, self.queries]

    def of_keys(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-2], -1, self.key_width)[..., self.ranges, self.keys]


def parts(q: int, n: int, causal: bool) -> list[ScorePart]:
    """Pair every query with every key that it sees, once. The last part is as wide as a row.

    Causal: short ranges first, then the right half of each range with its left half.
    """
    if not causal:
        return [ScorePart(q, n)]
    levels = ((q - 1) // LEAF).bit_length()
    width = -(-q >> levels)
    leaves = ScorePart(width, width, triangular=True)
    halves = ((2 * width << level, width << level) for level in range(levels))
    return [leaves, *(ScorePart(w, w, slice(half, None), slice(half)) for w, half in halves)]


class Rows(NamedTuple):
    """Queries times a power of two, and keys divided by it, so that keys are below 2."""

    query: Tensor  # (R, q)
    key: Tensor  # (R, n)
    lanes: Tensor  # (c + 1, R, n): values, and 1; 0 where the key is not there
    best: Tensor | None  # (R, q), if causal: `best_of` the keys that each query sees
    unit: Tensor  # the power of two, (R, 1)
    whole: list[ScorePart]

    def parts(self) -> Iterator[ScorePart]:
        """As many ranges at a time as keep the device busy, and no more, to save memory."""
        for part in self.whole:
            count = self.query.numel() // part.query_width
            step = max(1, TOKENS // max(part.query_width, part.key_width))
            for i in range(0, count, step):
                yield part._replace(ranges=slice(i, i + step))

    def kernel(self, part: ScorePart) -> tuple[FactoredWeights | WeightTable, Tensor | None]:
        """The matrix of a part, relative to its own extreme keys, and how far these are behind.

        `FactoredWeights` pay off only if there are fewer scores between nodes than between points;
        for few points, or points in very many octaves, a `WeightTable` is faster.
        """
        query, key = part.of_queries(self.query), part.of_keys(self.key)
        low, high = extremes(key, part.of_keys(self.lanes[-1]), part.triangular)
        best = best_of(query, low, high)
        gap = None if self.best is None else part.of_queries(self.best) - best
        scores = query.numel() * key.shape[-1]
        if not part.triangular and scores > len(query) * PAIR_COST:
            factored = FactoredWeights(query, key, low, high)
            if scores > factored.pairs * PAIR_COST:
                return factored, gap
        return WeightTable(query, key, best, part.triangular), gap


def prepared(query: Tensor, key: Tensor, value: Tensor, there: Tensor | None, causal: bool) -> Rows:
    exact = working_type(query.device)
    whole = parts(query.shape[-1], key.shape[-1], causal)
    q, n = whole[-1].query_width, whole[-1].key_width
    lanes = torch.cat([value.transpose(0, 1), torch.ones_like(key)[None]]).to(exact)
    if there is not None:
        lanes *= there
    query, key, lanes = fitted(query, q, exact), fitted(key, n, exact), fitted(lanes, n, exact)

    largest = torch.where(lanes[-1] > 0, key.abs(), 0.0).amax(-1, keepdim=True)
    unit = power_of_two(largest).clamp_min(torch.finfo(exact).tiny)
    limit = range_of(exact)[1]
    query, key = (query * unit).clamp_(-limit, limit), (key / unit).clamp_(-2.0, 2.0)
    best = best_of(query, *extremes(key, lanes[-1], running=True)) if causal else None
    return Rows(query, key, lanes, best, unit, whole)


def fitted(x: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """In this type, cut or padded by zeros to this size; contiguous, so that it can be cut up."""
    x = x.to(dtype).contiguous()
    return x if x.shape[-1] == size else pad(x, (0, size - x.shape[-1]))


def working_type(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64


def extremes(key: Tensor, seen: Tensor, running: bool) -> tuple[Tensor, Tensor]:
    """The least and the largest key, up to each if running; infinity and -infinity if none."""
    low, high = (torch.where(seen > 0, key, end) for end in (torch.inf, -torch.inf))
    if running:
        return low.cummin(-1).values, high.cummax(-1).values
    return low.amin(-1, keepdim=True), high.amax(-1, keepdim=True)


def best_of(query: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The x, or -x for queries below 0, of the key with the largest weight."""
    return torch.where(query < 0, -low, high).clamp_min(NOBODY)
