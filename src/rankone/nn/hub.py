"""A model directory in the layout of Hugging Face, read as one of ours; from its files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rankone.documents import ANEW, read_document
from rankone.errors import ModelError

Words = tuple[str, ...]

MODEL_TYPE = "rankone"
CONFIG, TOKENIZER = "config.json", "tokenizer.json"
LABELS = {"0": "LABEL_0", "1": "LABEL_1"}  # transformers leaves them out, as its default
# What a field of `Network` is called in a configuration of transformers.
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
}


def is_hub(config: Any) -> bool:
    return isinstance(config, dict) and config.get("model_type") == MODEL_TYPE


def translate(config: dict[str, Any], home: Path) -> tuple[dict[str, Any], Words, Words]:
    """The configuration as we write it, the vocabulary and the labels."""
    labels = _in_order(config.get("id2label", LABELS), home / CONFIG, "id2label")
    network = {ours: config[theirs] for ours, theirs in NAMES.items() if theirs in config}
    ours = {
        "format": MODEL_TYPE,
        "version": config.get("format_version"),
        "network": {**network, "labels": len(labels)},
        "reading": config.get("reading") or {},
    }
    return ours, _vocabulary(home / TOKENIZER), labels


def _vocabulary(path: Path) -> Words:
    """Every word of a word-level tokenizer but the last, which stands for unknown ones."""
    tokenizer = read_document(path, dict[str, Any])
    model = tokenizer.get("model")
    if not isinstance(model, dict) or model.get("type") != "WordLevel":
        raise ModelError(
            "not a word-level tokenizer: a row of the token table is a word",
            where=str(path),
            remedy="take the tokenizer that was exported with the weights",
        )
    vocab = model.get("vocab")
    rows = {str(row): word for word, row in vocab.items()} if isinstance(vocab, dict) else None
    words = _in_order(rows, path, "vocab")
    if not words or words[-1] != model.get("unk_token"):
        raise ModelError(
            "the last row of the token table is not the unknown word",
            where=str(path),
            remedy="take the tokenizer that was exported with the weights",
        )
    return words[:-1]


def _in_order(names: Any, path: Path, key: str) -> Words:
    """The values of {"0": ..., "1": ...}."""
    if isinstance(names, dict):
        values: tuple[Any, ...] = tuple(names.get(str(i)) for i in range(len(names)))
        if all(isinstance(value, str) for value in values):
            return values
    raise ModelError(f"{key} does not number its words from 0", where=str(path), remedy=ANEW)
