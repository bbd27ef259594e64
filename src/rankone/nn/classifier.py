"""The token classifier: token table, positions, blocks, linear head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from msgspec import Meta
from torch import Tensor, nn

from rankone.nn import masks
from rankone.nn.attention import Rank1Attention, SelfAttention
from rankone.nn.block import Block
from rankone.nn.feedforward import FeedForward, Rank1FeedForward
from rankone.nn.given import module_of
from rankone.nn.ragged import Ragged

Some = Annotated[int, Meta(ge=1, lt=1 << 31)]
SomeOrNone = Annotated[int, Meta(ge=0, lt=1 << 31)]


@dataclass(frozen=True)
class Network:
    """The shape of a token classifier: what must be known to build it before its weights come."""

    vocabulary: Some  # rows of the token table
    labels: Some
    dim: Some
    hidden: SomeOrNone
    positions: SomeOrNone = 0  # rows of the table of positions, 0 for none
    depth: Some = 1
    attention: Literal["rank1", "softmax", "hardmax"] = "rank1"
    heads: Some = 1
    head_size: Some = 1
    feedforward: Literal["rank1", "dense"] = "dense"
    causal: bool = False

    def block(self, dtype: torch.dtype) -> Block:
        return Block(
            Rank1Attention(self.dim, dtype=dtype)
            if self.attention == "rank1"
            else SelfAttention(
                self.dim,
                heads=self.heads,
                head_size=self.head_size,
                kind=self.attention,
                dtype=dtype,
            ),
            (Rank1FeedForward if self.feedforward == "rank1" else FeedForward)(
                self.dim, self.hidden, dtype=dtype
            ),
        )

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """The name and the shape of every parameter."""
        d, q, h, s = self.dim, self.hidden, self.heads, self.head_size
        attention: dict[str, tuple[int, ...]] = {"v1": (d,), "v2": (d,), "output": (d,)}
        if self.attention != "rank1":
            attention = dict.fromkeys(("key", "query", "value"), (h, s, d))
            attention["output"] = (h, d, s)
        feedforward = {"weight1": (q, d), "bias1": (q,), "weight2": (d, q), "bias2": (d,)}
        if self.feedforward == "rank1":
            feedforward = dict.fromkeys(("gain", "bias1", "out_gain"), (q,))
            feedforward |= dict.fromkeys(("direction", "out_direction", "bias2"), (d,))
        return {
            "table": (self.vocabulary, d),
            **({"positions": (self.positions, d)} if self.positions else {}),
            **{
                f"blocks.{i}.{layer}.{name}": shape
                for i in range(self.depth)
                for layer, parts in (("attention", attention), ("feedforward", feedforward))
                for name, shape in parts.items()
            },
            "head.weight": (self.labels, d),
            "head.bias": (self.labels,),
        }


class TokenClassifier(nn.Module):
    """logits = head(Block(... Block(X + E))), X the rows of the token table, E those of positions.

    `table` is (vocabulary, d), `positions` (length, d) or None. Without positions the network is
    permutation equivariant.
    """

    def __init__(self, shape: Network, *, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        self.shape = shape
        self.table = nn.Parameter(torch.randn(shape.vocabulary, shape.dim, dtype=dtype))
        self.positions = (
            nn.Parameter(torch.randn(shape.positions, shape.dim, dtype=dtype))
            if shape.positions
            else None
        )
        self.blocks = nn.ModuleList(shape.block(dtype) for _ in range(shape.depth))
        self.head = nn.Linear(shape.dim, shape.labels, dtype=dtype)

    @classmethod
    def assemble(
        cls,
        shape: Network,
        table: nn.Parameter,
        positions: nn.Parameter | None,
        blocks: Iterable[Block],
        head: nn.Linear,
    ) -> TokenClassifier:
        """From parts that exist already."""
        network = cls.__new__(cls)
        nn.Module.__init__(network)
        network.shape, network.table, network.positions = shape, table, positions
        network.blocks, network.head = nn.ModuleList(blocks), head
        return network

    @classmethod
    def of(cls, shape: Network, tensors: Mapping[str, Tensor]) -> TokenClassifier:
        """From the tensors that `Network.parameter_shapes` names; nothing is drawn or copied."""

        def part(prefix: str) -> dict[str, Tensor]:
            names = [name for name in tensors if name.startswith(prefix)]
            return {name.removeprefix(prefix): tensors[name] for name in names}

        def block(prefix: str) -> Block:
            attention, feedforward = part(f"{prefix}attention."), part(f"{prefix}feedforward.")
            return Block(
                module_of(Rank1Attention, attention)
                if shape.attention == "rank1"
                else module_of(SelfAttention, attention, {"kind": shape.attention}),
                module_of(Rank1FeedForward, feedforward)
                if shape.feedforward == "rank1"
                else module_of(FeedForward, feedforward),
            )

        sizes = {"in_features": shape.dim, "out_features": shape.labels}
        positions = tensors.get("positions")
        return cls.assemble(
            shape,
            nn.Parameter(tensors["table"]),
            None if positions is None else nn.Parameter(positions),
            [block(f"blocks.{i}.") for i in range(shape.depth)],
            module_of(nn.Linear, part("head."), sizes),
        )

    def embed(self, ids: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n d"]:
        """X + E."""
        x = self.table[ids]
        return x if self.positions is None else x + self.positions[: ids.shape[-1]]

    def features(
        self, ids: Int[Tensor, "batch n"], mask: Bool[Tensor, "batch *rest"] | None = None
    ) -> Float[Tensor, "batch n d"]:
        """What the last block puts out.

        `mask` is True for real tokens, (batch, n), or where k may attend to l, (batch, n, n);
        a causal network is causal besides.
        """
        n = ids.shape[-1]
        if self.positions is not None and n > len(self.positions):
            raise ValueError(f"{n} tokens, but the table of positions has {len(self.positions)}")
        z = self.embed(ids)
        for block in self.blocks:
            z = block(z, masks.per_query(mask), causal=self.shape.causal)
        return z

    def forward(
        self, ids: Int[Tensor, "batch n"], mask: Bool[Tensor, "batch *rest"] | None = None
    ) -> Float[Tensor, "batch n labels"]:
        logits: Tensor = self.head(self.features(ids, mask))
        return logits

    def ragged(self, x: Float[Tensor, "tokens d"], sentences: Ragged) -> Tensor:
        """Logits (tokens, labels) for sentences laid end to end; `x` are their rows of the table.

        Given rows, not ids, so that who trains can ask for the gradients of just these rows.
        """
        if self.positions is not None:
            x = x + nn.functional.embedding(sentences.positions, self.positions)
        for block in self.blocks:
            x = block.ragged(x, sentences, causal=self.shape.causal)  # type: ignore[operator]
        logits: Tensor = self.head(x)
        return logits

    @torch.no_grad()
    def expand(self) -> TokenClassifier:
        """The same network with every matrix of rank 1 multiplied out; tables are shared."""
        shape = replace(self.shape, feedforward="dense")
        if shape.attention == "rank1":
            shape = replace(shape, attention="softmax", heads=1, head_size=1)
        blocks = [block.expand() for block in self.blocks]  # type: ignore[operator]
        return TokenClassifier.assemble(shape, self.table, self.positions, blocks, self.head)
