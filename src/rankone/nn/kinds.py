"""The kinds of attention and feed-forward layers a network can be made of.

To add one: write its module (see `layers`), add it here, and add its name to `rankone.choices`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import Tensor

from rankone.nn.attention import Rank1Attention, SelfAttention
from rankone.nn.feedforward import FeedForward, Rank1FeedForward
from rankone.nn.gated import GatedFeedForward
from rankone.nn.layers import AttentionLayer, FeedForwardLayer, Shapes, module_of

if TYPE_CHECKING:
    from rankone.nn.classifier import Architecture

L = TypeVar("L", AttentionLayer, FeedForwardLayer)


@dataclass(frozen=True)
class LayerKind(Generic[L]):
    """``module(dim, **settings, dtype=...)`` draws a layer; `sizes` gives its parameters' shapes.

    The settings are the fields of `Architecture` named in ``takes``, and ``fixed``, which are
    attributes of the module as well.
    """

    module: type[L]
    sizes: Callable[..., Shapes]
    takes: tuple[str, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def draw(self, architecture: Architecture, dtype: torch.dtype) -> L:
        """A layer with random weights."""
        given = self._taken(architecture)
        return self.module(architecture.dim, **given, **self.fixed, dtype=dtype)

    def shapes(self, architecture: Architecture) -> Shapes:
        return self.sizes(architecture.dim, **self._taken(architecture))

    def of(self, tensors: Mapping[str, Tensor]) -> L:
        """A layer with these parameters."""
        return module_of(self.module, tensors, self.fixed)

    def _taken(self, architecture: Architecture) -> dict[str, int]:
        return {name: getattr(architecture, name) for name in self.takes}


ATTENTIONS: dict[str, LayerKind[AttentionLayer]] = {
    "rank1": LayerKind(Rank1Attention, Rank1Attention.sizes, ()),
    **{
        kind: LayerKind(SelfAttention, SelfAttention.sizes, ("heads", "head_size"), {"kind": kind})
        for kind in ("softmax", "hardmax")
    },
}
FEEDFORWARDS: dict[str, LayerKind[FeedForwardLayer]] = {
    "rank1": LayerKind(Rank1FeedForward, Rank1FeedForward.sizes, ("hidden",)),
    "dense": LayerKind(FeedForward, FeedForward.sizes, ("hidden",)),
    "gated": LayerKind(
        GatedFeedForward, GatedFeedForward.sizes, ("hidden", "gates", "reads", "writes", "codes")
    ),
}
