"""What every layer of a network offers, whatever its kind (see `kinds`), and the block of two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from jaxtyping import Float
from torch import Tensor, nn

from rankone import choices
from rankone.nn.masks import Mask, and_window
from rankone.nn.ragged import Ragged

M = TypeVar("M", bound=nn.Module)
A = TypeVar("A")
B = TypeVar("B")
Shapes = dict[str, tuple[int, ...]]  # of parameters, by name


@dataclass(frozen=True)
class Head(Generic[A]):
    """W^K, W^Q, W^V (s x d) and W^O (d x s) of one head of eq. 2; A is the type of a matrix.

    If keys and values share a matrix, ``value is key``: it is converted once.
    """

    key: A
    query: A
    value: A
    output: A

    @property
    def shared(self) -> bool:
        return self.value is self.key

    def map(self, turn: Callable[[A], B]) -> Head[B]:
        """The same head with every matrix turned into another type."""
        key, query, output = turn(self.key), turn(self.query), turn(self.output)
        return Head(key, query, key if self.shared else turn(self.value), output)


class AttentionLayer(nn.Module):
    """F(Z) = Z + sum_i W^O_i (W^V_i Z) sigma[(W^K_i Z)^T (W^Q_i Z)]   (eq. 2), stored in some way.

    ``kind`` is what sigma does to the scores. Only `heads` knows how weights are stored: all other
    ways to run a network read them from there. `forward` takes (z, mask, causal=...).
    """

    kind: Literal["softmax", "hardmax"]

    @property
    def heads(self) -> list[Head[Tensor]]:
        """The matrices of every head, without gradients."""
        raise NotImplementedError

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of `Architecture` that say how the layer is stored."""
        raise NotImplementedError

    def ragged(
        self, z: Tensor, sentences: Ragged, *, causal: bool = False, window: int = 0
    ) -> Tensor:
        """The same for sentences laid end to end, (tokens, d); with a `window`, each token sees so
        many at most."""
        rows, there = sentences.pad(z), sentences.mask[:, None, :]
        mask = and_window(there, rows.shape[1], window, z.device)
        padded: Tensor = self(rows, mask, causal=causal)
        return padded[sentences.mask]

    def expand(self) -> AttentionLayer:
        """The same map with every matrix written out."""
        raise NotImplementedError


class FeedForwardLayer(nn.Module):
    """F(H)_k = H_k + W2 relu(W1 H_k + b1) + b2   (eq. 3), stored in some way: its ``kind``.

    `expand` writes the matrices out: a way to run a network that does not know how a layer is
    stored takes that.
    """

    kind: choices.FeedForward
    bias1: nn.Parameter

    @property
    def hidden(self) -> int:
        """The number of hidden units."""
        return len(self.bias1)

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of `Architecture` that say how the layer is stored."""
        return {"feedforward": self.kind, "hidden": self.hidden}

    def expand(self) -> Any:
        """The same layer as a `FeedForward`."""
        raise NotImplementedError


class Block(nn.Module):
    """F(Z) = F^(FF)(F^(SA)(Z))   (eq. 4): attention, then feed-forward, both with skips."""

    def __init__(self, attention: AttentionLayer, feedforward: FeedForwardLayer) -> None:
        super().__init__()
        self.attention = attention
        self.feedforward = feedforward

    def forward(
        self, z: Float[Tensor, "*batch n d"], mask: Mask | None = None, *, causal: bool = False
    ) -> Float[Tensor, "*batch n d"]:
        out: Tensor = self.feedforward(self.attention(z, mask, causal=causal))
        return out

    def ragged(
        self, z: Tensor, sentences: Ragged, *, causal: bool = False, window: int = 0
    ) -> Tensor:
        """The same for sentences laid end to end, (tokens, d)."""
        seen = self.attention.ragged(z, sentences, causal=causal, window=window)
        out: Tensor = self.feedforward(seen)
        return out

    def expand(self) -> Block:
        """The same block with every matrix written out."""
        return Block(self.attention.expand(), self.feedforward.expand())


def module_of(
    kind: type[M], parameters: Mapping[str, Tensor], attributes: Mapping[str, Any] | None = None
) -> M:
    """A module with given parameters, none of which is drawn first or copied."""
    module = kind.__new__(kind)
    nn.Module.__init__(module)
    for name, tensor in parameters.items():
        setattr(module, name, nn.Parameter(tensor, requires_grad=tensor.is_floating_point()))
    for name, value in (attributes or {}).items():
        setattr(module, name, value)
    return module
