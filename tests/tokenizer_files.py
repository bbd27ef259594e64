"""Tokenizers of other kinds, trained on a few lines, as a tokenizer.json holds them."""

from __future__ import annotations

from collections.abc import Callable

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

LINES = [
    "The rain came, and the roof leaked; nobody slept.",
    "A rose is a rose is a rose, said the gardener.",
    "Warm bread in the morning! Cold tea at night?",
    "Nobody knows  what the roof said to the rain.\n\nA rose, perhaps.",
] * 4


def byte_level() -> Tokenizer:
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "</s>"]
    found.train_from_iterator(
        LINES,
        trainers.BpeTrainer(
            vocab_size=320, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        ),
    )
    found.add_tokens([AddedToken("gardener", normalized=False)])
    found.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[(name, i) for i, name in enumerate(special)]
    )
    found.enable_padding(length=100)
    found.enable_truncation(9)
    return found


def unigram() -> Tokenizer:
    found = Tokenizer(models.Unigram())
    found.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    found.decoder = decoders.Metaspace(prepend_scheme="never")
    found.train_from_iterator(
        LINES,
        trainers.UnigramTrainer(
            vocab_size=60, special_tokens=["<pad>", "<unk>"], unk_token="<unk>", show_progress=False
        ),
    )
    return found


def byte_fallback() -> Tokenizer:
    found = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    found.normalizer = normalizers.Replace(" ", "\u2581")
    found.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    special = ["<unk>", *(f"<0x{i:02X}>" for i in range(256))]
    found.train_from_iterator(
        LINES,
        trainers.BpeTrainer(vocab_size=320, special_tokens=special, show_progress=False),
    )
    return found


FILES: dict[str, Callable[[], Tokenizer]] = {
    "byte-level BPE": byte_level,
    "Unigram": unigram,
    "byte fallback": byte_fallback,
}
