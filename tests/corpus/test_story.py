"""The built-in story: read as a text, for tasks of texts."""

from __future__ import annotations

import pytest

import rankone
from rankone.corpus.story import read_story
from rankone.errors import RankOneError


def test_it_is_a_text() -> None:
    text = read_story().decode("ascii")
    assert 2000 < len(text.split()) < 5000
    found = rankone.read_corpus("story", task="next")
    assert (found.source, found.n_sentences) == ("story", 1)
    assert "".join(found.vocabulary[i] for i in found.token_ids.tolist()) == text
    last = text.rstrip("\n").count("\n") + 1
    assert found.place(found.n_tokens - 1) == f"story, line {last}"
    blocks = rankone.read_corpus("story", task="next", blocks=True, window=4, lower=True)
    assert blocks.n_sentences == text.strip("\n").count("\n\n") + 1
    assert rankone.read_corpus("story", task="next", tokenizer="characters").n_tokens == len(text)


def test_its_refrain_comes_back_and_goes_on_in_different_ways() -> None:
    text = read_story().decode()
    refrain = "And the lamp went round, and the lamp went round,\nand"
    assert text.count(refrain) >= 5
    assert len({text.split(refrain)[i][:8] for i in range(1, 6)}) > 2


def test_what_it_does_not_have_is_refused() -> None:
    for how in ({}, {"task": "class"}, {"task": "next", "format": "text"}):
        with pytest.raises(RankOneError) as refused:
            rankone.read_corpus("story", **how)
        assert refused.value.remedy
    with pytest.raises(RankOneError, match="no layout and no columns"):
        rankone.read_corpus("story", task="next", token_column="text")


def test_a_model_reads_it_as_its_own_was_read() -> None:
    corpus = rankone.read_corpus("story", task="next", window=5)
    model = rankone.memorize(corpus).model
    again = model.read("story")
    assert (again.window, again.sha256) == (5, corpus.sha256)
