"""How many numbers the one-layer Transformer of Corollaries 1 and 2 needs, each way of counting."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rankone.theory.given import as_whole


@dataclass(frozen=True)
class ParameterCounts:
    """Counts for N sentences of n tokens in R^d, head size s, q = nN hidden units.

    The feed-forward layer is Zhang et al.'s: a direction a, thresholds b_j and weights w_j. The
    bias b^(2) of eq. 3 is 0 and counted only where the matrices are counted dense.
    """

    paper: int  # Corollary 1: attention_factors + feedforward_separate = 4(s+d) + d(2nN+d)
    attention_factors: int  # 4(s+d): two vectors for each of W^O, W^V, W^K, W^Q, all of rank 1
    attention_dense: int  # 4sd: every entry of the four matrices
    attention_rank1: int  # 3d: v1, v2 and W^O of eq. 20, where key and value share v1
    feedforward_separate: int  # d(2nN+d): a network of its own for each of d output coordinates
    feedforward_shared: int  # d + nN + dnN: a and b_j shared by all coordinates, W^(2) of its own
    feedforward_dense: int  # 2dnN + nN + d: every entry of W^(1), b^(1), W^(2), b^(2) with q = nN
    positions: int  # dn: the entries of E in Corollary 2, which no other count includes

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def parameter_counts(n: int, sentences: int, dim: int, head_size: int = 1) -> ParameterCounts:
    """4(s+d) + d(2nN+d) (Corollaries 1 and 2), and the other readings of "parameters".

    n, N, d, s are ``n``, ``sentences``, ``dim`` and ``head_size``.
    """
    n, sentences = as_whole("n", n), as_whole("sentences", sentences)
    dim, head_size = as_whole("dim", dim), as_whole("head_size", head_size)
    units = n * sentences
    factors, separate = 4 * (head_size + dim), dim * (2 * units + dim)
    return ParameterCounts(
        paper=factors + separate,
        attention_factors=factors,
        attention_dense=4 * head_size * dim,
        attention_rank1=3 * dim,
        feedforward_separate=separate,
        feedforward_shared=dim + units + dim * units,
        feedforward_dense=2 * dim * units + units + dim,
        positions=dim * n,
    )
