"""Every public function of theory with odd input: an answer, or one error with its remedy."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
import torch
from flint import arb

from rankone import theory
from rankone.errors import RankOneError
from rankone.theory.numeric_input import as_floats, as_labels, as_real, as_whole

TABLE = [[1.0, 20.0], [3.0, 40.0]]
SAME = {
    "a list": TABLE,
    "whole numbers": [[1, 20], [3, 40]],
    "an array": np.array(TABLE),
    "single precision": np.array(TABLE, np.float32),
    "half precision": np.array(TABLE, np.float16),
    "a tensor": torch.tensor(TABLE),
    "a tensor with gradients": torch.tensor(TABLE, requires_grad=True),
    "a tensor of bfloat16": torch.tensor(TABLE).bfloat16(),
}
ODD = {
    "nothing": None,
    "a number": 3,
    "a string": "abc",
    "no rows": [],
    "an empty row": [[]],
    "rows of different lengths": [[1.0], [1.0, 2.0]],
    "not a number": [[np.nan, 1.0]],
    "infinity": [[np.inf, 1.0]],
    "a cube": np.zeros((2, 2, 2)),
    "complex numbers": np.array([[1j, 2.0]]),
    "strings": [["a", "b"]],
    "strings of numbers": [["1", "2"]],
    "a dictionary": {"a": 1},
    "a radius": [[arb(1, 1)]],
    "too large": [[10**400, 1]],
    "a hole": [[None, 1.0]],
    "no memory": torch.zeros(2, 2, device="meta"),
}
OF_TABLES = {
    "softmax": theory.softmax,
    "boltzmann": theory.boltzmann,
    "log_partition": theory.log_partition,
    "entropy": theory.entropy,
    "gradient": theory.gradient,
    "second_derivative": theory.second_derivative,
    "lemma1": theory.lemma1,
    "separation": theory.separation,
    "closest_pair": theory.closest_pair,
    "contextual": lambda x: theory.contextual(x, [0, 1]),
    "indistinguishable": lambda x: theory.indistinguishable(*[_heads(x)] * 4),
    "hardmax_attention": lambda x: theory.hardmax_attention(x, *[_heads(x)] * 4),
}
OF_ROWS = {
    "lemma4": lambda a, _: theory.lemma4(a, 0),
    "lemma5": lambda a, _: theory.lemma5(a, 0),
    "lemma6": theory.lemma6,
    "lemma7": theory.lemma7,
    "appendix_c": theory.appendix_c,
    "counter_example": lambda _, b: theory.counter_example(b).first,
}


def _heads(x):
    return x[None] if hasattr(x, "shape") else [x]


@pytest.mark.parametrize("given", SAME.values(), ids=SAME)
@pytest.mark.parametrize("function", OF_TABLES.values(), ids=OF_TABLES)
def test_it_does_not_matter_what_holds_the_numbers(function, given):
    with np.printoptions(precision=17):
        assert repr(function(given)) == repr(function(TABLE))


@pytest.mark.parametrize("given", SAME.values(), ids=SAME)
@pytest.mark.parametrize("function", OF_ROWS.values(), ids=OF_ROWS)
def test_it_does_not_matter_what_holds_two_rows(function, given):
    with np.printoptions(precision=17):
        assert repr(function(*given)) == repr(function(*TABLE))


def _answered_or_refused_with_a_remedy(function, *given):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused = None
        try:
            function(*given)
        except RankOneError as error:
            refused = error
    assert refused is None or refused.remedy


@pytest.mark.parametrize("given", ODD.values(), ids=ODD)
@pytest.mark.parametrize("function", OF_TABLES.values(), ids=OF_TABLES)
def test_odd_tables_are_answered_or_refused_with_a_remedy(function, given):
    _answered_or_refused_with_a_remedy(function, given)


@pytest.mark.parametrize("given", ODD.values(), ids=ODD)
@pytest.mark.parametrize("function", OF_ROWS.values(), ids=OF_ROWS)
def test_odd_rows_are_answered_or_refused_with_a_remedy(function, given):
    _answered_or_refused_with_a_remedy(function, given, given)


@pytest.mark.parametrize("name", ["lemma6", "lemma7", "appendix_c"])
@pytest.mark.parametrize("given", [*ODD.values(), [1.0, np.inf], [Fraction(1, 3), 2]], ids=repr)
def test_what_is_no_vector_is_refused_by_name(name, given):
    lemma = getattr(theory, name)
    for place, pair in (("a", (given, [0.0, 30.0])), ("b", ([0.0, 30.0], given))):
        with pytest.raises(RankOneError) as caught:
            lemma(*pair)
        assert caught.value.where == place
        assert caught.value.remedy


REALS = {"r_min": 1.0, "r_max": 2.0, "epsilon": 0.5}
WHOLES = {"vocabulary": 5, "n": 3, "dim": 2}
NO_REALS = [None, "1", np.nan, np.inf, [1], 10**400, 1j]
NO_WHOLES = [None, "1", np.nan, np.inf, [1], 0, -1, 1.5, 2.0, True]


@pytest.mark.parametrize("name", [*REALS, *WHOLES])
@pytest.mark.parametrize("bound", [theory.theorem2, theory.masked])
def test_constants_that_are_none_are_named(bound, name):
    for odd in NO_REALS if name in REALS else NO_WHOLES:
        with pytest.raises(RankOneError, match=f"^{name} = .* is not a (finite|whole) number"):
            bound(**{**REALS, **WHOLES, name: odd})


@pytest.mark.parametrize("name", ["r_max", "epsilon", "n", "dim", "sentences", "vocabulary"])
def test_constants_of_corollary_2_that_are_none_are_named(name):
    given = {"r_max": 2.0, "epsilon": 0.5, "n": 3, "dim": 2, "sentences": 4, "vocabulary": 12}
    for odd in NO_REALS if name in REALS else NO_WHOLES:
        if name == "vocabulary" and odd is None:
            continue  # as many as there can be
        with pytest.raises(RankOneError, match=f"^{name} = .* is not a (finite|whole) number"):
            theory.corollary2(**{**given, name: odd})


def test_tokens_of_tensors_and_arrays_are_their_numbers():
    rows = [[1, 2], [2, 1], [1, 3]]
    expected = theory.definition2_contexts(rows).tolist()
    assert expected == [0, 1, 1, 0, 4, 5]
    for given in (torch.tensor(rows), np.array(rows), [list(torch.tensor(row)) for row in rows]):
        assert theory.definition2_contexts(given).tolist() == expected


@pytest.mark.parametrize("given", [3, None, "ab", [["a"], [["b"]]], [[arb(1, 1)]], [3]], ids=repr)
def test_what_are_no_sequences_is_refused(given):
    with pytest.raises(RankOneError, match="sequences") as caught:
        theory.definition2_contexts(given)
    assert caught.value.remedy


def test_numbers_are_taken_as_they_are():
    assert as_real("x", torch.tensor(2.5)) == as_real("x", np.float32(2.5)) == 2.5
    assert as_whole("x", np.int8(3)) == as_whole("x", torch.tensor(3)) == 3
    assert as_whole("x", 0, least=0) == 0
    assert as_labels(["b", "a"], 2, "groups").tolist() == ["b", "a"]
    assert as_labels(torch.tensor([1, 2]), 2, "groups").tolist() == [1, 2]
    numbers = np.ones(3)
    assert as_floats(numbers) is numbers
