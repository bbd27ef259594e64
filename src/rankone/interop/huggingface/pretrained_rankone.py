"""What all rank-1 Transformers for Hugging Face share: tables and blocks, how they are run, trained
and saved. This file is saved with the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Self

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.utils import logging

from .cache_rankone import RankOneCache
from .configuration_rankone import CHANGED, CONSTRUCTED, RankOneConfig
from .layers_rankone import (
    Attention,
    Block,
    DenseFeedForward,
    GatedFeedForward,
    NextTokens,
    Rank1FeedForward,
    chosen,
)
from .plan_rankone import Plan

logger = logging.get_logger(__name__)


class RankOnePreTrainedModel(PreTrainedModel):
    """What all models share: tables and blocks, how they are run, trained and saved.

    A sentence is its tokens that are not masked, in their order: however it is padded, its vectors
    are the same.
    """

    config_class = RankOneConfig
    base_model_prefix = "rankone"

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__(config)
        d, length = config.hidden_size, config.max_position_embeddings
        self.table = nn.Parameter(torch.empty(config.rows, d))
        self.positions = nn.Parameter(torch.empty(length, d)) if length else None
        self.step = nn.Parameter(torch.empty(d)) if config.window else None
        self._plan: Plan | None = None
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_hidden_layers))

    def _run(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        output_hidden_states: bool | None,
        output_attentions: bool | None,
        *,
        last: bool = False,
        past: RankOneCache | None = None,
    ) -> tuple[Tensor, dict[str, tuple[Tensor, ...] | None]]:
        """The vectors of all tokens, or of the `last` one of each row, and the other outputs that
        were asked for. The tokens continue those that `past` has seen, which will have seen them,
        too."""
        if input_ids.numel() == 0:
            input_ids = input_ids.long()  # no tokens: tokenizers make that a tensor of floats
        made_in = getattr(torch, self.config.made_in or "", self.table.dtype)
        if torch.finfo(self.table.dtype).bits < torch.finfo(made_in).bits:
            logger.warning_once(
                f"The weights were made in {made_in} and are run in {self.table.dtype}: contexts "
                "that lie close together may get wrong labels."
            )
        config = self.config
        with_states = (
            config.output_hidden_states if output_hidden_states is None else output_hidden_states
        )
        with_weights = config.output_attentions if output_attentions is None else output_attentions
        plan = None
        if past is not None or self._looks_up(with_weights):
            plan = self.plan
            past = plan.cache() if past is None else past
        places, mask = self._check(input_ids, attention_mask, past)
        if mask is not None:
            input_ids = torch.where(mask, input_ids, 0)  # under the mask anything may stand
        input_ids = self._rows(input_ids)
        n = input_ids.shape[1]
        at = _last(input_ids, mask) if last else None
        z = self._embedded(input_ids, places)
        states, attentions = [z], []
        attend = self._attend(places, mask) if past is None else None
        for i, block in enumerate(self.blocks if n else (), start=1):
            enough = i == len(self.blocks) and not with_states  # nobody sees the other tokens
            if plan is None or past is None:
                z, weights = block(z, attend, at if enough else None)
            else:
                z, weights = plan.run(i - 1, z, past, mask, input_ids, places), None
            states.append(z)
            attentions.append(weights)
        if at is not None and with_states:
            z = chosen(z, at)
        return z, {
            "hidden_states": tuple(states) if with_states else None,
            "attentions": tuple(attentions) if with_weights else None,
        }

    def _embedded(self, rows: Tensor, places: Tensor) -> Tensor:
        """X + E, for rows of the token table at these places."""
        z = self.table[rows]
        if self.positions is not None:
            z = z + self.positions[places]
        if self.step is not None:
            z = z + places[..., None].to(z.dtype) * self.step
        return z

    def _looks_up(self, with_weights: bool | None) -> bool:
        """Whether a long text is run with a memory that is then forgotten: where tokens see a part
        of it, or there are many units, and nobody asks for gradients or weights of attention."""
        far = self.config.window or self.config.next_tokens
        return bool(far and not torch.is_grad_enabled() and not with_weights)

    @property
    def plan(self) -> Plan:
        """How the weights that there are now are run."""
        if self._plan is None or not self._plan.holds():
            self._plan = Plan(self)
        return self._plan

    def _attend(self, places: Tensor, mask: Tensor | None) -> Tensor | None:
        """Where a token may attend to another one: fits (batch, 1, n, n)."""
        attend = None if mask is None else mask[:, None, None, :]
        if self.config.causal:
            n = places.shape[1]
            causal = torch.ones(n, n, dtype=torch.bool, device=places.device).tril()
            attend = causal if attend is None else attend & causal
        if self.config.window:
            near = places[:, None] > places[:, :, None] - self.config.window
            attend = near[:, None] & attend
        return attend

    def _returned(self, output: Any, return_dict: bool | None) -> Any:
        as_dict = self.config.return_dict if return_dict is None else return_dict
        return output if as_dict else output.to_tuple()

    def train(self, mode: bool = True) -> Self:
        if mode and self.config.made_by == CONSTRUCTED:
            logger.warning_once(
                "These weights were constructed, not learned, and training destroys what they know:"
                " they tell contexts apart by differences that no gradient step leaves intact. Use "
                "them as they are; to train, start from a new `RankOneConfig`."
            )
        super().train(mode)
        return self

    def save_pretrained(self, save_directory: Any, *args: Any, **kwargs: Any) -> None:
        """As in transformers; weights that were changed since are not called constructed."""
        state = kwargs.get("state_dict") or self.state_dict()
        if self.config.made_by == CONSTRUCTED and checksum(state) != self.config.made_sha256:
            self.config.made_by, self.config.made_sha256 = CHANGED, None
        super().save_pretrained(save_directory, *args, **kwargs)

    def resize_token_embeddings(self, *_: Any, **__: Any) -> None:
        raise ValueError(
            "The token table cannot be resized: a row of the token table is a word of the "
            "tokenizer, the last one any other word. Make a new model for other words."
        )

    def _check(
        self, ids: Tensor, attention_mask: Tensor | None, past: RankOneCache | None
    ) -> tuple[Tensor, Tensor | None]:
        """The place of every token in its sentence, and which tokens are real."""
        if ids.dim() != 2:
            raise ValueError(f"`input_ids` must be (batch, length), not {tuple(ids.shape)}.")
        check_shape("attention_mask", attention_mask, ids)
        if attention_mask is None:
            mask, places = None, torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
        else:
            mask = attention_mask != 0
            places = mask.long().cumsum(1) - 1
        if past is not None and past.count is not None:
            places = places + past.count[:, None]
        if mask is not None:
            places = torch.where(mask, places, 0)
        longest = int(places.max()) + 1 if places.numel() else 0
        if self.positions is not None and longest > len(self.positions):
            raise ValueError(
                f"A sentence of {longest} tokens, but the table of positions has "
                f"{len(self.positions)}. Split the sentence, or make the model with a larger "
                "`max_length`."
            )
        return places, mask

    def _rows(self, ids: Tensor) -> Tensor:
        """The row of every token; those beyond the table have the last one."""
        rows = len(self.table)
        known = max(self.config.vocab_size, self.config.tokenizer_size)
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < known:
            wrong = int(ids.max()) if int(ids.max()) >= known else int(ids.min())
            raise ValueError(
                f"`input_ids` holds {wrong}, but the token table has rows 0 to {known - 1}. Is the "
                "tokenizer the one that was saved with the model?"
            )
        return ids.clamp(max=rows - 1)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Tables by `initializer_range`, matrices by their fan-in; biases 0, those of units of rank
        1 drawn, for these bend at one point each. Indices count through what there is."""
        d, q = self.config.hidden_size, max(1, self.config.intermediate_size)
        if isinstance(module, RankOnePreTrainedModel):
            for table in (module.table, module.positions, module.step):
                if table is not None:
                    init.normal_(table, std=self.config.initializer_range)
        elif isinstance(module, Attention):
            for parameter in module.parameters():
                init.normal_(parameter, std=d**-0.5)
        elif isinstance(module, DenseFeedForward):
            init.normal_(module.weight1, std=d**-0.5)
            init.normal_(module.weight2, std=q**-0.5)
            init.zeros_(module.bias1)
            init.zeros_(module.bias2)
        elif isinstance(module, Rank1FeedForward):
            init.ones_(module.gain)
            init.normal_(module.bias1)
            init.normal_(module.out_gain, std=q**-0.5)
            init.normal_(module.direction, std=d**-0.5)
            init.normal_(module.out_direction, std=d**-0.5)
            init.zeros_(module.bias2)
        elif isinstance(module, GatedFeedForward):
            init.normal_(module.gates, std=d**-0.5)
            init.ones_(module.penalty)
            init.normal_(module.slopes, std=module.slopes.shape[1] ** -0.5)
            init.zeros_(module.bias1)
            init.normal_(module.amplitude, std=q**-0.5)
            init.normal_(module.codes)
            gates, codes = len(module.gates), len(module.codes)
            for index in (module.position, module.minus):
                init.zeros_(index)
            for index, count in (
                (module.word, gates),
                (module.plus, codes),
                (module.reads, d),
                (module.writes, d),
            ):
                init.copy_(index, torch.arange(len(index), device=index.device) % count)
        elif isinstance(module, nn.Linear):
            if isinstance(module, NextTokens):
                init.copy_(
                    module.token, torch.arange(len(module.token), device=module.token.device)
                )
            init.uniform_(module.weight, -(d**-0.5), d**-0.5)
            init.uniform_(module.bias, -(d**-0.5), d**-0.5)


def _last(ids: Tensor, mask: Tensor | None) -> Tensor:
    """The place of the last real token of every row; refuses rows without one."""
    real = (torch.ones_like(ids) if mask is None else mask.long()).cumsum(1)
    counts = real[:, -1] if ids.shape[1] else real.sum(1)
    if len(counts) and int(counts.min()) < 1:
        empty = int(counts.argmin()) + 1
        raise ValueError(f"Text {empty} of the batch has no token, so it has no label.")
    return real.argmax(1) if len(counts) else counts  # the first place that has counted them all


def check_shape(name: str, given: Tensor | None, ids: Tensor) -> None:
    if given is not None and given.shape != ids.shape:
        raise ValueError(
            f"`{name}` is {tuple(given.shape)}, but `input_ids` is {tuple(ids.shape)}."
        )


def checksum(state: Mapping[str, Tensor]) -> str:
    """SHA-256 of the names, types, shapes and bits of these tensors."""
    found = sha256()
    for name, tensor in sorted(state.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().reshape(-1)
        flat = flat.as_strided(flat.shape, (1,))  # one number alone may have any stride
        found.update(flat.view(torch.uint8).numpy().data)
    return found.hexdigest()
