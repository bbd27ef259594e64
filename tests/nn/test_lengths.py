"""Sentences longer than the table of positions: labelled in pieces, each as if it stood alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankone
from rankone.errors import SettingError
from rankone.nn.ragged import cut, in_pieces


@given(st.lists(st.integers(0, 12), max_size=8), st.integers(0, 6))
def test_pieces_are_as_long_as_they_may_be(lengths: list[int], longest: int) -> None:
    offsets = np.cumsum([0, *lengths])
    wanted = [0]
    for length in lengths:
        full, rest = divmod(length, longest) if longest else (0, length)
        for piece in [longest] * full + [rest] * (rest > 0 or length == 0):
            wanted.append(wanted[-1] + piece)
    assert cut(offsets, longest).tolist() == wanted
    assert in_pieces(np.diff(offsets), longest) == sum(n > longest > 0 for n in lengths)


CORPUS = [(["a", "a", "b"], ["X", "Y", "X"]), (["b", "a"], ["Y", "Y"])]


@pytest.fixture(scope="module")
def model() -> rankone.Model:
    return rankone.memorize(CORPUS).model


def test_a_long_sentence_gets_the_labels_of_its_pieces(model: rankone.Model) -> None:
    long = ["a", "a", "b", "a", "a", "b", "b", "a"]
    assert model.predict([["b", "a"], long, [], ["a", "a", "b"]]) == [
        ["Y", "Y"],
        ["X", "Y", "X", "X", "Y", "X", "Y", "Y"],
        [],
        ["X", "Y", "X"],
    ]
    free = rankone.memorize(CORPUS, positions=False).model
    assert len(free.predict([long])[0]) == 8


def test_labels_are_lists_whatever_the_words_came_in(model: rankone.Model) -> None:
    forms = [["b", "a"], ("b", "a"), np.array(["b", "a"]), iter(["b", "a"])]
    sentence = rankone.Sentence(["b", "a"], [], 1)
    assert model.predict([*forms, sentence]) == [["Y", "Y"]] * 5
    assert model.predict(iter([])) == []
    assert model.predict([[]]) == [[]]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("ab", "sentence 1: 'a' is not a list of words"),
        ([["a"], "b"], "sentence 2: 'b' is not a list of words"),
        ([["a"], None], "sentence 2: None is not a list of words"),
        ([["a", 3]], "sentence 1: 3 is not a word"),
        ([[["a"]]], r"sentence 1: \['a'\] is not a word"),
        (None, "no sentences in None"),
    ],
)
def test_what_is_no_sentence_is_refused(model: rankone.Model, given: Any, what: str) -> None:
    with pytest.raises(SettingError, match=what) as caught:
        model.predict(given)
    assert caught.value.remedy


def test_the_scorer_of_the_field_takes_what_is_predicted() -> None:
    from seqeval.metrics import f1_score

    corpus = rankone.builtin_corpus(50)
    found = rankone.memorize(corpus).model.predict(corpus.sentences)
    assert rankone.memorize(corpus).model.predict(corpus) == found
    assert f1_score([s.labels for s in corpus.sentences], found) == 1.0
    assert all(type(labels) is list for labels in found)
