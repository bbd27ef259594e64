"""A model directory in the layout of Hugging Face, read as one of ours, without transformers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from rankone import choices
from rankone.corpus.tasks import BEGIN, END
from rankone.corpus.tokenizers import TOKENIZERS
from rankone.documents import convert_document, read_document
from rankone.errors import ModelError
from rankone.nn.classifier import Some, SomeOrNone

Words = tuple[str, ...]

MODEL_TYPE = "rankone"
CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
TOKEN = "head.token"  # a tensor: the number of the token that each label of a language model is
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
    max_position_embeddings: SomeOrNone | None
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
    next_tokens: SomeOrNone = 0  # labels of a language model, which has fewer rows than tokens
    table_rows: SomeOrNone = 0
    eos_token_id: int | list[int] | None = None
    reading: dict[str, Any] | None = None
    # transformers leaves these two out, as its default
    id2label: dict[str, str] = field(default_factory=lambda: {"0": "LABEL_0", "1": "LABEL_1"})


@dataclass(frozen=True)
class TokenizerModel:
    """The model in tokenizer.json; a list has the tokens in the order of their numbers."""

    type: str
    unk_token: str | None = None
    vocab: dict[str, int] | list[tuple[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class TokenizerFile:
    """tokenizer.json, as far as it is read."""

    model: TokenizerModel


def letters_of_bytes() -> list[str]:
    """How tokenizers of Hugging Face write the bytes from 0 to 255: those that print stand for
    themselves, and the characters after the last byte for the others, in their order."""
    printed = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = count(0x100)
    return [chr(byte if byte in printed else next(others)) for byte in range(256)]


def translate(config: dict[str, Any], home: Path) -> tuple[dict[str, Any], Words, Words]:
    """The configuration as we write it, the vocabulary and the labels."""
    version = config.get("format_version")
    found = convert_document(config, HubConfig, home / CONFIG, remedy=ANEW)
    tokenizer = (found.reading or {}).get("tokenizer", "words")
    rows = found.table_rows or found.vocab_size
    vocabulary = _vocabulary(home / TOKENIZER, tokenizer, rows - 1)
    if found.next_tokens:
        labels = _next_tokens(home / WEIGHTS, vocabulary, found.eos_token_id)
    else:
        labels = _in_order(found.id2label, home / CONFIG, "id2label")
    network = {ours: getattr(found, theirs) or 0 for ours, theirs in NAMES.items()}
    network |= {"vocabulary": rows, "causal": found.causal}
    ours = {
        "format": MODEL_TYPE,
        "version": version,
        "network": {**network, "labels": len(labels)},
        "reading": found.reading or {},
    }
    return ours, vocabulary, labels


def _next_tokens(path: Path, vocabulary: Words, end: int | list[int] | None) -> Words:
    """The labels of a language model: their numbers are with the weights."""
    try:
        if path.exists() and not path.is_file():
            raise OSError("not a file")
        with safe_open(path, "np") as file:
            numbers = file.get_tensor(TOKEN).tolist()
    except (OSError, TypeError, SafetensorError) as error:
        what = f"cannot be read ({error})"
        raise ModelError(what, where=str(path), remedy=ANEW) from None
    listed = isinstance(numbers, list) and all(isinstance(i, int) for i in numbers)
    if not listed or not all(0 <= i < len(vocabulary) or i == end for i in numbers):
        what = f"{TOKEN} holds numbers that are no tokens of the model"
        raise ModelError(what, where=str(path), remedy=ANEW)
    return tuple(END if i == end else vocabulary[i] for i in numbers)


def _vocabulary(path: Path, tokenizer: object, rows: int) -> Words:
    """The words of these rows of the token table. Those of a word-level tokenizer of ours are all
    but the last, which is for unknown words; the file of another may have more than the table."""
    model = read_document(path, TokenizerFile, remedy=EXPORTED, missing=EXPORTED).model
    ours = tokenizer in TOKENIZERS
    if ours and model.type != "WordLevel":
        what = "not a word-level tokenizer: a row of the token table is a word"
        raise ModelError(what, where=str(path), remedy=EXPORTED)
    found = model.vocab if isinstance(model.vocab, dict) else dict(_numbered(model.vocab))
    names = {str(row): word for word, row in found.items() if ours or row < rows}
    words = _in_order(names, path, "model.vocab")
    if not ours:
        return words
    if not words or words[-1] != model.unk_token:
        what = "the last row of the token table is not the unknown word"
        raise ModelError(what, where=str(path), remedy=EXPORTED)
    if tokenizer != "bytes":
        return words[:-1]
    byte = {letter: f"{i:02x}" for i, letter in enumerate(letters_of_bytes())}
    byte[BEGIN] = BEGIN
    if not set(words[:-1]) <= set(byte):
        what = "a token that does not stand for a byte"
        raise ModelError(what, where=str(path), remedy=EXPORTED)
    return tuple(byte[word] for word in words[:-1])


def _numbered(vocab: list[tuple[str, float]]) -> Iterator[tuple[str, int]]:
    return ((word, row) for row, (word, _) in enumerate(vocab))


def _in_order(names: dict[str, str], path: Path, key: str) -> Words:
    """The values of {"0": ..., "1": ...}."""
    try:
        return tuple(names[str(i)] for i in range(len(names)))
    except KeyError:
        what = f"{key} does not number its words from 0"
        raise ModelError(what, where=str(path), remedy=ANEW) from None
