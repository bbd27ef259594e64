"""The word-level tokenizer: a word is a row, whatever it looks like."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from rankone.interop.huggingface import export_hf, word_tokenizer
from rankone.interop.huggingface.tokenizer import lost_words
from rankone.nn import Model, Network, TokenClassifier

ODD = ["[UNK]", "[[UNK]]", "a[UNK]b", "##x", "�", "\u200b", "️", "\u00adx", "ﬁ", "İ", "<s>", "\\n"]

# What text files can hold: no white space, no half of a surrogate pair, no NUL.
plain_words = st.text(
    st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc")), min_size=1, max_size=6
)


def ids_of(tokenizer, words, split=True):
    return tokenizer(words, is_split_into_words=split)["input_ids"]


@given(st.lists(plain_words | st.sampled_from(ODD), min_size=1, max_size=12, unique=True))
def test_every_word_is_its_own_row(words: list[str]) -> None:
    tokenizer = word_tokenizer(words)
    assert ids_of(tokenizer, words) == list(range(len(words)))
    assert ids_of(tokenizer, " ".join(words), split=False) == list(range(len(words)))
    assert lost_words(tokenizer, words) == []
    assert tokenizer.unk_token_id == tokenizer.pad_token_id == len(words)


@given(plain_words | st.sampled_from(ODD))
def test_any_other_word_is_the_last_row(word: str) -> None:
    words = [w for w in ("a", "rose", "[UNK]x") if w != word]
    tokenizer = word_tokenizer(words)
    assert ids_of(tokenizer, [words[0], word, words[1]]) == [0, len(words), 1]


def test_lower_case() -> None:
    tokenizer = word_tokenizer(["the", "rose"], lower=True)
    assert ids_of(tokenizer, ["The", "ROSE", "Red"]) == [0, 1, 2]
    assert ids_of(word_tokenizer(["the", "rose"]), ["The", "rose"]) == [2, 1]
    words = ["ΟΔΟΣ", "ΑΣ", "ΣΑΣ", "İSTANBUL", "STRASSE", "ÄΣ"]
    known = [word.lower() for word in words]
    tokenizer = word_tokenizer(known, lower=True)
    assert ids_of(tokenizer, words) == list(range(len(words)))
    assert lost_words(tokenizer, known, lower=True) == []


def test_words_with_white_space(tmp_path: Path) -> None:
    words = ["New York", "New", "York", "10 000", "in"]
    tokenizer = word_tokenizer(words)
    tokenizer.save_pretrained(tmp_path)
    for found in (tokenizer, AutoTokenizer.from_pretrained(tmp_path)):
        assert lost_words(found, words) == []
        assert ids_of(found, words) == list(range(5))
        assert ids_of(found, "in New York", split=False) == [4, 0]
        assert ids_of(found, ["in", "New", "York"]) == [4, 1, 2]


def test_words_of_white_space_alone() -> None:
    words = [" ", "a", "\u3000", "a\tb", " x"]
    assert lost_words(word_tokenizer(words), words) == []


def test_words_that_are_lost_are_told(tmp_path: Path) -> None:
    words = ("δ'ς", "a")  # its capitals end in a sigma that only Python takes for a final one
    shape = Network(vocabulary=3, labels=1, dim=2, hidden=1)
    network = TokenClassifier(shape)
    told = export_hf(Model(network, words, ("O",), {"lower": True}), tmp_path / "lower").remarks
    assert len(told) == 1
    assert told[0].startswith("1 words cannot be told to the tokenizer")
    assert repr(words[0]) in told[0]
    assert export_hf(Model(network, words, ("O",)), tmp_path / "hf").remarks == []


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_no_words(text: str) -> None:
    assert ids_of(word_tokenizer(["a"]), text, split=False) == []
