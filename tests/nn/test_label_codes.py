"""Heads of codes: which heads are such, and which code is nearest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from rankone.nn.label_codes import LabelCodes


def head_for(codes: Any, dim: int = 0, dtype: torch.dtype = torch.float64) -> nn.Linear:
    """The head of these codes, in coordinates 1, 3, 5, ... of `dim`."""
    codes = np.asarray(codes, dtype=float)
    dim = dim or 2 * codes.shape[1] + 1
    head = nn.Linear(dim, len(codes), dtype=dtype)
    weight = np.zeros((len(codes), dim))
    weight[:, 1 : 2 * codes.shape[1] : 2] = 2 * codes
    head.weight.data = torch.tensor(weight, dtype=dtype)
    head.bias.data = torch.tensor(-(codes**2).sum(1), dtype=dtype)
    return head


def codes_of(head: nn.Linear) -> LabelCodes:
    found = LabelCodes.of(head)
    assert found is not None
    return found


def drawn(seed: int, labels: int, size: int, span: int = 5) -> Any:
    rng = np.random.default_rng(seed)
    every = np.stack(np.meshgrid(*[np.arange(-span, span + 1)] * size), -1).reshape(-1, size)
    return rng.permutation(every)[:labels].astype(float)


def test_its_codes_are_found() -> None:
    codes = [[0.0, 3.0], [-7.0, 2.0], [1.0, 1.0]]
    found = codes_of(head_for(codes, dtype=torch.float32))
    assert found.at.tolist() == [1, 3]
    assert found.codes.tolist() == codes
    assert found.size.tolist() == [7.0, 3.0]
    assert found.square == 53.0


@pytest.mark.parametrize("what", ["bias", "half", "copy", "huge", "nan", "one label", "dense"])
def test_other_heads_are_refused(what: str) -> None:
    codes = np.array([[1.0, 2.0], [3.0, 0.0], [0.0, -4.0]])
    head = head_for(codes)
    with torch.no_grad():
        if what == "bias":
            head.bias[1] += 2.0**-40
        elif what == "half":  # whole rows, but half a code
            head.weight[0, 1], head.bias[0] = 3.0, -(1.5**2 + 4)
        elif what == "copy":
            head = head_for([[1.0, 2.0], [3.0, 0.0], [1.0, 2.0]])
        elif what == "huge":
            head = head_for(codes * 2.0**20)
        elif what == "nan":
            head.weight[1, 1] = torch.nan
        elif what == "one label":
            head = head_for(codes[:1])
        else:
            head = head_for(np.arange(34).reshape(2, 17))
    assert LabelCodes.of(head) is None


@given(st.integers(0, 10**9), st.integers(1, 3), st.integers(2, 11))
def test_the_nearest_code_against_all_of_them(seed: int, size: int, labels: int) -> None:
    rng = np.random.default_rng(seed)
    codes = drawn(seed, labels, size)
    found = codes_of(head_for(codes))
    y = rng.integers(-24, 25, (size, 60)) / 4 + rng.choice([0.0, 1e-9, -1e-9], (size, 60))
    label, known = found.nearest(y)
    for column, mine, there in zip(y.T, label.tolist(), known.tolist(), strict=True):
        away = np.abs(column - codes).max(1)
        assert there == bool((np.rint(column) == codes).all(1).any())
        if there and away[mine] < 0.5:
            logits = 2 * codes @ column - (codes**2).sum(1)
            others = np.delete(logits, mine)
            assert logits[mine] - others.max() >= 1 - 2 * away[mine] - 1e-12
    assert (found.away(y, label) == np.abs(y - codes[label].T).max(0)).all()
    sizes = np.abs(2 * codes) @ np.abs(y) + (codes**2).sum(1)[:, None]
    assert (found.terms(y) >= sizes.max(0)).all()
    products = (np.abs(2 * codes) @ np.abs(y)).max(0)
    lost = 2.0**-24 * ((size + 1) * products + size * (codes**2).sum(1).max())
    assert (found.slip(y, 2.0**-24) >= lost).all()


def test_a_lead_that_is_no_larger_than_claimed() -> None:
    """A neighbour that is 1 away in the coordinate that is off."""
    found = codes_of(head_for([[4.0, 1.0], [5.0, 1.0], [0.0, 0.0]]))
    y = np.array([[4.375], [0.9]])
    logits = 2 * found.codes @ y - (found.codes**2).sum(1)[:, None]
    assert logits[0] - logits[1] == 1 - 2 * found.away(y, np.array([0])) == 0.25


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_what_is_not_near_any_number(bad: float) -> None:
    found = codes_of(head_for([[1.0, 2.0], [3.0, 0.0]]))
    assert found.nearest(np.array([[bad], [2.0]]))[1].tolist() == [False]


def test_codes_in_many_coordinates_do_not_collide() -> None:
    """Spans whose product just fits into 62 bits; those that do not fit are refused."""
    codes = np.zeros((3, 3))
    codes[0], codes[1] = 2.0**20 - 1, -(2.0**20)
    codes[0, 0], codes[1, 0] = 2.0**20 - 2, 0.0
    found = codes_of(head_for(codes))
    assert found.keys.max() == 2**62 - 2**42 - 1
    assert found.nearest(codes.T)[0].tolist() == [0, 1, 2]
    codes[0, 0] += 1
    assert LabelCodes.of(head_for(codes)) is None
