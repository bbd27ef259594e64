"""The matrix e^(-|y_k| d_kl) of many rows of queries and keys, entry by entry, some at a time."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

SCORES = 1 << 22  # entries held at once


class WeightTable:
    """e^(-|y_k| d_kl), d_kl = best_k - x_l where y_k >= 0 and best_k + x_l where y_k < 0.

    `best` is the x or -x of the extreme key that the query sees. If `triangular`, query k sees the
    keys l <= k only.
    """

    def __init__(self, query: Tensor, key: Tensor, best: Tensor, triangular: bool) -> None:
        self.query, self.key, self.best, self.triangular = query, key, best, triangular

    def at_queries(self, lanes: Tensor, orders: tuple[int, ...] = (0,)) -> Tensor:
        """sum_l e^(-|y_k| d_kl) d_kl^order lane_l, (L, R, n) to (L, R, q), for orders 0 or 1."""
        out = lanes.new_empty(len(orders) * len(lanes), *self.query.shape)
        for rows, some, weights, distance in self._blocks():
            acting = lanes[:, rows].permute(1, 2, 0)
            found = [(weights * distance if order else weights) @ acting for order in orders]
            out[:, rows, some] = torch.cat(found, -1).permute(2, 0, 1)
        return out

    def at_keys(self, lanes: Tensor) -> Tensor:
        """sum_k e^(-|y_k| d_kl) lane_k, (L, R, q) to (L, R, n)."""
        out = lanes.new_zeros(len(lanes), *self.key.shape)
        for rows, some, weights, _ in self._blocks():
            out[:, rows] += (lanes[:, rows, some].permute(1, 0, 2) @ weights).permute(1, 0, 2)
        return out

    def _blocks(self) -> Iterator[tuple[slice, slice, Tensor, Tensor]]:
        """Some queries of some rows, with their weights and distances (rows, queries, n)."""
        (R, q), n = self.query.shape, self.key.shape[-1]
        height = max(1, SCORES // (q * n))
        step = max(1, min(q, SCORES // n))
        for i in range(0, R, height):
            for k in range(0, q, step):
                rows, some = slice(i, i + height), slice(k, k + step)
                y = self.query[rows, some, None]
                x = self.key[rows, None]
                distance = self.best[rows, some, None] - torch.where(y < 0, -x, x)
                distance = distance.clamp_min_(0.0)  # negative only for keys that are not seen
                weights = (-y.abs() * distance).exp_()
                yield rows, some, weights.tril_(k) if self.triangular else weights, distance
