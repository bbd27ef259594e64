"""Large groups: no unit is left out that may be active, however products are rounded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rankone.certification import crowds
from rankone.certification.ball_arithmetic import Balls
from rankone.certification.crowds import Crowds, Doubt
from rankone.nn.gatekeeper import Gatekeeper

HEADS, UNITS, TOKENS = 5, 60, 200
SIGNS = np.random.default_rng(1).choice([-1.0, 1.0], HEADS)


def keeper(sizes: list[int], order: np.ndarray) -> Gatekeeper:
    """Words open the gates 1, 2, ...; group g has so many units."""
    first = np.concatenate([[0], np.cumsum(sizes)])
    gates = len(sizes) + 1
    nothing = np.zeros(gates), np.zeros(gates)
    words = np.arange(gates)
    return Gatekeeper(words, words[:0], order, first, words[1:] * gates, nothing, nothing)


def made(slopes: np.ndarray, bias: np.ndarray, sizes: list[int]) -> tuple[Crowds, np.ndarray]:
    """Units are shuffled: `order` names them group by group."""
    order = np.random.default_rng(2).permutation(len(bias))
    shuffled, moved = np.empty_like(slopes), np.empty_like(bias)
    shuffled[order], moved[order] = slopes, bias
    return Crowds(keeper(sizes, order), shuffled, moved, len(sizes) + 1), order


def reached(found: Crowds, order: np.ndarray, a: Balls, doubt: Doubt) -> np.ndarray:
    """Which unit (by its place in the group) is looked at for which token of the first word."""
    token, unit = found.reached(np.ones(a.mid.shape[1], np.int64), a, doubt)
    back = np.argsort(order)
    out = np.zeros((len(order), a.mid.shape[1]), int)
    np.add.at(out, (back[unit], token), 1)
    assert out.max() <= 1
    return out.astype(bool)


AWAY: list[tuple[str, float, Doubt, Callable[[float], float]]] = [
    ("rounding", 0.0, Doubt(), lambda _: 1e-9),  # far below the rounding of single precision
    ("averages in balls", 1e-3, Doubt(), lambda size: -0.9e-3 * size),
    ("averages in a run", 0.0, Doubt(1e-3), lambda size: -0.9e-3 * size),
    ("bias in a run", 0.0, Doubt(0.0, 1e-3), lambda _: 0.0),
]


@pytest.mark.parametrize("case", AWAY, ids=[name for name, *_ in AWAY])
@pytest.mark.parametrize("held", [1 << 21, 64 * 7])
def test_units_at_the_border(
    case: tuple[str, float, Doubt, Callable[[float], float]],
    held: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The unit of number j bends next to token j, on the side where it may be active."""
    monkeypatch.setattr(crowds, "HELD", held)
    name, rad, doubt, beyond = case
    rng = np.random.default_rng(0)
    mid = rng.uniform(-1, 1, (HEADS, TOKENS))
    slopes = rng.uniform(-1, 1, (UNITS, HEADS))
    sizes = np.sqrt((slopes**2).sum(1))
    wide = np.longdouble(slopes), np.longdouble(mid)
    seen = np.array([float(wide[0][j] @ wide[1][:, j]) for j in range(UNITS)])
    bias = -seen + np.array([beyond(size) for size in sizes.tolist()])
    if name == "bias in a run":
        bias *= 1 + 0.9e-3
        bias[seen < 0] = -seen[seen < 0] * (1 - 0.9e-3)
    found, order = made(slopes, bias, [UNITS])
    rads = np.full_like(mid, rad / np.sqrt(HEADS))
    there = reached(found, order, Balls(mid, rads), doubt)
    assert there[np.arange(UNITS), np.arange(UNITS)].all()
    active = slopes @ mid + bias[:, None] > 0
    assert there[active].all()
    assert there.sum() < active.sum() + 0.2 * there.size  # not all is looked at


def test_numbers_that_are_none() -> None:
    rng = np.random.default_rng(0)
    mid = rng.uniform(-1, 1, (HEADS, TOKENS))
    mid[2, 5] = np.nan
    found, order = made(rng.uniform(-1, 1, (UNITS, HEADS)), np.full(UNITS, -9.0), [UNITS])
    there = reached(found, order, Balls(mid, np.zeros_like(mid)), Doubt())
    assert there[:, 5].all()


def test_each_word_has_its_own_crowd() -> None:
    """Small groups are left to others; few pairs are all taken."""
    rng = np.random.default_rng(0)
    sizes = [UNITS, 3, UNITS]
    found, order = made(rng.uniform(-1, 1, (123, HEADS)), np.full(123, 9.0), sizes)
    assert found.there.tolist() == [True, False, True]
    words = rng.integers(0, 4, TOKENS)
    mid = rng.uniform(-1, 1, (HEADS, TOKENS))
    token, unit = found.reached(words, Balls(mid, np.zeros_like(mid)), Doubt())
    pairs = set(zip(token.tolist(), np.argsort(order)[unit].tolist(), strict=True))
    units = {1: range(UNITS), 3: range(UNITS + 3, 123)}
    assert pairs == {(t, u) for t, w in enumerate(words.tolist()) for u in units.get(w, ())}
    assert len(token) == len(pairs)
    none = Crowds(keeper(sizes, order), np.full((123, HEADS), 1e16), np.zeros(123), 4)
    assert not none.there.any()  # single precision might overflow
