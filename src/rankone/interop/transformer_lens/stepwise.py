"""A model for Hugging Face whose every step is a module, so that each can be wrapped."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from rankone.interop.huggingface.pretrained_rankone import RankOnePreTrainedModel


class Steps(nn.Module):
    """E_k = k e: the positions of a model with a window."""

    def __init__(self, step: nn.Parameter) -> None:
        super().__init__()
        self.step = step

    def forward(self, places: Tensor) -> Tensor:
        return places[..., None].to(self.step.dtype) * self.step


class Stepwise(RankOnePreTrainedModel):
    """The model as written: embeddings are modules, every block and the head are called, and there
    is no memory, cache or look-up that goes past them."""

    token_embedding: nn.Module
    position_embedding: nn.Module | None
    plan: Any = None

    def _check(
        self, ids: Tensor, attention_mask: Tensor | None, past: Any
    ) -> tuple[Tensor, Tensor | None]:
        """A number beyond all tokens can only be padding, mask or none."""
        config = self.config
        padded = ids == config.pad_token_id
        beyond = config.pad_token_id >= max(config.vocab_size, config.tokenizer_size)
        if attention_mask is None and beyond and padded.any():
            attention_mask = ~padded
        return super()._check(ids, attention_mask, past)

    def _embedded(self, rows: Tensor, places: Tensor) -> Tensor:
        z: Tensor = self.token_embedding(rows)
        return z if self.position_embedding is None else z + self.position_embedding(places)

    def _looks_up(self, *_: Any) -> bool:
        return False

    def _cache(self, *_: Any) -> None:
        return None


KINDS: dict[type, type] = {}


def make_stepwise(model: RankOnePreTrainedModel) -> None:
    """Change a model into its `Stepwise` kind, with the same parameters."""
    if isinstance(model, Stepwise):
        return
    kind = type(model)
    if kind not in KINDS:  # with the same name, under which the model is saved
        KINDS[kind] = type(kind.__name__, (Stepwise, kind), {"__module__": __name__})
    model.__class__ = KINDS[kind]
    model.config.output_hidden_states = True  # else the last block skips tokens that no head reads
    model.token_embedding = _embedding(model.table)
    if model.step is not None:
        model.position_embedding = Steps(model.step)
    else:
        table = model.positions
        model.position_embedding = None if table is None else _embedding(table)


def _embedding(table: nn.Parameter) -> nn.Embedding:
    rows, d = table.shape
    found = nn.Embedding(rows, d, device="meta")
    found.weight = table
    return found
