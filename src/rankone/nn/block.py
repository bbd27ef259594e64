"""The Transformer block (eq. 4)."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from rankone.nn.attention import Mask, Rank1Attention, SelfAttention
from rankone.nn.feedforward import FeedForward, Rank1FeedForward
from rankone.nn.ragged import Ragged


class Block(nn.Module):
    """F(Z) = F^(FF)(F^(SA)(Z))   (eq. 4): attention, then feed-forward, both with skips."""

    def __init__(
        self,
        attention: SelfAttention | Rank1Attention,
        feedforward: FeedForward | Rank1FeedForward,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feedforward = feedforward

    def forward(
        self, z: Float[Tensor, "*batch n d"], mask: Mask | None = None, *, causal: bool = False
    ) -> Float[Tensor, "*batch n d"]:
        out: Tensor = self.feedforward(self.attention(z, mask, causal=causal))
        return out

    def ragged(self, z: Tensor, sentences: Ragged, *, causal: bool = False) -> Tensor:
        """The same for sentences laid end to end, (tokens, d)."""
        out: Tensor = self.feedforward(self.attention.ragged(z, sentences, causal=causal))
        return out

    def expand(self) -> Block:
        """The same block with every matrix of rank 1 multiplied out."""
        attention, feedforward = self.attention, self.feedforward
        return Block(
            attention.expand() if isinstance(attention, Rank1Attention) else attention,
            feedforward.expand() if isinstance(feedforward, Rank1FeedForward) else feedforward,
        )
