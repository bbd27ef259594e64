"""Heads: what float64 balls decide is what the exact logits decide, and by how much."""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite, nan, nextafter
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from rankone.certify.labels import LinearHead, NoHead, NumberHead, deviation, head_of
from rankone.certify.rounding import Balls, U

Row = list[Fraction]


def linear(weight: Any, bias: Any) -> nn.Linear:
    weight = torch.as_tensor(np.asarray(weight, dtype=float))
    layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
    layer.weight.data, layer.bias.data = weight, torch.as_tensor(np.asarray(bias, dtype=float))
    return layer


def numbers(p: list[float], labels: int) -> nn.Linear:
    """Rows 2c p as float64 rounds them, biases -c^2."""
    c = np.arange(1.0, labels + 1)
    return linear(c[:, None] * (2 * np.array(p)), -(c**2))


def exact_logits(head: nn.Linear, z: Row) -> Row:
    rows = zip(head.weight.tolist(), head.bias.tolist(), strict=True)
    return [
        sum((Fraction(w) * x for w, x in zip(row, z, strict=True)), Fraction(b)) for row, b in rows
    ]


def winners(logits: Row) -> list[int]:
    return [c for c, logit in enumerate(logits) if logit == max(logits)]


def lead(logits: Row) -> Fraction:
    first, second = sorted(logits)[:-3:-1]
    return first - second


def balls(z: Row) -> list[arb]:
    return [arb(fmpq(x.numerator, x.denominator)) for x in z]


def decode(head: Any, mid: list[float], rad: list[float]) -> tuple[int, float]:
    found = head.decode(Balls(np.array(mid)[:, None], np.array(rad)[:, None]))
    return int(found.labels[0]), float(found.off[0])


def corners(mid: list[float], rad: list[float]) -> list[Row]:
    """The middle, and the two corners of the box."""
    return [
        [Fraction(m) + side * Fraction(r) for m, r in zip(mid, rad, strict=True)]
        for side in (0, -1, 1)
    ]


sizes = st.sampled_from([0.0, 0.0, 2.0**-1000, 1e-16, 1e-9, 0.1])


@st.composite
def features(draw: st.DrawFn, p: list[float], labels: int) -> tuple[list[float], list[float]]:
    """z with p . z near a half-integer, a label, or anywhere; and radii."""
    y = draw(
        st.one_of(
            st.integers(0, 2 * labels + 3).map(lambda k: k / 2),
            st.floats(-2, labels + 3),
        )
    )
    dim = len(p)
    mid = [draw(st.floats(-4, 4)) for _ in range(dim)]
    rest = sum(a * b for a, b in zip(p[1:], mid[1:], strict=True))
    mid[0] = (y - rest) / p[0]
    for _ in range(draw(st.integers(0, 3))):
        mid[0] = nextafter(mid[0], draw(st.sampled_from([-inf, inf])))
    return mid, [draw(sizes) for _ in range(dim)]


directions = st.lists(
    st.sampled_from([1.0, -1.0, 0.5, 0.1, 1 / 3, -0.7, 3.0]), min_size=1, max_size=4
)


def within(y: Fraction, labels: int) -> Fraction:
    """Beyond the first and the last label y is as good as on it."""
    return min(max(y, Fraction(1)), Fraction(labels))


@given(st.data(), directions, st.integers(1, 12))
def test_number_head(data: st.DataObject, p: list[float], labels: int) -> None:
    """Below 1/2 the label is that of the largest logit, and y is no further from it than `off`."""
    layer = numbers(p, labels)
    head = head_of(layer)
    assert isinstance(head, NumberHead)
    mid, rad = data.draw(features(p, labels))
    label, off = decode(head, mid, rad)
    for z in corners(mid, rad):
        y = sum((Fraction(a) * x for a, x in zip(p, z, strict=True)), Fraction(0))
        assert abs(within(y, labels) - (label + 1)) <= Fraction(off)
        if off < 0.5:
            assert winners(exact_logits(layer, z)) == [label]


