"""One-layer rank-1 Transformers for Hugging Face: the model, language models, and classifiers of
tokens and of texts.

The files `*_rankone.py` stand alone: they are saved with the weights, so that
`trust_remote_code=True` opens them where rankone is not installed.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import GenerationMixin
from transformers.modeling_outputs import (
    BaseModelOutput,
    CausalLMOutputWithPast,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)

from .cache_rankone import RankOneCache
from .configuration_rankone import RankOneConfig
from .layers_rankone import NextTokens
from .pretrained_rankone import RankOnePreTrainedModel, check_shape


class RankOneModel(RankOnePreTrainedModel):
    """Block(... Block(X + E)), X rows of the token table, E rows of positions: the vector of every
    token in its sentence, which a head would read."""

    _keys_to_ignore_on_load_unexpected: ClassVar[list[str]] = [r"^head\."]

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__(config)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> BaseModelOutput | tuple[Tensor, ...]:
        """`attention_mask` is not 0 at real tokens. ``last_hidden_state`` is (batch, length, d)."""
        z, kept = self._run(input_ids, attention_mask, output_hidden_states, output_attentions)
        return self._returned(BaseModelOutput(last_hidden_state=z, **kept), return_dict)


class RankOneForTokenClassification(RankOnePreTrainedModel):
    """logits = head(Block(... Block(X + E))): `RankOneModel` with a linear head."""

    accepts_loss_kwargs = True

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> TokenClassifierOutput | tuple[Tensor, ...]:
        """`attention_mask` is not 0 at real tokens; `labels` are not counted where they are -100.

        The loss is the mean over the labels that count, or their sum by `num_items_in_batch`.
        """
        check_shape("labels", labels, input_ids)
        z, kept = self._run(input_ids, attention_mask, output_hidden_states, output_attentions)
        logits = self.head(z)
        loss = None if labels is None else token_loss(logits, labels, num_items_in_batch)
        output = TokenClassifierOutput(loss=loss, logits=logits, **kept)
        return self._returned(output, return_dict)


def token_loss(logits: Tensor, labels: Tensor, count: Tensor | int | None) -> Tensor:
    """The mean over labels that are not -100, or their sum by `count`."""
    total = nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.to(logits.device).flatten(), reduction="sum"
    )
    if count is None:
        count = (labels != -100).sum().clamp(min=1)
    return total / count


class RankOneForCausalLM(RankOnePreTrainedModel, GenerationMixin):
    """logits = head(Block(... Block(X + E))), over the tokens of the tokenizer: the next token."""

    accepts_loss_kwargs = True
    _is_stateful = True  # what went by cannot be taken back

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__(config)
        self.head = NextTokens(config)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        past_key_values: RankOneCache | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        num_items_in_batch: Tensor | int | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
        **_: Any,
    ) -> CausalLMOutputWithPast | tuple[Tensor, ...]:
        """`attention_mask` is not 0 at real tokens, wherever these are; padding is never real, nor
        is the end of a document, which nothing follows. With `past_key_values` it may also be that
        of all tokens so far.

        `labels` are tokens, such as `input_ids`, and each is compared with the logits before it. It
        does not count where it is -100, is padding, or follows the token that begins a document: of
        that one nothing is asked. The loss is in the precision of the model.
        """
        check_shape("labels", labels, input_ids)
        mask, padded = attention_mask, input_ids == self.config.pad_token_id
        if mask is not None and past_key_values is not None:
            mask = mask[:, mask.shape[1] - input_ids.shape[1] :]
        check_shape("attention_mask", mask, input_ids)
        beyond = padded | (input_ids == self.config.eos_token_id)
        if beyond.any():
            mask = ~beyond if mask is None else mask * ~beyond
        past = self._cache(past_key_values, use_cache, output_attentions)
        z, kept = self._run(input_ids, mask, output_hidden_states, output_attentions, past=past)
        few = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        plan = None if torch.is_grad_enabled() else self.plan
        head = self.head if plan is None or plan.head is None else plan.head
        logits, loss = head(z[:, few]), None
        if labels is not None:
            begins = input_ids[:, :-1] == self.config.bos_token_id
            wanted = labels[:, 1:].masked_fill(begins | padded[:, 1:], -100)
            loss = token_loss(logits[:, :-1], wanted, num_items_in_batch)
        output = CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=past, **kept)
        return self._returned(output, return_dict)

    def _cache(
        self, given: Any, use: bool | None, with_weights: bool | None
    ) -> RankOneCache | None:
        """The cache that is given, or a new one if it is to be used."""
        if use is None:
            use = not torch.is_grad_enabled() and not with_weights
        if given is None and not use:
            return None
        if with_weights:
            raise ValueError("Weights of attention are not kept: give `use_cache=False`.")
        if given is None:
            return self.plan.cache()
        if not isinstance(given, RankOneCache):
            raise ValueError(
                f"`past_key_values` is a {type(given).__name__}, but this model remembers other "
                "things than keys and values. Leave it out, and take that of the output."
            )
        return given

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        next_sequence_length: int | None = None,
        position_ids: Tensor | None = None,  # noqa: ARG002  places are counted here
        is_first_iteration: bool = False,  # noqa: ARG002
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The last tokens, and all else as it is: that of transformers takes as long as a token."""
        if next_sequence_length is not None:
            input_ids = input_ids[:, -next_sequence_length:]
        return {"input_ids": input_ids, **kwargs}

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # `forward` makes its own


class RankOneForSequenceClassification(RankOnePreTrainedModel):
    """logits = head(z), z the vector that `RankOneModel` gives the last token of a text, which
    stands for all of it."""

    accepts_loss_kwargs = False

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> SequenceClassifierOutput | tuple[Tensor, ...]:
        """`attention_mask` is not 0 at real tokens, wherever these are; without it all are real.

        `labels`, one for each text, and the loss are those of transformers (`problem_type`).
        """
        z, kept = self._run(
            input_ids, attention_mask, output_hidden_states, output_attentions, last=True
        )
        logits, loss = self.head(z), None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config)
        output = SequenceClassifierOutput(loss=loss, logits=logits, **kept)
        return self._returned(output, return_dict)
