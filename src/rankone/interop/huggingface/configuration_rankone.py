"""The configuration of one-layer rank-1 Transformers for Hugging Face.

This file depends on nothing else here and is saved with the weights.
"""

from __future__ import annotations

import operator
from typing import Any

from transformers import PreTrainedConfig

FORMAT_VERSION = 1
CONSTRUCTED, CHANGED = "construction", "construction, then changed"  # `made_by`
CHOICES = {
    "attention": ("rank1", "softmax", "hardmax"),
    "feedforward": ("rank1", "dense", "gated"),
    "causal": (True, False),
    "made_by": (CONSTRUCTED, CHANGED, None),
}
# Every class is found with `trust_remote_code`, whichever one was saved.
AUTO_MAP = {
    "AutoConfig": "configuration_rankone.RankOneConfig",
    "AutoModel": "modeling_rankone.RankOneModel",
    "AutoModelForCausalLM": "modeling_rankone.RankOneForCausalLM",
    "AutoModelForTokenClassification": "modeling_rankone.RankOneForTokenClassification",
    "AutoModelForSequenceClassification": "modeling_rankone.RankOneForSequenceClassification",
}


class RankOneConfig(PreTrainedConfig):
    """The shape of a model.

    `attention` is "rank1" (eq. 20), or "softmax" or "hardmax" (eq. 2 and 5) with
    `num_attention_heads` heads of size `head_dim`; `feedforward` is "dense" (eq. 3), "rank1" (the
    same with matrices of rank 1, kept as factors) or "gated" (the same with units that belong to
    groups of tokens), with `intermediate_size` hidden units (default 4 `hidden_size`). `gates`,
    `reads`, `writes` and `codes` are sizes of a gated layer, 0 for other kinds.
    `max_position_embeddings` 0 or None means no positions. The last row of the token table stands
    for every unknown word, and pads; where the tokenizer has more than `vocab_size` tokens,
    `tokenizer_size` of them, it stands for all those beyond. `reading` tells how the corpus was
    read.

    With a `window` a token sees so many tokens, itself the last of them, and positions are
    multiples of one vector, so that no text is too long. A language model has logits for
    `vocab_size` tokens, of which `next_tokens` may follow others, and `table_rows` rows in its
    token table (0: as many as tokens).

    `made_by` is "construction" for weights that were constructed, not trained, and `made_sha256`
    is their checksum; `save_pretrained` writes "construction, then changed" once they are no longer
    the same. `made_in` is the type of number that the weights need. None where it is not known.
    """

    model_type = "rankone"

    def __init__(
        self,
        vocab_size: int = 2,
        hidden_size: int = 32,
        intermediate_size: int | None = None,
        max_position_embeddings: int | None = 512,
        num_hidden_layers: int = 1,
        attention: str = "rank1",
        num_attention_heads: int = 1,
        head_dim: int = 1,
        feedforward: str = "dense",
        causal: bool = False,
        gates: int = 0,
        reads: int = 0,
        writes: int = 0,
        codes: int = 0,
        window: int = 0,
        next_tokens: int = 0,
        table_rows: int = 0,
        tokenizer_size: int = 0,
        initializer_range: float = 0.02,
        reading: dict[str, Any] | None = None,
        made_by: str | None = None,
        made_in: str | None = None,
        made_sha256: str | None = None,
        format_version: int = FORMAT_VERSION,
        **kwargs: Any,
    ) -> None:
        if format_version != FORMAT_VERSION:
            raise ValueError(
                f"The model was written in version {format_version!r} of the rankone format, but "
                f"this code reads version {FORMAT_VERSION}. Export the model again, or load it "
                "with the code that was saved with it (`trust_remote_code=True`, in a process "
                "that does not import rankone)."
            )
        self.vocab_size = _size("vocab_size", vocab_size, least=1)
        self.hidden_size = _size("hidden_size", hidden_size, least=1)
        hidden = 4 * self.hidden_size if intermediate_size is None else intermediate_size
        self.intermediate_size = _size("intermediate_size", hidden, least=0)
        self.max_position_embeddings = max_position_embeddings
        if max_position_embeddings is not None:
            self.max_position_embeddings = _size(
                "max_position_embeddings", max_position_embeddings, least=0
            )
        self.num_hidden_layers = _size("num_hidden_layers", num_hidden_layers, least=1)
        self.attention = attention
        self.num_attention_heads = _size("num_attention_heads", num_attention_heads, least=1)
        self.head_dim = _size("head_dim", head_dim, least=1)
        self.feedforward = feedforward
        self.causal = causal
        least = 1 if feedforward == "gated" else 0
        self.gates = _size("gates", gates, least)
        self.reads = _size("reads", reads, least)
        self.writes = _size("writes", writes, least)
        self.codes = _size("codes", codes, least)
        self.window = _size("window", window, least=0)
        self.next_tokens = _size("next_tokens", next_tokens, least=0)
        self.table_rows = _size("table_rows", table_rows, least=0)
        self.tokenizer_size = _size("tokenizer_size", tokenizer_size, least=0)
        self.initializer_range = initializer_range
        self.reading = reading or {}
        self.made_by = made_by
        self.made_in = made_in
        self.made_sha256 = made_sha256
        self.format_version = format_version
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"`{name}` must be one of {choices}, not {getattr(self, name)!r}.")
        if self.window and (self.max_position_embeddings or not causal):
            raise ValueError("`window` is for causal models without a table of positions.")
        if attention == "rank1" and (self.num_attention_heads, self.head_dim) != (1, 1):
            raise ValueError('`attention="rank1"` has one head of size 1.')
        kwargs.setdefault("pad_token_id", self.vocab_size - 1)
        kwargs.setdefault("auto_map", dict(AUTO_MAP))
        super().__init__(**kwargs)

    @property
    def rows(self) -> int:
        """Rows of the token table."""
        return self.table_rows or self.vocab_size


def _size(name: str, given: Any, least: int) -> int:
    """A whole number, numpy's too."""
    if isinstance(given, bool) or not hasattr(given, "__index__") or given < least:
        raise ValueError(f"`{name}` must be a whole number from {least}, not {given!r}.")
    return operator.index(given)