@given(st.data(), directions, st.integers(1, 12))
def test_number_head_in_balls(data: st.DataObject, p: list[float], labels: int) -> None:
    layer = numbers(p, labels)
    z = [Fraction(x) for x in data.draw(features(p, labels))[0]]
    y = sum((Fraction(a) * x for a, x in zip(p, z, strict=True)), Fraction(0))
    with ctx.workprec(4000):  # enough for all digits of all floats
        label, off, values = NumberHead(layer).exact(balls(z))
        assert values[0] == balls([y])[0]
        if off < 0.5:
            assert winners(exact_logits(layer, z)) == [label]
            assert off == balls([abs(within(y, labels) - (label + 1))])[0]
        else:
            far = abs(within(y, labels) - (label + 1)) >= Fraction(1, 2)
            assert far or winners(exact_logits(layer, z)) != [label]


@pytest.mark.parametrize("y", [1.5, 2.5])
def test_exact_halves_are_not_decided(y: float) -> None:
    head = head_of(numbers([1.0], 3))
    for rad in (0.0, 1e-9):
        assert not decode(head, [y], [rad])[1] < 0.5
    for bits in (53, 1000):
        with ctx.workprec(bits):
            assert not head.exact([arb(y)])[1] < 0.5


@pytest.mark.parametrize(("y", "label"), [(0.6, 0), (1.4, 0), (1.6, 1), (3.4, 2)])
def test_what_lies_well_inside_is_decided(y: float, label: int) -> None:
    head = head_of(numbers([0.1, 0.3], 3))
    found, off = decode(head, [y / 0.1, 0.0], [1e-9, 1e-9])
    assert found == label
    assert off < 0.41


@pytest.mark.parametrize(("y", "label"), [(-7.0, 0), (0.2, 0), (57.0, 2), (3.6, 2)])
def test_what_lies_outside_of_all_labels_is_decided_too(y: float, label: int) -> None:
    """The logits leave no doubt; no precision will bring y closer to a label."""
    head = head_of(numbers([1.0], 3))
    with ctx.workprec(100):
        found, off, _ = head.exact([arb(y)])
    assert found == label
    assert off == 0
    assert decode(head, [y], [1e-9]) == (label, pytest.approx(0, abs=1.1e-9))


def test_rows_that_float64_rounds() -> None:
    """With p = 0.1 most rows are no exact multiples; the head is recognised all the same."""
    layer = numbers([0.1, 1 / 3], 9)
    assert isinstance(head_of(layer), NumberHead)
    rows = [[Fraction(x) for x in row] for row in layer.weight.tolist()]
    dev = deviation(layer.weight.detach().numpy())
    assert (dev > 0).all()
    for c, row in enumerate(rows, start=1):
        for i in range(2):
            assert abs(row[i] - c * rows[0][i]) <= Fraction(float(dev[i]))


def test_near_ties_with_rounded_rows() -> None:
    """Rows off by their rounding decide ties of y the other way: never by the nearest number."""
    layer = numbers([0.1], 12)
    head, doubtful = head_of(layer), 0
    for k in range(1, 12):
        z = (k + 0.5) / 0.1
        for _ in range(6):
            z = nextafter(z, -inf)
        for _ in range(12):
            z = nextafter(z, inf)
            right = winners(exact_logits(layer, [Fraction(z)]))
            label, off = decode(head, [z], [0.0])
            assert not off < 0.5 or right == [label]
            with ctx.workprec(300):
                label, exact, _ = head.exact([arb(z)])
            assert not exact < 0.5 or right == [label]
            y = Fraction(layer.weight[0, 0].item()) / 2 * Fraction(z)
            doubtful += right != [round(y) - 1]
    assert doubtful  # otherwise these rows prove nothing


