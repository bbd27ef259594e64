"""The token classifier: token table, positions, blocks, linear head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Annotated, Any, cast

import torch
from jaxtyping import Bool, Float, Int
from msgspec import Meta
from torch import Tensor, nn

from rankone import choices
from rankone.nn import masks
from rankone.nn.kinds import ATTENTIONS, FEEDFORWARDS
from rankone.nn.layers import Block, module_of
from rankone.nn.ragged import Ragged

Some = Annotated[int, Meta(ge=1, lt=1 << 31)]
SomeOrNone = Annotated[int, Meta(ge=0, lt=1 << 31)]


@dataclass(frozen=True)
class Architecture:
    """The shape of a token classifier: what must be known to build it before its weights come."""

    vocabulary: Some  # rows of the token table
    labels: Some
    dim: Some
    hidden: SomeOrNone
    positions: SomeOrNone = 0  # rows of the table of positions, 0 for none
    depth: Some = 1
    attention: choices.Attention = "rank1"
    heads: Some = 1
    head_size: Some = 1
    feedforward: choices.FeedForward = "dense"
    causal: bool = False
    gates: SomeOrNone = 0  # sizes of a gated feed-forward layer, 0 for other kinds
    reads: SomeOrNone = 0
    writes: SomeOrNone = 0
    codes: SomeOrNone = 0
    window: SomeOrNone = 0  # tokens that a token sees, itself the last; 0 for no limit

    def block(self, dtype: torch.dtype) -> Block:
        """A block with random weights."""
        attention, feedforward = ATTENTIONS[self.attention], FEEDFORWARDS[self.feedforward]
        return Block(attention.draw(self, dtype), feedforward.draw(self, dtype))

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """The name and the shape of every parameter."""
        d = self.dim
        attention = ATTENTIONS[self.attention].shapes(self)
        feedforward = FEEDFORWARDS[self.feedforward].shapes(self)
        return {
            "table": (self.vocabulary, d),
            **({"positions": (self.positions, d)} if self.positions else {}),
            **({"step": (d,)} if self.window else {}),
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

    A network with a ``window`` is causal, and each token attends to so many tokens at most, itself
    the last of them. It has no table of positions: E_k = k e (k = 0, 1, ...) with e in ``step``,
    like the paper's eq. 48, so no text is too long for it. Softmax does not change when all scores
    grow by the same number; so where the step is read by keys alone, the place where a text begins
    does not matter.
    """

    blocks: Sequence[Block]  # an nn.ModuleList, which cannot say of what

    def __init__(self, shape: Architecture, *, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        self.shape = shape
        self.table = nn.Parameter(torch.randn(shape.vocabulary, shape.dim, dtype=dtype))
        self.positions = (
            nn.Parameter(torch.randn(shape.positions, shape.dim, dtype=dtype))
            if shape.positions
            else None
        )
        self.step = nn.Parameter(torch.randn(shape.dim, dtype=dtype)) if shape.window else None
        self.blocks = cast(Any, nn.ModuleList(shape.block(dtype) for _ in range(shape.depth)))
        self.head = nn.Linear(shape.dim, shape.labels, dtype=dtype)

    @classmethod
    def assemble(
        cls,
        shape: Architecture,
        table: nn.Parameter,
        positions: nn.Parameter | None,
        blocks: Iterable[Block],
        head: nn.Linear,
        step: nn.Parameter | None = None,
    ) -> TokenClassifier:
        """From parts that exist already."""
        network = cls.__new__(cls)
        nn.Module.__init__(network)
        network.shape, network.table, network.positions = shape, table, positions
        network.step = step
        network.blocks, network.head = cast(Any, nn.ModuleList(blocks)), head
        return network

    @classmethod
    def of(cls, shape: Architecture, tensors: Mapping[str, Tensor]) -> TokenClassifier:
        """From the tensors that `Architecture.parameter_shapes` names, without a copy."""

        def part(prefix: str) -> dict[str, Tensor]:
            names = [name for name in tensors if name.startswith(prefix)]
            return {name.removeprefix(prefix): tensors[name] for name in names}

        def block(prefix: str) -> Block:
            return Block(
                ATTENTIONS[shape.attention].of(part(f"{prefix}attention.")),
                FEEDFORWARDS[shape.feedforward].of(part(f"{prefix}feedforward.")),
            )

        sizes = {"in_features": shape.dim, "out_features": shape.labels}
        given = (tensors.get(name) for name in ("positions", "step"))
        positions, step = (None if tensor is None else nn.Parameter(tensor) for tensor in given)
        return cls.assemble(
            shape,
            nn.Parameter(tensors["table"]),
            positions,
            [block(f"blocks.{i}.") for i in range(shape.depth)],
            module_of(nn.Linear, part("head."), sizes),
            step,
        )

    @property
    def dtype(self) -> torch.dtype:
        """What all parameters are, and so what the network computes in (the widest, if several)."""
        found = {p.dtype for p in self.parameters() if p.is_floating_point()}
        return reduce(torch.promote_types, found)

    def embed(
        self, ids: Int[Tensor, "batch n"], places: Int[Tensor, "*batch n"] | None = None
    ) -> Float[Tensor, "batch n d"]:
        """X + E, for tokens at these `places` (default: from 0 on)."""
        x = self.table[ids]
        if self.step is not None:
            if places is None:
                places = torch.arange(ids.shape[-1], device=ids.device)
            return x + places[..., None].to(x.dtype) * self.step
        if self.positions is None:
            return x
        return x + (self.positions[: ids.shape[-1]] if places is None else self.positions[places])

    def features(
        self, ids: Int[Tensor, "batch n"], mask: Bool[Tensor, "batch *rest"] | None = None
    ) -> Float[Tensor, "batch n d"]:
        """What the last block puts out.

        `mask` is True for real tokens, (batch, n), or where k may attend to l, (batch, n, n);
        a causal network is causal in addition.
        """
        n = ids.shape[-1]
        if self.positions is not None and n > len(self.positions):
            raise ValueError(f"{n} tokens, but the table of positions has {len(self.positions)}")
        z = self.embed(ids)
        seen = masks.and_window(masks.per_query(mask), n, self.shape.window, ids.device)
        for block in self.blocks:
            z = block(z, seen, causal=self.shape.causal)
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
        if self.step is not None:
            x = x + sentences.positions[:, None].to(x.dtype) * self.step
        for block in self.blocks:
            x = block.ragged(x, sentences, causal=self.shape.causal, window=self.shape.window)
        logits: Tensor = self.head(x)
        return logits

    @torch.no_grad()
    def expand(self) -> TokenClassifier:
        """The same network with every matrix written out; tables are shared."""
        blocks = [block.expand() for block in self.blocks]
        layers = blocks[0].attention.settings | blocks[0].feedforward.settings
        shape = replace(self.shape, gates=0, reads=0, writes=0, codes=0, **layers)
        given = shape, self.table, self.positions, blocks, self.head
        return TokenClassifier.assemble(*given, step=self.step)


def dtype_name(weights: TokenClassifier | Tensor) -> str:
    """For people and files: float32, float64."""
    return str(weights.dtype).removeprefix("torch.")


def has_label_numbers(head: nn.Linear) -> bool:
    """Whether row c of a head is 2c p, with bias -c^2, for label c = 1, 2, ...

    With y = p^T z its logits are 2c y - c^2 = y^2 - (y - c)^2: the nearest label wins.
    """
    number = torch.arange(1, len(head.bias) + 1, dtype=head.weight.dtype)
    return head.bias.equal(-(number**2)) and head.weight.equal(number[:, None] * head.weight[:1])
