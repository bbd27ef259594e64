"""The built-in functions: permutation equivariant ones, and two that depend on the order."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankone.arrays import Floats
from rankone.errors import SettingError


@dataclass(frozen=True)
class Modulus:
    """|f(X) - f(Y)| <= constant |X - Y|^exponent in the Euclidean norms of R^(n x d), R^(n x m)."""

    constant: float
    exponent: float = 1.0

    def __call__(self, distance: float) -> float:
        return float(self.constant * distance**self.exponent)


@dataclass(frozen=True)
class TokenBox:
    """The inputs of a function: n tokens in the box [low, high] of R^d."""

    n: int
    low: Floats
    high: Floats
    seed: int = 0

    @property
    def d(self) -> int:
        return len(self.low)

    @property
    def diameter(self) -> float:
        """The largest distance of two tokens."""
        return float(np.linalg.norm(self.high - self.low))

    @property
    def radius(self) -> float:
        """The largest norm of a token."""
        return float(np.linalg.norm(self.largest))

    @property
    def largest(self) -> Floats:
        """The largest absolute value of each coordinate."""
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))


@dataclass(frozen=True)
class Named:
    """A function and its modulus of continuity, if that is known."""

    name: str
    function: Callable[[Floats], Floats]
    modulus: Modulus | None


@dataclass(frozen=True)
class Recipe:
    """``formula`` is the output of token k; ``function`` computes it, unless it is drawn by seed.

    ``constant`` is a Lipschitz constant, ``exponent`` below 1 for Hoelder continuity instead.
    """

    formula: str
    function: Callable[[Floats], Floats] | None
    constant: Callable[[TokenBox], float]
    exponent: float = 1.0
    positions: bool = False
    least_n: int = 1


def named_function(
    name: str,
    *,
    n: int,
    low: Floats,
    high: Floats,
    seed: int = 0,
) -> Named:
    """The built-in function of that name for n tokens in the box [low, high]."""
    if name not in FUNCTIONS:
        near = difflib.get_close_matches(name, FUNCTIONS, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SettingError(
            f"no built-in function {name!r}",
            remedy=f"{hint}`rankone approximate --list` shows all",
        )
    recipe = FUNCTIONS[name]
    if n < recipe.least_n:
        raise SettingError(
            f"needs at least {recipe.least_n} tokens", where=name, remedy="use a larger n"
        )
    box = TokenBox(n, low, high, seed)
    modulus = Modulus(float(recipe.constant(box)), recipe.exponent)
    return Named(name, recipe.function or random_smooth(box), modulus)


def softmax(x: Floats, axis: int) -> Floats:
    e = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(e / e.sum(axis, keepdims=True))


def differences(x: Floats) -> Floats:
    """x_l - x_k at [..., k, l, :]."""
    return np.asarray(x[..., None, :, :] - x[..., :, None, :])


def distances(x: Floats) -> Floats:
    return np.asarray(np.linalg.norm(differences(x), axis=-1))


def nearest(x: Floats) -> Floats:
    """The distance to the nearest other token."""
    apart = distances(x) + np.where(np.eye(x.shape[-2], dtype=bool), np.inf, 0.0)
    return np.asarray(apart.min(-1, keepdims=True))


def to_all(x: Floats, like: Floats) -> Floats:
    """Repeat one row per sequence for each of its tokens."""
    return np.broadcast_to(x, like.shape[:-1] + x.shape[-1:])


def log_mean_exp(x: Floats) -> Floats:
    largest = x.max(-2, keepdims=True)
    return np.asarray(largest + np.log(np.exp(x - largest).mean(-2, keepdims=True)))


def attraction(x: Floats) -> Floats:
    """Every token attracts the others, far ones hardly: mean of u e^(-|u|^2 / 2)."""
    u = differences(x)
    return np.asarray((u * np.exp(-0.5 * (u**2).sum(-1, keepdims=True))).mean(-2))


def soft_rank(x: Floats) -> Floats:
    """Soft share of the tokens below: mean of sigmoid(4 (x_k - x_l))."""
    return np.asarray((0.5 + 0.5 * np.tanh(-2 * differences(x))).mean(-2))


def product_of_others(x: Floats) -> Floats:
    n = x.shape[-2]
    others = np.where(np.eye(n, dtype=bool)[..., None], 1.0, x[..., None, :, :])
    return np.asarray(others.prod(-2))


def product_constant(s: TokenBox) -> float:
    """Entry (k, l) of the derivative in one coordinate is a product of n - 2 others."""
    return (s.n - 1) * max(1.0, float(s.largest.max())) ** max(0, s.n - 2)


def attend(x: Floats) -> Floats:
    return np.asarray(softmax(x @ x.swapaxes(-1, -2), -1) @ x)


def attend_constant(s: TokenBox) -> float:
    """Own: the covariance under the weights. Others: weights, and how scores move them."""
    root = float(np.sqrt(s.n))
    return s.diameter**2 / 4 + root + root * s.diameter * s.radius


def random_smooth(s: TokenBox) -> Callable[[Floats], Floats]:
    """A tanh (B x_k + C mean_l sin(E x_l + e)), drawn from the seed."""
    a, b, c, e, shift = random_weights(s)

    def function(x: Floats) -> Floats:
        context = np.sin(x @ e.T + shift).mean(-2, keepdims=True)
        return np.asarray(np.tanh(x @ b.T + context @ c.T) @ a.T)

    return function


def random_weights(s: TokenBox) -> tuple[Floats, ...]:
    rng, hidden = np.random.default_rng(s.seed), 8
    a = rng.standard_normal((1, hidden)) / np.sqrt(hidden)
    b, e = (rng.standard_normal((hidden, s.d)) for _ in range(2))
    c = rng.standard_normal((hidden, hidden)) / np.sqrt(hidden)
    return a, b, c, e, rng.uniform(0, 2 * np.pi, hidden)


def random_constant(s: TokenBox) -> float:
    """tanh, sin and the mean over tokens have Lipschitz constant 1."""
    a, b, c, e, _ = (np.linalg.norm(w, 2) for w in random_weights(s))
    return float(a * (b + c * e))


def running_mean(x: Floats) -> Floats:
    return np.asarray(x.cumsum(-2) / np.arange(1, x.shape[-2] + 1)[:, None])


def root(s: TokenBox) -> float:
    """Norm of a map that gives one row, at most as long as X, to all n tokens."""
    return float(np.sqrt(s.n))


def centred(x: Floats) -> Floats:
    return np.asarray(x - x.mean(-2, keepdims=True))


FUNCTIONS: dict[str, Recipe] = {
    "mean-centring": Recipe("x_k - mean_l x_l", centred, lambda _: 1.0),
    "softmax": Recipe(
        "e^(x_k) / sum_l e^(x_l), each coordinate", lambda x: softmax(x, -2), lambda _: 0.5
    ),
    "nearest": Recipe(
        "distance to the nearest other token", nearest, lambda s: 1 + np.sqrt(s.n - 1), least_n=2
    ),
    "attraction": Recipe("mean_l u e^(-|u|^2 / 2), u = x_l - x_k", attraction, lambda _: 1.0),
    "soft-rank": Recipe("mean_l sigmoid(4 (x_k - x_l))", soft_rank, lambda _: 1.0),
    "product-of-others": Recipe(
        "prod_(l != k) x_l, each coordinate", product_of_others, product_constant
    ),
    "random-smooth": Recipe(
        "A tanh(B x_k + C mean_l sin(E x_l + e)), from --seed", None, random_constant
    ),
    "attention": Recipe("sum_l softmax_l(x_k . x_l) x_l", attend, attend_constant),
    "spread": Recipe(
        "(x_k - mean_l x_l)^2, each coordinate",
        lambda x: centred(x) ** 2,
        lambda s: 2 * (s.high - s.low).max(),
    ),
    "radius": Recipe(
        "|x_k - mean_l x_l|",
        lambda x: np.linalg.norm(centred(x), axis=-1, keepdims=True),
        lambda _: 1.0,
    ),
    "largest": Recipe(
        "max_l x_l, each coordinate, to all", lambda x: to_all(x.max(-2, keepdims=True), x), root
    ),
    "median": Recipe(
        "median of x_l, each coordinate, to all",
        lambda x: to_all(np.median(x, axis=-2, keepdims=True), x),
        root,
    ),
    "log-mean-exp": Recipe(
        "log mean_l e^(x_l), each coordinate, to all", lambda x: to_all(log_mean_exp(x), x), root
    ),
    "root-distance": Recipe(
        "sqrt of the distance to the nearest other token: not Lipschitz",
        lambda x: np.sqrt(nearest(x)),
        # |sqrt a - sqrt b| <= sqrt |a - b| in each of n entries, then Jensen.
        lambda s: s.n**0.25 * np.sqrt(1 + np.sqrt(s.n - 1)),
        exponent=0.5,
        least_n=2,
    ),
    "running-mean": Recipe(
        "mean of x_1, ..., x_k: needs --positions", running_mean, root, positions=True
    ),
    "reverse": Recipe(
        "x_(n + 1 - k): needs --positions if n > 2",
        lambda x: x[..., ::-1, :],
        lambda _: 1.0,
        positions=True,
    ),
}