@given(st.integers(0, 10**9), st.integers(1, 5), st.integers(2, 6))
def test_linear_head(seed: int, dim: int, labels: int) -> None:
    rng = np.random.default_rng(seed)
    weight, bias = rng.standard_normal((labels, dim)), rng.standard_normal(labels)
    if rng.integers(2):  # two labels almost or quite alike
        weight[1] = weight[0]
        bias[1] = bias[0] + rng.choice([0.0, 1e-16, -1e-12])
    layer = linear(weight, bias)
    head = head_of(layer)
    assert isinstance(head, LinearHead)
    mid = (rng.standard_normal(dim) * rng.choice([1.0, 1e5])).tolist()
    rad = (rng.choice([0.0, 1e-16, 1e-9, 0.1]) * rng.random(dim)).tolist()
    label, off = decode(head, mid, rad)
    for z in corners(mid, rad):
        logits = exact_logits(layer, z)
        if off < 0.5:
            assert winners(logits) == [label]
            assert lead(logits) / 2 >= (Fraction(1, 2) - Fraction(off)) * (1 - Fraction(2) ** -30)
    z = corners(mid, rad)[0]
    with ctx.workprec(300):
        label, exact, values = head.exact(balls(z))
        logits = exact_logits(layer, z)
        if exact < 0.5:
            assert winners(logits) == [label]
            distance = max(Fraction(1, 2) - lead(logits) / 2, Fraction(0))
            assert (exact - balls([distance])[0]).contains(0)
        else:
            assert lead(logits) == 0
        assert all(v.contains(b) for v, b in zip(values, balls(logits), strict=True))


def test_a_large_lead_is_not_made_larger() -> None:
    head = head_of(linear([[1.0], [0.0]], [0.0, 0.25]))
    _, off = decode(head, [21.0], [0.0])
    assert Fraction(off) >= Fraction(1, 2) - (21 - Fraction(1, 4)) / 2


@pytest.mark.parametrize("bad", [inf, -inf, nan])
@pytest.mark.parametrize("layer", [numbers([1.0, 2.0], 3), linear(np.eye(3)[:, :2], [0, 1, 5.0])])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_is_not_known_is_not_decided(layer: nn.Linear, bad: float) -> None:
    head = head_of(layer)
    for mid, rad in ((bad, inf), (bad, 0.0), (1.0, inf), (1.0, nan)):
        assert not decode(head, [mid, 1.0], [rad, 0.0])[1] < 0.5
    for number in (arb(bad), arb("[0 +/- inf]"), arb("nan")):
        assert not head.exact([number, arb(1)])[1] < 0.5


def test_heads_are_told_apart() -> None:
    assert isinstance(head_of(linear(np.zeros((3, 2)), np.zeros(3))), NoHead)
    assert isinstance(head_of(linear(np.zeros((2, 2)), [0, 1.0])), LinearHead)
    almost = numbers([1.0, 0.3], 4)
    with torch.no_grad():
        almost.weight[2, 0] *= 1 + 8 * U
    assert isinstance(head_of(almost), LinearHead)
    other = numbers([1.0], 4)
    with torch.no_grad():
        other.bias[1] += 2.0**-40
    assert isinstance(head_of(other), LinearHead)


def test_no_head_passes_features_on() -> None:
    z = Balls(np.ones((2, 3)), np.full((2, 3), 0.1))
    head = head_of(linear(np.zeros((3, 2)), np.zeros(3)))
    assert isinstance(head, NoHead)
    found = head.decode(z)
    assert found.values is z
    assert (found.off < 0.5).all()


@given(st.data(), directions, st.integers(1, 9))
def test_the_float_run_decides_as_its_logits_do(
    data: st.DataObject, p: list[float], labels: int
) -> None:
    layer = numbers(p, labels)
    rows = [data.draw(features(p, labels))[0] for _ in range(5)]
    z = np.array(rows).T
    values, found = head_of(layer).run(z)
    logits = layer.weight.detach().numpy() @ z + layer.bias.detach().numpy()[:, None]
    gap = np.sort(logits, axis=0)
    clear = np.full(5, True) if labels == 1 else gap[-1] - gap[-2] > 1e-9
    assert (found == logits.argmax(0))[clear].all()
    assert np.allclose(values[0], np.array(p) @ z)
    assert all(map(isfinite, values[0]))
