"""A model directory in the layout of Hugging Face, read as one of ours, without transformers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankone import choices
from rankone.documents import convert_document, read_document
from rankone.errors import ModelError
from rankone.nn.classifier import Some, SomeOrNone

Words = tuple[str, ...]

MODEL_TYPE = "rankone"
CONFIG, TOKENIZER = "config.json", "tokenizer.json"
ANEW = "export the model again"
EXPORTED = "take the tokenizer that was exported with the weights"
# What a field of `Architecture` is called in a configuration of transformers.
NAMES = {
    "vocabulary": "vocab_size",
    "dim": "hidden_size",
    "hidden": "intermediate_size",
    "positions": "max_position_embeddings",
    "depth": "num_hidden_layers",
    "attention": "attention",
    "heads": "num_attention_heads",
    "head_size": "head_dim",
    "feedforward": "feedforward",
    "causal": "causal",
    "gates": "gates",
    "reads": "reads",
    "writes": "writes",
    "codes": "codes",
    "window": "window",
}


@dataclass(frozen=True)
class HubConfig:
    """config.json, as far as it is read; `RankOneConfig` says what the fields are."""

    vocab_size: Some
    hidden_size: Some
    intermediate_size: SomeOrNone
    max_position_embeddings: SomeOrNone
    num_hidden_layers: Some
    attention: choices.Attention
    num_attention_heads: Some
    head_dim: Some
    feedforward: choices.FeedForward
    causal: bool
    gates: SomeOrNone = 0  # earlier exports do not have these five
    reads: SomeOrNone = 0
    writes: SomeOrNone = 0
    codes: SomeOrNone = 0
    window: SomeOrNone = 0
    reading: dict[str, Any] | None = None
    # transformers leaves these two out, as its default
    id2label: dict[str, str] = field(default_factory=lambda: {"0": "LABEL_0", "1": "LABEL_1"})


@dataclass(frozen=True)
class WordLevel:
    """The model in tokenizer.json."""

    type: str
    unk_token: str = ""
    vocab: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TokenizerFile:
    """tokenizer.json, as far as it is read."""

    model: WordLevel


def translate(config: dict[str, Any], home: Path) -> tuple[dict[str, Any], Words, Words]:
    """The configuration as we write it, the vocabulary and the labels."""
    version = config.get("format_version")
    found = convert_document(config, HubConfig, home / CONFIG, remedy=ANEW)
    labels = _in_order(found.id2label, home / CONFIG, "id2label")
    network = {ours: getattr(found, theirs) for ours, theirs in NAMES.items()}
    ours = {
        "format": MODEL_TYPE,
        "version": version,
        "network": {**network, "labels": len(labels)},
        "reading": found.reading or {},
    }
    return ours, _vocabulary(home / TOKENIZER), labels


def _vocabulary(path: Path) -> Words:
    """Every word of a word-level tokenizer except the last, which is for unknown words."""
    model = read_document(path, TokenizerFile, remedy=EXPORTED, missing=EXPORTED).model
    if model.type != "WordLevel":
        what = "not a word-level tokenizer: a row of the token table is a word"
        raise ModelError(what, where=str(path), remedy=EXPORTED)
    words = _in_order({str(row): word for word, row in model.vocab.items()}, path, "model.vocab")
    if not words or words[-1] != model.unk_token:
        what = "the last row of the token table is not the unknown word"
        raise ModelError(what, where=str(path), remedy=EXPORTED)
    return words[:-1]


def _in_order(names: dict[str, str], path: Path, key: str) -> Words:
    """The values of {"0": ..., "1": ...}."""
    try:
        return tuple(names[str(i)] for i in range(len(names)))
    except KeyError:
        what = f"{key} does not number its words from 0"
        raise ModelError(what, where=str(path), remedy=ANEW) from None
