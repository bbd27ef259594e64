"""Heads alone memorise (Mahdavi, Liao and Thrampoulidis 2023): one attention layer, nothing else.

An example t is a context E_t (n x d, tokens as rows), a query e_t in R^d and labels in R^m. With H
heads of size s, whose keys, queries and values are W_K, W_Q, W_V (s x d),

    z_h(t) = W_V,h E_t^T softmax(E_t W_K,h^T W_Q,h e_t),   Z = (z_h(t)) in R^(T x H s),

and the labels are Z W if Z has rank T. The theorem: contexts of rank n, n < d, and queries of
Kruskal rank n or more have such heads for T = H (r - 1) + 1 examples, r = min(n, s). The rank is
the same for almost all weights, so they are drawn, and W is solved for; the paper's induction over
heads that put all weight on one token would take scores too large for float64.

Where all examples share one context E, no weights do better with s >= n. For Z = [A_1 ... A_H] D,
with D block diagonal, its blocks E W_V,h^T, and row t of A_h the attention weights of head h, which
add up to 1: A_h 1 = 1. So the columns of all A_h lie in the span of the vector 1 and of n - 1
columns of each A_h, and

    rank Z <= rank [A_1 ... A_H] <= H (n - 1) + 1.

The bound knows nothing of keys and queries: those of rank 1, W_K = u k^T and W_Q = u q^T, reach it
too, although the theorem's r would be 1 for heads of size 1.

In a corpus the query is one of the tokens, and sentences have different lengths. The shortest
context of two or more tokens gives r. A context of a single token has z_h = W_V,h x for all
weights: L of them need d >= L, and then count like all others. The same word in the same place of
two sentences breaks the condition on Kruskal rank, but not the rank of Z. None of this is taken for
granted: the network is run over the corpus before it is returned.

A context has two labels here (m = 2): the number of its label, and its own number in [0, 1). The
second one makes a contextual mapping of it. Without it, the layer would put out labels only, and
contexts of one word with one label would be apart by rounding errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from rankone.arrays import Floats
from rankone.construct.exact import Asked, asked_contexts, refuse_repeats
from rankone.construct.problem import NUMBERS, RESERVE, Problem
from rankone.construct.verify import check_fast
from rankone.deadline import tick, time_left
from rankone.errors import PrecisionError, UnfitError
from rankone.nn import TokenClassifier
from rankone.nn.classifier import Architecture
from rankone.nn.exact.evaluate import Sentence

MOST = 1 << 12  # examples: Z is dense, and its singular values take T^3 operations (a minute)
PER_NUMBER = 2e-9  # seconds per number of Z and example, to solve, which cannot be interrupted
SPREADS = (4.0, 8.0, 16.0)  # of scores, one draw each: examples that look alike need larger ones


@dataclass(frozen=True)
class Fit:
    """Matrices of all heads, (H x s x d), and what they write for labels, ``output`` (H x m x s).

    ``residual`` is the largest |Z W - Y|; ``condition`` the largest singular value of Z over the
    T-th, with columns of Z scaled to length 1 (infinite if Z has no rank T in float64).
    """

    key: Floats
    query: Floats
    value: Floats
    output: Floats
    residual: float
    condition: float


def capacity(heads: int, r: int) -> int:
    """How many examples H heads memorise, r = min(n, s)."""
    return heads * (r - 1) + 1


def heads_for(examples: int, r: int) -> int:
    """The smallest H with `capacity` for so many examples, r >= 2."""
    return max(1, -(-(examples - 1) // (r - 1)))


def memorize_examples(
    contexts: Sequence[Floats],
    queries: Floats,
    labels: Floats,
    heads: int,
    head_size: int,
    rank1: bool = False,
    seed: int = 0,
    spread: float = SPREADS[0],
) -> Fit:
    """Draw the heads and solve Z W = Y, for contexts (n x d), queries (T x d), labels (T x m).

    Contexts may have different lengths. `rank1` draws keys and queries of rank 1. `spread` is about
    how far apart scores are. The solution is the best there is: see its residual.
    """
    rng, d = np.random.default_rng(seed), queries.shape[1]
    # a score is about scale^2 |e| |x|, and sqrt(s) times that if the rank is s
    scale = np.sqrt(spread / np.sqrt(_mean_square([queries]) * _mean_square(contexts)))
    if rank1:
        u = np.full((head_size, 1), head_size**-0.5)
        key, query = (u * rng.standard_normal((heads, 1, d)) * scale for _ in range(2))
    else:
        scale *= head_size**-0.25
        key, query = (rng.standard_normal((heads, head_size, d)) * scale for _ in range(2))
    value = rng.standard_normal((heads, head_size, d)) * d**-0.5
    z = averages(contexts, queries, key, query, value)
    w, condition = _solved(z, labels)
    residual = float(np.abs(z @ w - labels).max())
    output = np.ascontiguousarray(w.reshape(heads, head_size, -1).transpose(0, 2, 1))
    return Fit(key, query, value, output, residual, condition)


def averages(
    contexts: Sequence[Floats], queries: Floats, key: Floats, query: Floats, value: Floats
) -> Floats:
    """Z (T x H s)."""
    z = np.empty((len(queries), value.shape[0] * value.shape[1]))
    asks = np.einsum("hsd,td->ths", query, queries)
    before = None
    for t, context in enumerate(contexts):
        if context is not before:  # examples of one sentence share an array
            tick()
            keys, values = (np.einsum("hsd,nd->hns", w, context) for w in (key, value))
            before = context
        scores = np.einsum("hns,hs->hn", keys, asks[t])
        weights = np.exp(scores - scores.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        z[t] = np.einsum("hn,hns->hs", weights, values).ravel()
    return z


def build(problem: Problem, seed: int) -> TokenClassifier:
    """Heads whose keys and queries have full rank."""
    return _built(problem, seed, rank1=False)


def build_rank1(problem: Problem, seed: int) -> TokenClassifier:
    """Heads whose keys and queries have rank 1; values have full rank."""
    return _built(problem, seed, rank1=True)


def _built(problem: Problem, seed: int, rank1: bool) -> TokenClassifier:
    refuse_repeats(problem, "Theorem 1 of Mahdavi, Liao and Thrampoulidis")
    asked = asked_contexts(problem)
    lengths = [context.place + 1 if problem.causal else len(context.sentence) for context in asked]
    r = min((n for n in lengths if n > 1), default=2)
    heads, dim = heads_for(len(asked), r), max(max(lengths) + 1, lengths.count(1))
    _refuse_size(problem, len(asked), heads * r, heads * r * dim)
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((len(problem.corpus.vocabulary) + 1, dim))
    positions = rng.standard_normal((problem.length, dim)) if problem.placed else None
    contexts, queries = _examples(asked, lengths, table, positions)
    T = len(asked)
    labels = np.array([[context.label + 1, t / T] for t, context in enumerate(asked)])
    for spread in SPREADS:
        fit = memorize_examples(contexts, queries, labels, heads, r, rank1, seed, spread)
        network = _network(problem, table, positions, fit)
        if check_fast(network, problem)[0].holds(RESERVE):
            return network
    raise PrecisionError(
        f"{heads:,} heads of size {r} do not fit {len(asked):,} contexts in float64: labels are "
        f"off by {fit.residual:.1e}, and the condition number is {fit.condition:.1e}",
        where=problem.corpus.source,
        remedy="give another seed (--seed), or fewer sentences",
    )


def _examples(
    asked: Sequence[Asked], lengths: Sequence[int], table: Floats, positions: Floats | None
) -> tuple[list[Floats], Floats]:
    """Contexts, one array for all examples of a sentence unless it is cut short, and queries."""
    sentences: dict[Sentence, Floats] = {}
    contexts = []
    for context, n in zip(asked, lengths, strict=True):
        words = context.sentence[:n]
        if words not in sentences:
            x = table[list(words)]
            sentences[words] = x if positions is None else x + positions[:n]
        contexts.append(sentences[words])
    return contexts, np.stack([x[a.place] for x, a in zip(contexts, asked, strict=True)])


def _network(
    problem: Problem, table: Floats, positions: Floats | None, fit: Fit
) -> TokenClassifier:
    """The heads as a network without hidden units: two more coordinates, 0 in the tables, get the
    number of the label, which is all that the head reads, and that of the context."""
    (heads, head_size, d), labels = fit.key.shape, len(problem.corpus.label_names)
    shape = Architecture(
        vocabulary=len(table),
        labels=labels,
        dim=d + 2,
        hidden=0,
        positions=0 if positions is None else len(positions),
        attention="softmax",
        heads=heads,
        head_size=head_size,
        feedforward="dense",
        causal=problem.causal,
    )
    sizes = shape.parameter_shapes()
    tensors = {name: torch.zeros(size, dtype=torch.float64) for name, size in sizes.items()}
    tensors["table"][:, :d] = torch.from_numpy(table)
    if positions is not None:
        tensors["positions"][:, :d] = torch.from_numpy(positions)
    for name in ("key", "query", "value"):
        tensors[f"blocks.0.attention.{name}"][..., :d] = torch.from_numpy(getattr(fit, name))
    tensors["blocks.0.attention.output"][:, d:] = torch.from_numpy(fit.output)
    number = torch.arange(1, labels + 1, dtype=torch.float64)
    tensors["head.weight"][:, d] = 2 * number
    tensors["head.bias"][:] = -(number**2)
    return TokenClassifier.of(shape, tensors)


def _solved(z: Floats, y: Floats) -> tuple[Floats, float]:
    """The shortest least-squares solution of Z W = Y, refined once, and the condition number."""
    size = np.linalg.norm(z, axis=0)
    size[size == 0] = 1.0
    scaled = z / size
    u, sigma, v = np.linalg.svd(scaled, full_matrices=False)
    tick()
    noise = sigma[0] * max(z.shape) * np.finfo(np.float64).eps
    rank = int(np.count_nonzero(sigma > noise))

    def solve(right: Floats) -> Floats:
        return np.asarray(v[:rank].T @ ((u[:, :rank].T @ right) / sigma[:rank, None]))

    w = solve(y)
    w += solve(y - scaled @ w)
    condition = float(sigma[0] / sigma[-1]) if rank == len(z) else float("inf")
    return w / size[:, None], condition


def _mean_square(contexts: Sequence[Floats]) -> float:
    """The mean of |x|^2 over the tokens of all contexts."""
    return float(np.mean([(context**2).sum(1).mean() for context in contexts]))


def _refuse_size(problem: Problem, examples: int, features: int, numbers: int) -> None:
    if examples > MOST or numbers > NUMBERS:
        raise UnfitError(
            f"{examples:,} contexts: a dense system of {examples:,} equations for heads of "
            f"{numbers:,} numbers",
            where=problem.corpus.source,
            remedy=f"give at most {MOST:,} contexts, of which few are single tokens",
        )
    needed = PER_NUMBER * examples**2 * features
    if needed > time_left():
        raise PrecisionError(
            f"would take about {needed:,.0f} s to solve for {examples:,} contexts",
            where=problem.corpus.source,
            remedy="give more time (compare --seconds), or fewer sentences",
        )
