"""What is collected of every token in float64, and the numbers that a corpus has in a model."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

import corpora
from certification import judge
from rankone import Corpus
from rankone.certification.align import align
from rankone.certification.ball_arithmetic import Balls
from rankone.certification.float_evaluation import Readings
from rankone.certification.gathered import main_direction, widest_difference
from rankone.certification.leads import Decoded
from rankone.errors import CorpusError, LengthError


@pytest.mark.parametrize("power", [0, -600, -1000, 600, 1000])
def test_the_direction_in_which_tokens_move_apart(power: int) -> None:
    """From the lowest to the highest of the widest coordinate, scaled to a size of 1/2 to 1."""
    moved = np.array([[3.0, 1.0, 2.0], [-2.0, 5.0, 1.0], [0.0, 1.0, 0.0]]) * 2.0**power
    assert widest_difference(moved).tolist() == [-2 / 8, 7 / 8, 1 / 8]
    written = np.array([0, 2, 3])
    assert main_direction(moved, written, 5).tolist() == [-2 / 8, 0, 7 / 8, 1 / 8, 0]


@pytest.mark.parametrize("moved", [[[0.0, 0.0], [1.0, 1.0]], [[inf, -inf], [0.0, 0.0]]])
def test_a_direction_where_nothing_moves(moved: list[list[float]]) -> None:
    with np.errstate(invalid="ignore"):
        found = widest_difference(np.array(moved))
    assert np.isfinite(found).all()
    assert (found != 0).all()


def decoded(off: list[float], mid: list[float], rad: list[float]) -> Decoded:
    labels = np.arange(len(off))
    return Decoded(labels, np.array(off), Balls(np.array([mid]), np.array([rad])))


def test_readings_of_tokens_one_chunk_after_the_other() -> None:
    found = Readings.room(5)
    assert not found.reached.any()
    assert not found.sure.any()
    off, mid = [0.1, 0.5, nan], [1.0, 2.0, 3.0]
    values = np.array([[1.5, 20.0, 30.0]])
    found.add(1, decoded(off, mid, [0.25, 9.0, 9.0]), values, np.array([7, 8, 9]))
    assert found.reached.tolist() == [False, True, True, True, False]
    assert found.sure.tolist() == [False, True, False, False, False]
    assert found.labels.tolist() == [-1, 0, 1, 2, -1]
    assert found.run_labels.tolist() == [-1, 7, 8, 9, -1]
    assert {k: v.tolist() for k, v in found.run_values.items()} == {2: [20.0], 3: [30.0]}
    # the distance and the radius, of tokens that are decided; never less than they add up to
    assert 0.75 < found.distance < 0.75 * (1 + 1e-14)
    found.add(0, decoded([0.4], [1.0], [0.0]), np.array([[1.5]]), np.array([0]))
    assert 0.75 < found.distance < 0.75 * (1 + 1e-14)
    found.add(4, decoded([0.4], [1.0], [0.0]), np.array([[nan]]), np.array([0]))
    assert found.distance == inf


def numbers(*texts: str, **shape: object) -> tuple[list[int], list[int]]:
    rows, gold = align(
        judge.random_model(0, **shape), Corpus.from_sentences(corpora.spelled(*texts))
    )
    return rows.tolist(), gold.tolist()


def test_words_and_labels_in_the_numbers_of_the_model() -> None:
    assert numbers("fb ZX", "a Y") == ([5, 1, 0], [2, 0, 1])


@pytest.mark.parametrize(
    ("texts", "what"),
    [
        (["ab XY", "ag XX"], "sentence 2: the model does not have the word 'g'"),
        (["ah XY", "gi XX"], "sentence 1: the model does not have the word 'h', and 2 more"),
        (["ab XY", "ab XU"], "sentence 2: the model does not have the label 'U'"),
        (["ab UV", "ab XU"], "sentence 1: the model does not have the label 'U', and 1 more"),
    ],
)
def test_words_and_labels_that_the_model_does_not_have(texts: list[str], what: str) -> None:
    with pytest.raises(CorpusError, match=what) as caught:
        numbers(*texts)
    assert caught.value.remedy is not None
    assert "--token-column and --label-column" in caught.value.remedy


def test_sentences_longer_than_the_table_of_positions() -> None:
    assert numbers("abc XXX", positions=3)[0] == [0, 1, 2]
    with pytest.raises(LengthError, match="sentence 2: 4 tokens"):
        numbers("abc XXX", "abca XXXX", positions=3)
