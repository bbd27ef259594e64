"""Functions and settings that Proposition 1 is not about, and odd ones that it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rankone import approximate
from rankone.approximation.target import Target
from rankone.arrays import Floats
from rankone.errors import FunctionError, RankOneError, SettingError, SizeError

Function = Callable[[Floats], Any]
RNG = np.random.default_rng(0)


def centred(x: Floats) -> Floats:
    return np.asarray(x - x.mean(-2, keepdims=True))


def places(x: Floats) -> Floats:
    return np.arange(x.shape[1], dtype=float)[:, None]


def small(f: Any, **settings: Any) -> Any:
    if "epsilon" not in settings:
        settings.setdefault("grid", 4)
    return approximate(f, **{"n": 2, "samples": 256, **settings})


def in_place(x: Floats) -> Floats:
    x -= x.mean(-2, keepdims=True)
    return x


def in_single(x: Floats) -> torch.Tensor:
    return torch.from_numpy(x).float().softmax(-2)


WORKING: dict[str, Function] = {
    "a list": lambda x: x.tolist(),
    "a tensor": lambda x: torch.from_numpy(x).softmax(-2),
    "a tensor with a gradient": lambda x: torch.from_numpy(x).requires_grad_() * 2,
    "integers": lambda x: (10 * x).astype(int),
    "truth": lambda x: x > 0.5,
    "its input, changed": in_place,
    "rounding only": lambda x: x + 1e-15 * places(x),
    "seven outputs": lambda x: np.repeat(x, 7, -1) * np.arange(7),
    "a jump": lambda x: np.sign(x - 0.37),
    "0": np.zeros_like,
    "1e300": lambda x: np.full_like(x, 1e300),
    "1e-300": lambda x: np.full_like(x, 1e-300),
}


@pytest.mark.parametrize("name", WORKING)
def test_odd_functions_that_work(name: str) -> None:
    f = WORKING[name]
    result = small(f)
    assert result.ok
    x = result.grid.centres(result.grid.all_sequences())
    wanted = np.asarray(torch.as_tensor(f(x.copy())).detach(), np.float64)
    assert result.outputs == wanted.shape[-1]
    size = np.abs(wanted).max()
    np.testing.assert_allclose(result(x), wanted, rtol=0, atol=1e-12 * size)


def test_constants_have_no_error() -> None:
    for name in ("0", "1e300", "1e-300"):
        assert small(WORKING[name]).error == 0.0


@pytest.mark.parametrize("n", [2, 3])
def test_single_precision_is_equivariant_up_to_its_own_rounding(n: int) -> None:
    assert small(in_single, n=n, grid=3).ok


REFUSED: dict[str, tuple[Function, str]] = {
    "complex": (lambda x: x + 1j, "real numbers"),
    "object": (lambda x: x.astype(object), "real numbers"),
    "None": (lambda _: None, "real numbers"),
    "text": (lambda x: x.astype(str), "real numbers"),
    "rank 2": (lambda x: x[..., 0], "shape (1, 2)"),
    "rank 4": (lambda x: x[..., None], "shape (1, 2, 1, 1)"),
    "one token": (lambda x: x[:, :1], "shape (1, 1, 1)"),
    "no outputs": (lambda x: x[..., :0], "(1, 2, m)"),
    "m varies": (lambda x: np.ones((*x.shape[:2], 1 + (len(x) > 9))), "2 numbers per token"),
    "nan at a centre": (lambda x: np.where(x == 0.375, np.nan, x), "0.375"),
    "infinite": (lambda x: np.where(x == 0, np.inf, x), "inf"),
    "fails": (lambda x: x @ np.ones((3, 1)), "ValueError"),
    "random": (lambda x: x + RNG.random(), "not deterministic"),
    "order": (lambda x: x + places(x), "not permutation equivariant"),
    "order of equal tokens": (
        lambda x: x.argsort(-2, kind="stable"),
        "not permutation equivariant",
    ),
    "mixes": (lambda x: x - x.mean(0), "mixes the sequences"),
    "size of the batch": (lambda x: x + len(x), "mixes the sequences"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    f, part = REFUSED[name]
    with pytest.raises(FunctionError) as refused:
        small(f)
    message = str(refused.value)
    assert part in message
    assert refused.value.remedy
    assert message.count("\n") <= 3


def test_a_nan_is_shown_with_its_input() -> None:
    with pytest.raises(FunctionError, match=r"nan.* at .*0\.375"):
        small(REFUSED["nan at a centre"][0])


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_order_is_seen_whatever_the_size_of_the_values(size: float) -> None:
    with pytest.raises(FunctionError, match="not permutation equivariant"):
        small(lambda x: size * (x + places(x)))


@pytest.mark.parametrize("off", [1e-8, 1e-10, 1e-14])
def test_what_passes_the_check_passes_the_rest(off: float) -> None:
    """Either too far from equivariant for the check, or near enough for the network."""
    try:
        result = small(lambda x: x + off * places(x))
    except FunctionError:
        return
    assert result.ok


def test_a_failure_is_shown_with_the_input() -> None:
    def fails(x: Floats) -> Floats:
        if (x == 1.0).any():
            raise ValueError("too large")
        return x

    with pytest.raises(FunctionError, match=r"too large") as refused:
        small(fails)
    assert "[1.]" in str(refused.value)


def test_long_messages_of_the_function_are_cut() -> None:
    def fails(_: Floats) -> Floats:
        raise ValueError("line\n" * 500)

    with pytest.raises(FunctionError) as refused:
        small(fails)
    assert str(refused.value).count("\n") <= 4


def test_a_function_that_leaves_is_refused() -> None:
    with pytest.raises(FunctionError):
        small(lambda _: sys.exit(0))


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "settings",
    [
        *({"n": n} for n in (0, -1, 2.5, "2", None)),
        *({"d": d} for d in (0, -1, 1.5, "1")),
        *({"grid": grid} for grid in (0, -1, 8.5, "8")),
        *({"epsilon": epsilon} for epsilon in (0, -1, NAN, INF, "x")),
        *({"p": p} for p in (0.5, 0, -1, NAN, INF, "2", None)),
        *({"samples": samples} for samples in (0, -1, 255, 1e3, "300")),
        *({"lipschitz": constant} for constant in (-1, NAN, INF, "x")),
        *({"delta": delta} for delta in (0, -1, 1, NAN, INF, "x")),
        *({"memory": memory} for memory in (-1, NAN, "1")),
        *({"seed": seed} for seed in (-1, "a", 1.5)),
        *({"readout": readout} for readout in ("planes", None)),
        {"grid": 4, "epsilon": 0.1},
        *(
            {"domain": domain}
            for domain in (None, 5, "ab", (0, 1, 2), (1, 0), (0, 0), (0, NAN), (0, INF))
        ),
        {"domain": ((0, 0), (1, 1))},
        {"domain": (-1e308, 1e308)},
    ],
    ids=str,
)
def test_settings_that_cannot_be(settings: dict[str, Any]) -> None:
    with pytest.raises(RankOneError) as refused:
        small(centred, **settings)
    assert refused.value.remedy
    assert str(refused.value).count("\n") <= 2
    named = str(next(iter(settings)))
    assert isinstance(refused.value, SettingError) or named in ("delta", "memory")


def test_a_constant_for_a_built_in_function_is_not_passed_over() -> None:
    """Its own is known; one that f breaks must not be taken in silence."""
    with pytest.raises(FunctionError):
        small("softmax", lipschitz=1e-9)


@pytest.mark.parametrize(
    ("name", "domain"), [("softmax", (1, 1 + 1e-9)), ("mean-centring", (1e6, 1e6 + 1))]
)
def test_rounding_does_not_break_a_constant(name: str, domain: tuple[float, float]) -> None:
    assert small(name, domain=domain, grid=8, samples=4096).ok


@pytest.mark.parametrize(
    ("n", "d", "grid"),
    [(2, 1, 10**5), (3, 2, 64), (1, 1, 10**400), (10**3, 1, 32), (1, 10**4, 2)],
    ids=["grid", "d = 2", "giant grid", "giant n", "giant d"],
)
def test_too_large_is_refused_before_anything_is_built(n: int, d: int, grid: int) -> None:
    with pytest.raises(SizeError, match="context ids") as refused:
        small(centred, n=n, d=d, grid=grid, memory=1.0)
    assert len(str(refused.value)) < 400
    assert "the largest grid that fits is" in str(refused.value)


def by_place(x: Floats) -> Floats:
    """0, 1, ..., n - 1, for every sequence."""
    return np.broadcast_to(np.arange(x.shape[1])[None, :, None], x.shape)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: 1e9 + 0.4 * by_place(x) + 0 * x,
        lambda x: 1e9 + 0.4 * by_place(x) * x,
        lambda x: (x * (1 + by_place(x))).astype(np.float16),
        lambda x: (1 + 4e-4 * by_place(x) + 0 * x).astype(np.float32),
    ],
)
def test_an_offset_or_few_digits_do_not_hide_the_order(f: Callable[[Floats], Floats]) -> None:
    with pytest.raises(FunctionError, match="not permutation equivariant"):
        small(f, n=2)


def test_an_offset_does_not_hide_a_slope() -> None:
    with pytest.raises(FunctionError, match="more than the Lipschitz constant"):
        small(lambda x: 1e6 + 1e-7 * np.abs(x - 0.3), lipschitz=1e-12)


@pytest.mark.parametrize(
    "domain", [([0, 0], [1, 0]), ([0, 2], [1, 1]), ([0, -np.inf], 1), ([-1e308, 0], [1e308, 1])]
)
def test_a_domain_that_is_empty_in_one_coordinate_is_refused(domain: Any) -> None:
    with pytest.raises(SettingError, match="is empty or not finite"):
        small(centred, d=2, domain=domain)


def test_a_number_that_is_not_finite_is_shown_with_its_input() -> None:
    def f(x: Floats) -> Floats:
        return np.where(x == 0.5, np.inf, x)

    x = np.array([[[0.1], [0.2]], [[0.3], [0.5]], [[0.5], [0.4]]])
    for some in (x[:2], x):  # the first of them
        with pytest.raises(FunctionError, match=r"is \[\[0.3\], \[inf\]\] at \[\[0.3\], \[0.5\]\]"):
            Target(f, "f", 1)(some)


@pytest.mark.parametrize("domain", [(2.0**52, 2.0**52 + 4), (1e9, 1e9 + 1e-3)])
def test_a_domain_with_hardly_any_floats_is_refused(domain: tuple[float, float]) -> None:
    with pytest.raises(SettingError, match="too few floats"):
        small(lambda x: x - domain[0], domain=domain)


@pytest.mark.parametrize("high", [1e-300, 1e200])
def test_a_domain_whose_squared_distances_are_no_floats_is_refused(high: float) -> None:
    with pytest.raises(SettingError, match="out of range for float64"):
        small("nearest", domain=(0.0, high))


def test_where_nothing_fits_the_remedy_is_memory() -> None:
    with pytest.raises(SizeError, match="about 1 MB, and the limit is 0 MB") as refused:
        small(centred, memory=0)
    assert "--memory" in refused.value.remedy


def test_sequences_beyond_what_can_be_measured_are_refused() -> None:
    with pytest.raises(SettingError, match="22,000 numbers cannot be measured"):
        small("largest", n=22_000, grid=1)
