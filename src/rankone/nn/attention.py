"""Self-attention: any number of heads, softmax or hardmax (eq. 2 and 5), and rank 1 (eq. 20)."""

from __future__ import annotations

from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from rankone.deadline import tick
from rankone.kernels import ragged_attention, rank1_attention
from rankone.kernels.direct import seen_sum
from rankone.nn.layers import AttentionLayer, Head, Shapes, module_of
from rankone.nn.masks import Mask, and_causal, and_past
from rankone.nn.ragged import Ragged

SCORES = 1 << 20  # per head and sentence held at once, where no gradient needs them all


class SelfAttention(AttentionLayer):
    """F(Z) = Z + sum_i W^O_i (W^V_i Z) sigma[(W^K_i Z)^T (W^Q_i Z)]   (eq. 2; eq. 5 for hardmax).

    The sum runs over the heads; sigma works on columns, one per query. Z is `z` with tokens as
    rows; W^V_i, W^K_i, W^Q_i are ``value[i]``, ``key[i]``, ``query[i]`` (s x d), W^O_i is
    ``output[i]`` (d x s). Hardmax shares the weight equally among the largest scores. There is no
    1/sqrt(s): the paper has none.
    """

    def __init__(
        self,
        dim: int,
        *,
        heads: int = 1,
        head_size: int = 1,
        kind: Literal["softmax", "hardmax"] = "softmax",
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.kind = kind
        scale = dim**-0.5
        self.key, self.query, self.value = (
            nn.Parameter(torch.randn(heads, head_size, dim, dtype=dtype) * scale) for _ in range(3)
        )
        self.output = nn.Parameter(torch.randn(heads, dim, head_size, dtype=dtype) * scale)

    @staticmethod
    def sizes(dim: int, *, heads: int, head_size: int) -> Shapes:
        """The shape of every parameter."""
        shapes: Shapes = dict.fromkeys(("key", "query", "value"), (heads, head_size, dim))
        return {**shapes, "output": (heads, dim, head_size)}

    @property
    def heads(self) -> list[Head[Tensor]]:
        weights = (w.detach() for w in (self.key, self.query, self.value, self.output))
        return [Head(*matrices) for matrices in zip(*weights, strict=True)]

    @property
    def settings(self) -> dict[str, Any]:
        heads, head_size, _ = self.key.shape
        return {"attention": self.kind, "heads": heads, "head_size": head_size}

    def expand(self) -> SelfAttention:
        return self

    def forward(
        self, z: Float[Tensor, "*batch n d"], mask: Mask | None = None, *, causal: bool = False
    ) -> Float[Tensor, "*batch n d"]:
        if mask is not None and mask.dim() == 1 and z.dim() == 2:
            mask = mask[None]
        key, query, value = (self._heads(w, z) for w in (self.key, self.query, self.value))
        n = z.shape[-2]
        step = max(1, SCORES // max(1, n))
        if n <= step or torch.is_grad_enabled():
            mask = and_causal(mask, n, z.device) if causal else mask
            context = self._attend(query, key, value, mask)
        else:  # into one tensor: pieces kept in a list would leave holes of the size of the scores
            context = torch.empty_like(value)
            for i in range(0, n, step):
                tick()
                asking = torch.arange(i, min(i + step, n), device=z.device)
                seen = mask if mask is None or mask.shape[-2] == 1 else mask[..., i : i + step, :]
                seen = and_past(seen, asking, n) if causal else seen
                part = query[..., i : i + step, :]
                context[..., i : i + step, :] = self._attend(part, key, value, seen)
        return z + self._written(context)

    def at(
        self,
        z: Float[Tensor, "*batch n d"],
        asking: Int[Tensor, "*batch m"],
        mask: Bool[Tensor, "*#batch 1 n"] | None = None,
        *,
        causal: bool = False,
        projected: tuple[Tensor, Tensor] | None = None,
    ) -> Float[Tensor, "*batch m d"]:
        """The rows `asking` of what `forward` returns: m n scores, not n^2. Who asks more than once
        gives keys and values, `projected`."""
        own = torch.take_along_dim(z, asking.unsqueeze(-1), -2)
        mask = and_past(mask, asking, z.shape[-2]) if causal else mask
        key, value = self.project(z) if projected is None else projected
        return own + self._written(self._attend(self._heads(self.query, own), key, value, mask))

    def project(self, z: Float[Tensor, "*batch n d"]) -> tuple[Tensor, Tensor]:
        """Keys and values of all heads, (..., heads, n, s)."""
        return self._heads(self.key, z), self._heads(self.value, z)

    def _heads(self, weight: Tensor, z: Tensor) -> Tensor:
        return torch.einsum("hsd,...nd->...hns", weight, z)

    def _written(self, context: Tensor) -> Tensor:
        return torch.einsum("hds,...hns->...nd", self.output, context)

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        scores = query @ key.mT
        if mask is not None:
            mask = mask.unsqueeze(-3)  # the same for all heads
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(-1) if self.kind == "softmax" else hardmax(scores)
        if mask is not None:
            weights = torch.where(mask, weights, 0.0)  # a row that sees nothing is NaN until here
            return seen_sum(weights, value, mask)
        return weights @ value


class Rank1Attention(AttentionLayer):
    """F(Z) = Z + W^O (v1^T Z) sigma_S[(v1^T Z)^T (v2^T Z)]   (eq. 20).

    Key and value share v1; v2 asks the query. Z is `z` with tokens as rows; v1, v2 and W^O are the
    vectors ``v1``, ``v2`` and ``output``. (The paper's text says value and query share v1; its
    formula and its proof need key and value.) Long sequences take linear time, O(n log n) if
    `causal`, unless the mask differs between queries.
    """

    kind = "softmax"

    def __init__(self, dim: int, *, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.v1, self.v2, self.output = (
            nn.Parameter(torch.randn(dim, dtype=dtype) * dim**-0.5) for _ in range(3)
        )

    @classmethod
    def assemble(cls, v1: Tensor, v2: Tensor, output: Tensor) -> Rank1Attention:
        """From given vectors."""
        return module_of(cls, {"v1": v1, "v2": v2, "output": output})

    @staticmethod
    def sizes(dim: int) -> Shapes:
        """The shape of every parameter."""
        return dict.fromkeys(("v1", "v2", "output"), (dim,))

    @property
    def heads(self) -> list[Head[Tensor]]:
        v1, v2, output = (v.detach() for v in (self.v1, self.v2, self.output))
        key = v1.unsqueeze(0)
        return [Head(key, v2.unsqueeze(0), key, output.unsqueeze(-1))]

    @property
    def settings(self) -> dict[str, Any]:
        return {"attention": "rank1", "heads": 1, "head_size": 1}

    def forward(
        self, z: Float[Tensor, "*batch n d"], mask: Mask | None = None, *, causal: bool = False
    ) -> Float[Tensor, "*batch n d"]:
        key = z @ self.v1
        context = rank1_attention(z @ self.v2, key, key.unsqueeze(-1), causal=causal, mask=mask)
        return z + context * self.output

    def ragged(
        self, z: Tensor, sentences: Ragged, *, causal: bool = False, window: int = 0
    ) -> Tensor:
        """The same for sentences laid end to end, (tokens, d)."""
        if window:
            return super().ragged(z, sentences, causal=causal, window=window)
        key, query = torch.stack([self.v1, self.v2]) @ z.T
        context = ragged_attention(query, key, key, sentences.offsets, causal=causal)
        return torch.addr(z, context, self.output)

    @torch.no_grad()
    def expand(self, head_size: int = 1) -> SelfAttention:
        """The same map as eq. 2 with matrices of rank 1: W^K = u v1^T, W^Q = u v2^T, |u| = 1."""
        u = torch.ones(head_size, 1, dtype=self.v1.dtype) * head_size**-0.5
        full = SelfAttention(len(self.v1), head_size=head_size, dtype=self.v1.dtype)
        full.key.copy_(u * self.v1)
        full.value.copy_(u * self.v1)
        full.query.copy_(u * self.v2)
        full.output.copy_(self.output[:, None] * u.T)
        return full


def hardmax(scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    """Equal weight on every largest entry of the last axis, 0 elsewhere."""
    largest = (scores == scores.amax(-1, keepdim=True)).to(scores.dtype)
    return largest / largest.sum(-1, keepdim=True)
