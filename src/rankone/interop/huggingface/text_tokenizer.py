"""Tokenizers of texts for Hugging Face, which split a text as `rankone.corpus.tokenizers` does."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from rankone.corpus.tasks import BEGIN, END
from rankone.corpus.tokenizers import tokenizer_of
from rankone.errors import CorpusError
from rankone.extras import extra
from rankone.interop.huggingface.tokenizer import UNKNOWN, lower_case, unused
from rankone.nn.hub import letters_of_bytes

with extra("hf", "Hugging Face"):
    from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordLevel

    from rankone.interop.huggingface.tokenization_rankone import RankOneTokenizer

SAMPLE = 50  # tokens of a text that is tried
PAD = "<|pad|>"
NEVER = 1e3  # by how much the score of a token that no text has is below all others


def text_tokenizer(
    vocabulary: Sequence[str], name: str, *, lower: bool = False, max_length: int | None = None
) -> RankOneTokenizer:
    """`name` is what a model keeps of its tokenizer (``model.reading["tokenizer"]``): "words",
    "characters", "bytes", or the text of a tokenizer.json.

    The number of a token is its row in the token table, that of its place in the vocabulary. One
    more number, that of the last row, stands for every other token, and pads. In a tokenizer.json
    the tokens that the model does not know keep numbers of their own, which lie beyond the table:
    ``len(tokenizer)`` is then more than its rows, and the configuration of the model must say so
    (`tokenizer_size`).

    >>> tokenizer = text_tokenizer(["A", " rose", "."], "words")
    >>> tokenizer("A red rose.")["input_ids"]
    [0, 3, 1, 2]
    """
    made = _word_level(vocabulary, name) if name in SPLITS else _renumbered(vocabulary, name)
    backend, unknown = made
    first = [] if name == "bytes" else [normalizers.Replace(Regex(r"\A\x{FEFF}"), "")]
    first += [lower_case()] if lower else []
    own = [] if backend.normalizer is None else [backend.normalizer]
    backend.normalizer = normalizers.Sequence([*first, *own])
    return RankOneTokenizer(
        tokenizer_object=backend,
        unk_token=unknown,
        pad_token=unknown,
        split_special_tokens=True,  # text that looks like the unknown token is text like other
        model_max_length=max_length,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )


def with_marks(tokenizer: RankOneTokenizer, vocabulary: Sequence[str]) -> RankOneTokenizer:
    """The tokenizer of a language model, with numbers of their own for the end of a document and
    for padding, which goes to the left. Where the model has a token for the beginning of a
    document, texts begin with it, unless ``add_special_tokens=False``.
    """
    tokenizer.add_special_tokens({"eos_token": END, "pad_token": PAD})
    for side in ("padding_side", "truncation_side"):
        setattr(tokenizer, side, "left")
        tokenizer.init_kwargs[side] = "left"  # what is saved
    if BEGIN in vocabulary:
        tokenizer.add_special_tokens({"bos_token": BEGIN})
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{BEGIN} $A",
            pair=f"{BEGIN} $A $B",
            special_tokens=[(BEGIN, tokenizer.bos_token_id)],
        )
    return tokenizer


def split_otherwise(
    tokenizer: RankOneTokenizer, vocabulary: Sequence[str], name: str, *, lower: bool = False
) -> list[str]:
    """Texts, made of all tokens of the vocabulary (in capitals, if case does not matter), that
    `tokenizer` splits otherwise than rankone does."""
    ours, found = tokenizer_of(name), []
    row = {token: i for i, token in enumerate(vocabulary)}
    tokens = [token for token in vocabulary if token != BEGIN]
    for i in range(0, len(tokens), SAMPLE):
        text = ours.join(tokens[i : i + SAMPLE])
        try:
            given = ours.encode(text).decode()
            given, text = (given.upper(), text.upper().lower()) if lower else (given, text)
            split = ours.split(text, "")
        except (UnicodeDecodeError, CorpusError):
            continue  # no text: half of a character, for instance
        ids = tokenizer.backend_tokenizer.encode(given, add_special_tokens=False).ids
        if [min(number, len(row)) for number in ids] != [row.get(t, len(row)) for t in split]:
            found.append(given)
    return found


@cache
def _words() -> str:
    """The pattern of `WordTokenizer` with all characters that Python matches written out: other
    libraries have other versions of Unicode."""
    every = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
    word, space = (
        "".join(
            f"\\x{{{ord(run[0]):X}}}-\\x{{{ord(run[-1]):X}}}" for run in re.findall(runs, every)
        )
        for runs in (r"\w+", r"\s+")
    )
    return f" ?[{word}]+| ?[^{word}{space}]|\r\n|[{space}]"


def _one_by_one() -> Any:
    return pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")


SPLITS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "words": lambda: (pre_tokenizers.Split(Regex(_words()), "isolated"), decoders.Fuse()),
    "characters": lambda: (_one_by_one(), decoders.Fuse()),
    "bytes": lambda: (
        pre_tokenizers.Sequence(
            [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), _one_by_one()]
        ),
        decoders.ByteLevel(),
    ),
}


def _word_level(vocabulary: Sequence[str], name: str) -> tuple[Tokenizer, str]:
    """One of our own tokenizers, and the unknown token."""
    tokens = [*vocabulary]
    if name == "bytes":
        letters = letters_of_bytes()
        tokens = [token if token == BEGIN else letters[int(token, 16)] for token in vocabulary]
    unknown = unused(UNKNOWN, tokens)
    rows = {token: i for i, token in enumerate((*tokens, unknown))}
    backend = Tokenizer(WordLevel(rows, unk_token=unknown))
    backend.pre_tokenizer, backend.decoder = SPLITS[name]()
    return backend, unknown


def _renumbered(vocabulary: Sequence[str], contents: str) -> tuple[Tokenizer, str]:
    """The tokenizer of a tokenizer.json with other numbers: those of the vocabulary first.

    It adds no tokens to a text, and takes those that are special for tokens like others.
    """
    document = json.loads(contents)
    model, added = document["model"], document.get("added_tokens") or []
    vocab = model["vocab"]
    scores = dict(vocab)  # numbers of tokens; scores where they are a list
    listed = isinstance(vocab, list)
    own = [token for token, _ in vocab] if listed else sorted(vocab, key=vocab.__getitem__)
    every = [*dict.fromkeys([*vocabulary, *own, *(token["content"] for token in added)])]
    number = {token: i for i, token in enumerate(every)}
    if listed:
        least = min(scores.values()) - NEVER
        model["vocab"] = [[token, scores.get(token, least)] for token in every]
        if model.get("unk_id") is not None:
            model["unk_id"] = number[own[model["unk_id"]]]
    else:
        model["vocab"] = number
    document["added_tokens"] = [
        {**token, "id": number[token["content"]], "special": False} for token in added
    ]
    document |= dict.fromkeys(("truncation", "padding", "post_processor"))
    return Tokenizer.from_str(json.dumps(document)), unused(UNKNOWN, every)
