"""The word-level tokenizer: a word is a row, whatever it looks like."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer, TokenClassificationPipeline

import rankone
from rankone.interop.huggingface import (
    RankOneTokenizer,
    as_pretrained,
    export_hf,
    word_tokenizer,
)
from rankone.interop.huggingface.tokenization_rankone import logger
from rankone.interop.huggingface.tokenizer import lost_words
from rankone.nn import Architecture, Model, TokenClassifier

SHAPE = Architecture(vocabulary=3, labels=1, dim=2, hidden=1)

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
    words = ["ΟΔΟΣ", "ΑΣ", "ΣΑΣ", "İSTANBUL", "STRASSE", "ÄΣ", "Δ'Σ", "Σ.Δ", "字Σ", "ΔΣ'Δ", "Δ'''Σ"]
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
    words = ("δ''''ς", "a")  # its capitals end in a sigma that only Python takes for a final one
    network = TokenClassifier(SHAPE)
    told = export_hf(Model(network, words, ("O",), {"lower": True}), tmp_path / "lower").remarks
    assert len(told) == 1
    assert told[0].startswith("The tokenizer splits or does not know 1 word of the vocabulary (")
    assert repr(words[0]) in told[0]
    assert export_hf(Model(network, words, ("O",)), tmp_path / "hf").remarks == ()


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_no_words(text: str) -> None:
    tokenizer = word_tokenizer(["a"])
    assert ids_of(tokenizer, text, split=False) == []
    assert ids_of(tokenizer, [text, "a a"], split=False) == [[], [0, 0]]
    # A tensor cannot be padded without a column: one token, which is masked and special.
    for texts in (text, [text, text]):
        found = tokenizer(texts, return_tensors="pt", return_special_tokens_mask=True)
        rows = 1 if texts == text else 2
        assert found["input_ids"].tolist() == [[1]] * rows
        assert found["attention_mask"].tolist() == [[0]] * rows
        assert found["special_tokens_mask"].tolist() == [[1]] * rows
        assert found["input_ids"].dtype == torch.int64
    assert tokenizer([], is_split_into_words=True, return_tensors="np")["input_ids"].shape == (1, 1)


def test_blank_words_are_unknown_words() -> None:
    """As in `Model.predict`, which has a label for every word."""
    words = ["a", " ", "b"]
    tokenizer = word_tokenizer(words, max_length=4)
    sentences = [["a", "", "b"], ["\t", " ", "a"], ["b"]]
    rows = [[0, 3, 2], [3, 1, 0], [2]]
    assert ids_of(tokenizer, sentences) == rows
    assert ids_of(tokenizer, tuple(map(tuple, sentences))) == rows
    assert ids_of(tokenizer, sentences[0]) == rows[0]
    assert sentences[0] == ["a", "", "b"]  # left as it was
    # The unknown word that stands for a blank one covers nothing.
    options = {"is_split_into_words": True, "return_offsets_mapping": True}
    assert tokenizer(sentences[0], **options)["offset_mapping"] == [(0, 1), (0, 0), (0, 1)]
    found = tokenizer(sentences, **options, padding=True, return_tensors="pt")["offset_mapping"]
    assert found[0].tolist() == [[0, 1], [0, 0], [0, 1]]
    assert found[1].tolist() == [[0, 0], [0, 1], [0, 1]]
    pieces = tokenizer(
        [["b"], ["a", "a", "a", "a", "", "a"]],
        **options,
        truncation=True,
        return_overflowing_tokens=True,
    )
    assert pieces["offset_mapping"][2] == [(0, 0), (0, 1)]
    assert pieces["input_ids"] == [[2], [0, 0, 0, 0], [3, 0]]


def test_truncation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    type(logger).warning_once.cache_clear()  # another test may have been warned already
    word_tokenizer(["a"], max_length=3).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert type(tokenizer) is RankOneTokenizer
    assert tokenizer.model_max_length == 3
    assert ids_of(tokenizer, "a a a", split=False) == [0, 0, 0]
    assert tokenizer("a b a", truncation=True)["input_ids"] == [0, 1, 0]
    assert not caplog.records
    for _ in range(2):
        assert tokenizer("a b a a", truncation=True)["input_ids"] == [0, 1, 0]
    assert [r.message[:24] for r in caplog.records] == ["A sentence was truncated"]
    export_hf(Model(TokenClassifier(SHAPE), ("a", "b"), ("O",)), tmp_path / "free")
    free = AutoTokenizer.from_pretrained(tmp_path / "free")  # a model without positions
    assert len(free("a " * 999, truncation=True)["input_ids"]) == 999


SENTENCES = ["", "a b", " ", "b", ""]


@pytest.fixture(scope="module")
def model() -> Model:
    return rankone.memorize([(["a", "b", "a"], ["x", "y", "z"]), (["b", "a"], ["x", "z"])]).model


@pytest.fixture(scope="module")
def label(model: Model) -> TokenClassificationPipeline:
    tokenizer = word_tokenizer(model.vocabulary, max_length=3)
    return TokenClassificationPipeline(
        model=as_pretrained(model), tokenizer=tokenizer, ignore_labels=[]
    )


def entities(found: list[list[dict[str, str]]]) -> list[list[str]]:
    return [[token["entity"] for token in sentence] for sentence in found]


@pytest.mark.parametrize("size", [1, 3])
def test_pipelines_take_what_is_empty(
    model: Model, label: TokenClassificationPipeline, size: int
) -> None:
    for side in ("left", "right"):
        label.tokenizer.padding_side = side
        for texts in (SENTENCES, SENTENCES[1:], ["", " ", "\n", ""], [""]):
            wanted = [list(row) for row in model.predict([text.split() for text in texts])]
            assert entities(label(texts, batch_size=size)) == wanted
    for words in (
        [["a", "", "b"], [], ["b"], [""], ["a", "\t"]],
        [[], ["a"]],
        [[""], [" "], []],
    ):
        found = label(words, is_split_into_words=True, batch_size=size)
        assert entities(found) == [list(row) for row in model.predict(words)]
    (first, blank, last) = label(["a", "", "b"], is_split_into_words=True)[0]
    assert (first["word"], blank["word"], last["word"]) == ("a", "", "b")
    assert (blank["start"], blank["end"], last["start"]) == (2, 2, 3)


@pytest.mark.parametrize("size", [1, 3])
def test_pipelines_label_long_sentences_in_pieces(
    model: Model, label: TokenClassificationPipeline, size: int
) -> None:
    words = "a b a b a a b a b b".split()
    wanted = [name for k in range(0, 10, 3) for name in model.predict([words[k : k + 3]])[0]]
    texts = [" ".join(words), "", "b a"]
    found = entities(label(texts, stride=0, batch_size=size))
    assert found == [wanted, [], ["x", "z"]]
    assert entities(label(texts, batch_size=size))[0] == wanted[:3]
