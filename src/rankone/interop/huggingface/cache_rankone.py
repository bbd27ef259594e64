"""The cache of a language model: what its attention remembers of the tokens before.

Three kinds of memory, of which `Plan` (plan_rankone.py) chooses one: running sums, the last values
of a window, or, for heads of any other kind, all keys and values. This file is saved with the
weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

if TYPE_CHECKING:
    from .layers_rankone import Attention

HELD = 1 << 22  # numbers in the largest table that is made at once


class Memory(CacheLayerMixin):
    """What one layer remembers of the texts of a batch: tensors with a row for each text.

    `length` is how many columns of tokens have gone by, padding too, and ``kept["count"]`` how many
    of them were real.
    """

    def __init__(self) -> None:
        super().__init__()
        self.length = 0
        self.kept: dict[str, Tensor] = {}

    def averages(self, z: Tensor, real: Tensor | None) -> Tensor:
        """What the heads average for some more tokens, (batch, n, d), of which some are `real`; in
        each text those are the last ones. (batch, n, heads * head size).
        """
        raise NotImplementedError

    def begin(self, z: Tensor) -> None:
        """Remember nothing of as many texts as `z` has."""
        if not self.kept:
            self.kept["count"] = torch.zeros(len(z), dtype=torch.int64, device=z.device)
            self.is_initialized = True

    def went_by(self, z: Tensor, real: Tensor | None) -> None:
        n = z.shape[1]
        self.length += n
        self.kept["count"] = self.kept["count"] + (n if real is None else real.sum(1))

    def _each(self, change: Callable[[Tensor], Tensor]) -> None:
        self.kept = {name: change(tensor) for name, tensor in self.kept.items()}

    def reset(self) -> None:
        self.kept, self.length, self.is_initialized = {}, 0, False

    def reorder_cache(self, beam_idx: Tensor) -> None:
        self._each(lambda x: x.index_select(0, beam_idx.to(x.device)))

    def batch_repeat_interleave(self, repeats: int) -> None:
        self._each(lambda x: x.repeat_interleave(repeats, dim=0))

    def batch_select_indices(self, indices: Tensor) -> None:
        self._each(lambda x: x[indices.to(x.device)])

    def offload(self) -> None:
        self._each(lambda x: x.to("cpu"))

    def prefetch(self) -> None:
        """Nothing: states are small."""

    def lazy_initialization(self, *_: Any) -> None:
        """Nothing: the first tokens say how many texts there are."""

    def update(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("Keys and values are not kept one by one: call the model.")

    def get_seq_length(self) -> int:
        return self.length

    def get_max_length(self) -> int:
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0


class Sums(Memory):
    """Running sums of each head, where all tokens have the same query: softmax averages are

    sum_l e^(x_l) u_l / sum_l e^(x_l),   x_l = (W^K z_l)^T q,   u_l = W^V z_l.
    """

    def __init__(self, score: Tensor, value: Tensor) -> None:
        """`score` is (d, heads), (W^K)^T q of each, and `value` (d, heads * head size)."""
        super().__init__()
        self.score, self.value = score, value

    def averages(self, z: Tensor, real: Tensor | None) -> Tensor:
        self.begin(z)
        weight = torch.exp((z @ self.score).double())
        if real is not None:
            weight = weight * real[..., None]
        u = (z @ self.value).double().view(*weight.shape, -1)
        added = weight[..., None] * u
        if z.shape[1] > 1:
            weight, added = weight.cumsum(1), added.cumsum(1)
        if "weight" in self.kept:
            weight, added = weight + self.kept["weight"], added + self.kept["added"]
        self.kept["weight"], self.kept["added"] = weight[:, -1:], added[:, -1:]
        self.went_by(z, real)
        found = added / weight[..., None]
        if real is not None:
            found = torch.where(real[..., None, None], found, 0.0)  # before a text: 0 / 0
        averages: Tensor = found.flatten(2).to(z.dtype)
        return averages


class Fading(Memory):
    """The last values of each head, where their weights fall with the distance alone: the token j
    places back has the weight e^(-decay j), if it is in the window.
    """

    def __init__(self, weights: Tensor, value: Tensor) -> None:
        """`weights` are (window, heads * head size), those of the token itself last."""
        super().__init__()
        self.weights, self.value = weights, value
        self.totals = weights.flip(0).cumsum(0)  # of so many tokens, and one

    def averages(self, z: Tensor, real: Tensor | None) -> Tensor:
        self.begin(z)
        n, window = z.shape[1], len(self.weights)
        values = (z @ self.value).double()
        if real is not None:
            values = values * real[..., None]
        before, count = self.kept.get("values"), self.kept["count"]
        if before is None:
            before = values.new_zeros(len(values), window - 1, values.shape[-1])
        values = torch.cat([before, values], 1)
        if real is not None and self.length:
            values = _closed(values, window - 1, (~real).sum(1))
        if n == 1:
            found = (values * self.weights).sum(1, keepdim=True)
        else:
            found = values[:, window - 1 :] * self.weights[-1]
            for j in range(1, window):
                found.addcmul_(values[:, window - 1 - j : -j], self.weights[-1 - j])
        more = torch.arange(n, device=z.device) if real is None else real.cumsum(1) - 1
        found = found / self.totals[(count[:, None] + more).clamp(0, window - 1)]
        self.kept["values"] = values[:, n:]
        self.went_by(z, real)
        return found.to(z.dtype)


def _closed(values: Tensor, before: int, gap: Tensor) -> Tensor:
    """The same, where what was there `before` has moved up to the end of the padding after it."""
    column = torch.arange(values.shape[1], device=values.device)
    source = torch.where(column < before + gap[:, None], column - gap[:, None], column)
    moved = values.gather(1, source.clamp(min=0)[..., None].expand_as(values))
    return moved * (source >= 0)[..., None]


class Everything(Memory):
    """All keys and values, as far as a window (0: no limit) reaches."""

    def __init__(self, attention: Attention, window: int) -> None:
        super().__init__()
        self.attention, self.window = attention, window

    def averages(self, z: Tensor, real: Tensor | None) -> Tensor:
        self.begin(z)
        n, count = z.shape[1], self.kept["count"]
        query, key, value = self.attention.read(z)
        if real is None:
            place = count[:, None] + torch.arange(n, device=z.device)
        else:
            place = torch.where(real, count[:, None] + real.cumsum(1) - 1, -1)
        self.went_by(z, real)
        asking = place
        if "key" in self.kept:
            key, value = (
                torch.cat([self.kept[name], x], 2) for name, x in (("key", key), ("value", value))
            )
            place = torch.cat([self.kept["place"], place], 1)
        parts = []
        step = max(1, HELD // max(1, len(z) * key.shape[1] * key.shape[2]))
        for i in range(0, n, step):
            at = asking[:, i : i + step, None]
            mask = (place[:, None] >= 0) & (place[:, None] <= at)
            if self.window:
                mask &= place[:, None] > at - self.window
            found, _ = self.attention.average(query[:, :, i : i + step], key, value, mask[:, None])
            parts.append(found)
        if self.window:
            near = (place > self.kept["count"][:, None] - self.window).any(0)
            key, value, place = key[:, :, near], value[:, :, near], place[:, near]
        self.kept |= {"key": key, "value": value, "place": place}
        return torch.cat(parts, 2).transpose(1, 2).flatten(2)


class RankOneCache(Cache):
    """What a model remembers of the texts of a batch, a `Memory` for each block."""

    def __init__(self, memories: list[Memory]) -> None:
        super().__init__(layers=memories)

    @property
    def count(self) -> Tensor | None:
        """How many real tokens each text had; None before the first."""
        found: Tensor | None = self.layers[0].kept.get("count")
        return found

    @property
    def batch_size(self) -> int:
        return -1 if self.count is None else len(self.count)
