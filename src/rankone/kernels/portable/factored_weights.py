"""The matrix e^(-|y_k| d_kl) of many rows of queries and keys, never formed: the five steps."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankone.kernels import chebyshev
from rankone.kernels.chebyshev import CELLS_PER_OCTAVE, GROUPS, MEMBERS, NODES
from rankone.kernels.portable import weight_table
from rankone.kernels.portable.placement import PlacedPoints, placed

SIZE = GROUPS * NODES  # nodes of a block
PAIRS = 1 << 16  # of blocks looked at together


def constant(numbers: NDArray[np.float64], like: Tensor) -> Tensor:
    return torch.from_numpy(numbers).to(like.dtype).to(like.device)


class FactoredWeights:
    """e^(-|y_k| d_kl), d the distance of key l from the end of its row that query k looks to.

    The end is the largest key, `high`, where y_k >= 0 and the smallest, `low`, where y_k < 0.
    """

    def __init__(self, query: Tensor, key: Tensor, low: Tensor, high: Tensor) -> None:
        low, high = (torch.where(low <= high, end, 0.0) for end in (low, high))
        extent, size = high - low, query.abs().amax(-1, keepdim=True)

        def queries(span: slice) -> tuple[Tensor, Tensor]:
            return query[:, span].abs(), query[:, span] < 0

        def keys(span: slice) -> tuple[Tensor, Tensor]:
            inside = key[:, span].clamp(low, high)  # masked keys may be anywhere
            above, below = high - inside, inside - low
            return torch.minimum(above, below), above > below

        self.queries = placed(queries, query.shape, size, extent)
        # Rounding is monotone, so no key lies beyond half of the extent.
        self.keys = placed(keys, key.shape, extent / 2, size)
        self.extent = extent.squeeze(-1)
        self.cutoff = 40 + math.log(max(query.shape[-1], key.shape[-1]))
        self._number_pairs()
        # For each power a matrix (MEMBERS, NODES).
        self.refinement = constant(chebyshev.refinement(), key).unbind(1)
        groups = np.arange(GROUPS)[:, None]
        self.unit = constant((groups + 0.5 + 0.5 * chebyshev.nodes()).flatten() / GROUPS, key)

    def _number_pairs(self) -> None:
        """Pairs of a block of queries and one of keys in the same row, in the order of queries."""
        rows = self.keys.row
        counts = torch.zeros_like(self.extent, dtype=torch.int64)
        counts.scatter_add_(0, rows, torch.ones_like(rows))
        first = (counts.cumsum(0) - counts)[self.queries.row]  # block of keys
        counts = counts[self.queries.row]
        self.ends = counts.cumsum(0)
        self.shift = first - (self.ends - counts)  # from the number of a pair to its block of keys
        self.pairs = int(self.ends[-1])

    def at_queries(self, lanes: Tensor, orders: tuple[int, ...] = (0,)) -> Tensor:
        """sum_l e^(-|y_k| d_kl) d_kl^order lane_l, (L, R, n) to (L, R, q), for orders 0 or 1."""
        charges = self._tally_and_merge(self.keys, lanes)
        out = charges.new_zeros(len(self.queries.row), SIZE, len(orders) * len(lanes))
        for queries, keys, weights, distance in self._between_nodes():
            near = charges[keys]
            acting = [near * distance.unsqueeze(-1) if order else near for order in orders]
            out.index_add_(0, queries, weights @ torch.cat(acting, -1))
        return self._refine_and_read(self.queries, out)

    def at_keys(self, lanes: Tensor) -> Tensor:
        """sum_k e^(-|y_k| d_kl) lane_k, (L, R, q) to (L, R, n)."""
        charges = self._tally_and_merge(self.queries, lanes)
        out = charges.new_zeros(len(self.keys.row), SIZE, len(lanes))
        for queries, keys, weights, _ in self._between_nodes():
            out.index_add_(0, keys, weights.mT @ charges[queries])
        return self._refine_and_read(self.keys, out)

    def _tally_and_merge(self, side: PlacedPoints, lanes: Tensor) -> Tensor:
        """Steps 1 and 2: charges (blocks, SIZE, L) on nodes that act as the points do."""
        count = len(lanes)
        charges = lanes.new_zeros(count, len(side.row) * GROUPS, NODES)
        for j, factor in enumerate(self.refinement):
            moments = lanes.new_zeros(count, len(side.row) * CELLS_PER_OCTAVE)
            for span, cell, t in side.spans():
                weights = lanes[..., span].flatten(1) * t**j
                moments.scatter_add_(1, cell.expand_as(weights), weights)
            charges += moments.view(count, -1, MEMBERS) @ factor
        return charges.view(count, -1, SIZE).permute(1, 2, 0)

    def _refine_and_read(self, side: PlacedPoints, values: Tensor) -> Tensor:
        """Steps 4 and 5: at the points, the polynomials with values (blocks, SIZE, L) at nodes."""
        values = values.permute(2, 0, 1).reshape(values.shape[-1], -1, NODES)
        out = values.new_zeros(len(values), *side.t.shape)
        for factor in reversed(self.refinement):
            table = (values @ factor.mT).flatten(1)
            for span, cell, t in side.spans():
                part = out[..., span]
                part.mul_(t.view(part.shape[1:])).add_(table[:, cell].view(part.shape))
        return out

    def _between_nodes(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Step 3: pairs of blocks, e^(-t d) between their nodes (pairs, SIZE, SIZE), and d."""
        step = max(1, weight_table.SCORES // SIZE**2)
        for start in range(0, self.pairs, PAIRS):
            near = self._near(start)
            for queries, keys in zip(*(torch.split(blocks, step) for blocks in near), strict=True):
                distance = self._distance(queries, keys, self._nodes(self.keys, keys))
                rate = self._nodes(self.queries, queries)
                weights = (-rate.unsqueeze(-1) * distance.unsqueeze(1)).exp_()
                yield queries, keys, weights, distance

    def _near(self, start: int) -> tuple[Tensor, Tensor]:
        """Among some pairs of blocks of one row, those that have an exponent within the cutoff."""
        device = self.ends.device
        pair = torch.arange(start, min(start + PAIRS, self.pairs), device=device)
        queries = torch.searchsorted(self.ends, pair, right=True)
        keys = pair + self.shift[queries]
        ends = torch.stack([self.keys.near[keys], self.keys.far[keys]], -1)
        nearest = self._distance(queries, keys, ends).amin(-1)
        keep = self.queries.near[queries] * nearest <= self.cutoff
        return queries[keep], keys[keep]

    def _nodes(self, side: PlacedPoints, blocks: Tensor) -> Tensor:
        """The points (blocks, SIZE) where the nodes are."""
        return side.near[blocks, None] + side.width[blocks, None] * self.unit

    def _distance(self, queries: Tensor, keys: Tensor, point: Tensor) -> Tensor:
        """Of points (pairs, any) in blocks of keys, from the end that the queries look to."""
        same = self.queries.half[queries] == self.keys.half[keys]
        extent = self.extent[self.keys.row[keys]]
        return torch.where(same[:, None], point, extent[:, None] - point)
