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

from rankone.certification.ball_arithmetic import Balls, U
from rankone.certification.label_heads import LinearHead, NoHead, NumberHead, deviation, head_of

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
    best = max(logits)
    return [c for c, logit in enumerate(logits) if logit == best]


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


@pytest.mark.parametrize(("y", "label"), [("-1e700", 0), ("1e700", 2)])
def test_what_no_float_holds_is_decided_too(y: str, label: int) -> None:
    head = head_of(numbers([1.0], 3))
    assert head.exact([arb(y, "1e690")])[:2] == (label, 0)


def test_a_head_whose_multiples_overflow_is_any_head() -> None:
    """Its rows are equal, so y says nothing of its labels."""
    layer = numbers([1.0], 3)
    with torch.no_grad():
        layer.weight.fill_(1.5e308)
    assert isinstance(head_of(layer), LinearHead)


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


def far_rows(labels: int, c: int) -> nn.Linear:
    """Row c is 4 u too long and row c + 1 as much too short: all that counts as rows 2c p."""
    layer = numbers([1.0], labels)
    with torch.no_grad():
        layer.weight[c - 1] = 2.0 * c * (1 + 4 * U)
        layer.weight[c] = 2.0 * (c + 1) * (1 - 4 * U)
    return layer


@pytest.mark.parametrize(("labels", "p"), [(12, 0.1), (300, 0.1), (300, 0.7)])
def test_near_ties_of_rounded_rows(labels: int, p: float) -> None:
    """Rows off by their rounding decide ties of y the other way: never by the nearest number."""
    layer = numbers([p], labels)
    head, doubtful = head_of(layer), 0
    for k in range(1, labels, max(1, labels // 12)):
        z = (k + 0.5) / p
        for step in (-6, -2, -1, 0, 1, 2, 6):
            at = z * (1 + 2 * U * step)
            right = winners(exact_logits(layer, [Fraction(at)]))
            label, off = decode(head, [at], [0.0])
            assert not off < 0.5 or right == [label]
            y = Fraction(layer.weight[0, 0].item()) / 2 * Fraction(at)
            doubtful += right != [round(y) - 1]
            if step % 2:
                with ctx.workprec(300):
                    label, exact, _ = head.exact([arb(at)])
                assert not exact < 0.5 or right == [label]
    assert doubtful  # otherwise these rows prove nothing


@pytest.mark.parametrize(("labels", "c"), [(300, 200), (1000, 600)])
def test_a_tie_where_rows_are_as_far_off_as_they_may(labels: int, c: int) -> None:
    """y is within 1/2 of label c + 1, whose logit is the smaller one: by 8 u a label."""
    layer = far_rows(labels, c)
    head = head_of(layer)
    assert isinstance(head, NumberHead)
    tie = Fraction(2 * c + 1) / (Fraction(layer.weight[c].item()) - layer.weight[c - 1].item())
    z = float(tie * (1 - Fraction(2) ** -51))
    assert Fraction(z) < tie
    assert winners(exact_logits(layer, [Fraction(z)])) == [c - 1]
    label, off = decode(head, [z], [0.0])
    assert label == c
    slip = abs(z - (c + 0.5))
    assert 0.5 <= off < 0.5 + 0.7 * slip
    assert decode(head, [z + 2 * slip], [0.0])[1] < 0.5


@pytest.mark.parametrize("rad", [2.0**-10, 2.0**-30])
def test_a_radius_that_just_reaches_the_tie(rad: float) -> None:
    """In two coordinates, one of which counts twice."""
    head = head_of(numbers([1.0, -2.0], 400))
    for mid in ([300.5 - 3 * rad, 0.0], [300.5 + 3 * rad, 0.0], [0.0, -150.25 + 1.5 * rad]):
        assert not decode(head, mid, [rad, rad])[1] < 0.5
        label, off = decode(head, mid, [rad / 2, rad / 2])
        assert label == (299 if mid[0] + mid[1] * -2 < 300.5 else 300)
        assert off == pytest.approx(0.5 - 1.5 * rad, abs=5e-11)
        assert off < 0.5


def test_rows_beyond_the_normal_floats() -> None:
    """Half of the smallest float is not a float: what y loses by that counts where z is huge."""
    layer = numbers([2.5e-324, 2.5e-324, 2.5e-324, 1.0], 3)
    with torch.no_grad():
        layer.weight[:, :3] = torch.tensor([[5e-324], [1e-323], [1.5e-323]], dtype=torch.float64)
    head = head_of(layer)
    assert isinstance(head, NumberHead)
    z = [1.5e308, 1.5e308, 1.5e308, 1.5 - 8 * U]
    assert winners(exact_logits(layer, list(map(Fraction, z)))) == [1]
    label, off = decode(head, z, [0.0] * 4)
    assert not off < 0.5 or label == 1


def test_an_exact_tie_of_logits_beside_a_half() -> None:
    """y = 3/2 - 2 u is nearer to label 1, but a row that is 4 u too long makes logits equal."""
    layer, z = numbers([1.0, 1.0], 2), [1.25 - 2 * U, 0.25]
    with torch.no_grad():
        layer.weight[1, 1] *= 1 + 4 * U
    assert winners(exact_logits(layer, list(map(Fraction, z)))) == [0, 1]
    head = head_of(layer)
    assert isinstance(head, NumberHead)
    assert not decode(head, z, [0.0, 0.0])[1] < 0.5
    with ctx.workprec(300):
        assert not head.exact([arb(x) for x in z])[1] < 0.5


@pytest.mark.parametrize("labels", [3, 1000])
@pytest.mark.parametrize("dim", [1, 3])
def test_logits_are_looked_at_where_rounding_could_decide(labels: int, dim: int) -> None:
    """The float64 run: with another bias, label 1 wins wherever logits are looked at."""
    head = head_of(numbers([1.0] * dim, labels))
    assert isinstance(head, NumberHead)
    head.offset = head.offset.copy()
    head.offset[0] = 1e300
    y = labels - 0.5
    terms = 2 * labels * y + labels**2
    reach = (2 * dim + 5) * U * terms
    z = np.zeros((dim, 4))
    z[0] = y + np.array([-0.9, -1.1, 0.9, 1.1]) * reach
    expected = [0, labels - 2, 0, labels - 1]
    for columns in (slice(4), *(slice(i, i + 1) for i in range(4))):
        values, found = head.run(z[:, columns])
        assert found.tolist() == expected[columns]
        assert values.tolist() == [z[0, columns].tolist()]


def test_the_float_run_at_near_ties_of_a_thousand_labels() -> None:
    """Its labels are those of the logits that it computes, which differ from the nearest number."""
    layer = numbers([1.0], 1000)
    z = np.array([c + 0.5 for c in range(900, 999)])
    z = np.concatenate([z * (1 + 2 * U * step) for step in range(-400, 400, 7)])[None]
    labels = head_of(layer).run(z)[1]
    logits = layer.weight.detach().numpy() @ z + layer.bias.detach().numpy()[:, None]
    assert (labels == logits.argmax(0)).all()
    assert (labels != np.rint(z[0]) - 1).any()  # otherwise these prove nothing


@pytest.mark.parametrize("rad", [0.0, 2.0**-10])
@pytest.mark.parametrize("third", [False, True])
def test_a_lead_at_its_bound(rad: float, third: bool) -> None:
    """Logits 2 z and -z + 1/8 differ by 3 z - 1/8, which three radii make smaller; z = 1/4, 1."""
    rows, bias = [[2.0], [-1.0], [-50.0]], [0.0, 0.125, 0.0]
    head = head_of(linear(rows[: 2 + third], bias[: 2 + third]))
    assert isinstance(head, LinearHead)
    label, off = decode(head, [0.25], [rad])
    lead = Fraction(5, 8) - 3 * Fraction(rad)
    assert label == 0
    assert Fraction(off) >= Fraction(1, 2) - lead / 2
    assert off == pytest.approx(float(Fraction(1, 2) - lead / 2), rel=1e-11)
    assert decode(head, [1.0], [rad])[1] == 2.0**-900  # no less than nothing
    label, off = decode(head, [-1.0], [rad])
    assert (label, off) == ((2, 2.0**-900) if third else (1, 2.0**-900))
    assert decode(head, [1 / 24 + rad], [rad])[1] >= 0.5  # a tie
    assert decode(head, [1 / 24 + 1e-9 + rad], [rad])[1] < 0.5


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
    assert isinstance(head_of(linear(np.eye(2), [0.0, 0.0])), LinearHead)
    for c in (3, 5):
        almost = numbers([1.0, 0.3], 5)
        with torch.no_grad():
            almost.weight[c - 1, 0] += 48 * U  # 8 u of 6, and 4.8 u of 10, where 4 u are allowed
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
    label, off, values = head.exact([arb(7), arb(8)])
    assert (label, off, [float(v) for v in values]) == (0, 0, [7.0, 8.0])


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("side", [1, -1])
def test_balls_next_to_a_half(k: int, side: int) -> None:
    """Far closer than any float: digits decide; a ball across the half is near one of both."""
    head = head_of(numbers([1.0], 4))
    with ctx.workprec(300):
        y = arb(k) + 0.5 + side * arb(2) ** -200
        label, off, _ = head.exact([y])
        assert label == (k if side > 0 else k - 1)
        assert off < 0.5
        label, off, _ = head.exact([y + arb(0, 0.125)])
        assert label in (k - 1, k)
        assert not off < 0.5


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
