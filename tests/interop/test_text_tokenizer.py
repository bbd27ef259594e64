"""Tokenizers of texts in Hugging Face: they split any string as those of rankone do."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from transformers import AutoTokenizer

from rankone.corpus.tokenizers import tokenizer_of
from rankone.errors import CorpusError
from rankone.interop.huggingface import RankOneTokenizer, export_hf, text_tokenizer
from rankone.interop.huggingface.text_tokenizer import split_otherwise
from rankone.interop.huggingface.tokenization_rankone import logger
from rankone.nn import Architecture, Model, TokenClassifier
from rankone.nn.hub import letters_of_bytes
from tokenizer_files import FILES, LINES, byte_level

NAMES = ["words", "characters", "bytes"]
# White space that only some call so, marks, ligatures, pairs of letters, newer letters than
# Python's, and what looks like the unknown token.
HOSTILE = (
    " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2028\u2029\u202f\u3000\ufeff\u200b\u200d"
    "aZ09_-.'[]UNK\\\u00e9\u00df\u0130\u0131\u03a3\u03c3\u03c2\ufb01\u00bd\u00b2\u2167\u2460\u5b57"
    "\u304b\ud55c\u0301\u0e33\U0001f600\U0001f1e9\U000105c0\ufdd0\uffff\U0010ffff\ue000\x01\x7f"
)
texts = st.lists(
    st.sampled_from([*HOSTILE, "\r\n", "[UNK]", "  ", " a", "e\u0301"])
    | st.characters(exclude_categories=("Cs",), exclude_characters="\0")
).map("".join)


def rows(tokenizer: RankOneTokenizer, text: str, known: int) -> list[int]:
    """Tokens beyond the table have its last row."""
    return [min(number, known) for number in tokenizer(text)["input_ids"]]


def wanted(name: str, text: str, vocabulary: list[str]) -> list[int]:
    own, row = tokenizer_of(name), {token: i for i, token in enumerate(vocabulary)}
    return [row.get(token, len(row)) for token in own.split(own.decode(text.encode(), ""), "")]


def tokens_of(name: str, text: str) -> list[str]:
    own = tokenizer_of(name)
    return list(dict.fromkeys(own.split(own.decode(text.encode(), ""), "")))


@pytest.mark.parametrize("name", NAMES)
@given(text=texts, other=texts)
@example(text="\ufeff\ufeffa b", other="")
@example(text=" a  b\r\n\r\nc \r d\x1c e", other="\u1680\u0301 \u00bd_")
@example(text=" \x1c \xa0  \u2028 \u3000\x85 \r\n", other=" \x1f")
def test_any_text_is_split_as_ours_is(name: str, text: str, other: str) -> None:
    vocabulary = tokens_of(name, text)
    tokenizer = text_tokenizer(vocabulary, name)
    assert len(tokenizer) == len(vocabulary) + 1
    assert tokenizer.pad_token_id == tokenizer.unk_token_id == len(vocabulary)
    for one in (text, other):
        assert tokenizer(one)["input_ids"] == wanted(name, one, vocabulary)
    marked = name != "bytes" and text.startswith("\ufeff")
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text[marked:]


def all_characters() -> str:
    """But for NUL, which texts may not have."""
    return "".join(map(chr, (*range(1, 0xD800), *range(0xE000, sys.maxunicode + 1))))


def test_every_letter_is_one() -> None:
    """Each run of characters that Python calls a word is one token, whatever Rust calls it."""
    split = text_tokenizer(["a"], "words").backend_tokenizer.pre_tokenizer.pre_tokenize_str
    every = re.sub(r"(\w)\w+(\w)", r"\1\2", all_characters())[::3]  # ends of runs, and the others
    for i in range(0, len(every), 4000):
        part = every[i : i + 4000]
        assert [token for token, _ in split(part)] == tokenizer_of("words").split(part, "")


@pytest.mark.slow
@pytest.mark.parametrize("between", ["", " ", "a", " a", "\r"])
def test_every_character_next_to_others(between: str) -> None:
    split = text_tokenizer(["a"], "words").backend_tokenizer.pre_tokenizer.pre_tokenize_str
    every = all_characters()
    for i in range(0, len(every), 2000):
        part = between.join(every[i : i + 2000])
        assert [token for token, _ in split(part)] == tokenizer_of("words").split(part, "")


def test_letters_of_bytes() -> None:
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str
    letters = letters_of_bytes()
    assert {*letters} == {*pre_tokenizers.ByteLevel.alphabet()}
    text = "".join(map(chr, range(1, 0x800)))
    assert "".join(token for token, _ in split(text)) == "".join(letters[b] for b in text.encode())


@given(text=texts)
@example(text="\u03a3.\u0394. \u039f\u0394\u039f\u03a3, \u0394\u03a3'\u0394\u03a3'")
def test_lower_case_is_that_of_python(text: str) -> None:
    text = "".join(c for c in text if normalizers.Lowercase().normalize_str(c) == c.lower())
    text = re.sub("(?<=')'+|\\^+|:+|\u0301+|\u00ad+|\u200b+", "", text)  # few marks before a sigma
    for name in NAMES[:2]:
        vocabulary = tokens_of(name, text.lower())
        tokenizer = text_tokenizer(vocabulary, name, lower=True)
        assert tokenizer(text)["input_ids"] == wanted(name, text.lower(), vocabulary)


@pytest.mark.parametrize("name", NAMES)
def test_batches_and_directories(name: str, tmp_path: Path, caplog: Any) -> None:
    type(logger).warning_once.cache_clear()  # another test may have been warned already
    vocabulary = tokens_of(name, LINES[0])
    text_tokenizer(vocabulary, name, max_length=60).save_pretrained(tmp_path)
    found = AutoTokenizer.from_pretrained(tmp_path)
    assert type(found) is RankOneTokenizer
    batch = [LINES[0], "rain", ""]
    for side in ("left", "right"):
        found.padding_side = side
        got = found(batch, padding=True, return_tensors="pt")
        for ids, mask, text in zip(got["input_ids"], got["attention_mask"], batch, strict=True):
            assert ids[mask.bool()].tolist() == wanted(name, text, vocabulary)
            assert set(ids[~mask.bool()].tolist()) <= {len(vocabulary)}
    assert not caplog.records
    assert (
        found(LINES[0] * 9, truncation=True)["input_ids"] == found(LINES[0] * 9)["input_ids"][:60]
    )
    assert "A text was truncated: what the model says of it is of a piece" in caplog.text
    # Tokens one by one, also white space, are not blanks that something must stand for.
    split = [" the", " ", "\n"] if name == "words" else [" ", "e", "\n"]
    pieces = [row for token in split for row in wanted(name, token, vocabulary)]
    assert found(split, is_split_into_words=True)["input_ids"] == pieces


# The file of another tokenizer.


@pytest.mark.parametrize("made", FILES.values(), ids=FILES)
def test_a_file_is_passed_on_with_other_numbers(made: Callable[[], Tokenizer]) -> None:
    name = made().to_str()
    own, vocabulary = tokenizer_of(name), tokens_of(name, LINES[1])
    tokenizer = text_tokenizer(vocabulary, name)
    assert len(tokenizer) > len(vocabulary) + 1  # tokens that the model does not know
    assert tokenizer.convert_ids_to_tokens([*range(len(vocabulary))]) == vocabulary
    assert tokenizer.pad_token_id == len(tokenizer) - 1
    assert split_otherwise(tokenizer, vocabulary, name) == []
    for text in [*LINES[:4], "gardener gardens", "<s>rose</s> [UNK]", "caf\u00e9 \u5b57"]:
        try:
            tokens = own.split(text, "")
        except CorpusError:  # Unigram has no token for some of these characters
            continue
        assert rows(tokenizer, text, len(vocabulary)) == wanted(name, text, vocabulary)
        assert tokenizer.tokenize(text) == tokens
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    lower = text_tokenizer(vocabulary, name, lower=True)
    text = "A ROSE IS"
    assert rows(lower, text, len(vocabulary)) == wanted(name, text.lower(), vocabulary)


def test_texts_that_are_split_otherwise_are_found() -> None:
    vocabulary = tokens_of("words", " ".join(LINES))
    tokenizer = text_tokenizer(vocabulary, "words")
    assert split_otherwise(tokenizer, vocabulary, "words") == []
    other = text_tokenizer(vocabulary[1:], "words")
    assert split_otherwise(other, vocabulary, "words")
    (last,) = split_otherwise(tokenizer, [*(f"a{i}" for i in range(60)), "new"], "words")[1:]
    assert last.endswith("new")


def test_texts_that_are_split_otherwise_are_told(tmp_path: Path) -> None:
    tokens = (
        "a",
        ".",
        "'",
        ":",
        "\u00b7",
        "\u03c2",
    )  # only Python sees the letter before the sigma
    network = TokenClassifier(Architecture(vocabulary=7, labels=1, dim=2, hidden=1))
    reading = {"task": "class", "tokenizer": "words", "lower": True}
    (told,) = export_hf(Model(network, tokens, ("O",), reading), tmp_path / "lower").remarks
    assert told.startswith(
        "The tokenizer splits some texts of the vocabulary otherwise (one begins"
    )
    assert "A.':\u00b7\u03a3" in told
    plain = {**reading, "lower": False}
    assert export_hf(Model(network, tokens, ("O",), plain), tmp_path / "plain").remarks == ()
    sharp = ("\u00df", "a", ".", "!", "?", "-")  # capitals have no such letter
    assert export_hf(Model(network, sharp, ("O",), reading), tmp_path / "sharp").remarks == ()


def test_the_file_says_which_tokens_are_not_special() -> None:
    name = byte_level().to_str()
    document = json.loads(text_tokenizer(["Ġrose"], name).backend_tokenizer.to_str())
    assert (document["truncation"], document["padding"]) == (None, None)
    assert document["post_processor"]["special_tokens"] == {}
    special = {token["content"]: token["special"] for token in document["added_tokens"]}
    assert special == {"<s>": False, "</s>": False, "gardener": False, "[UNK]": True}
