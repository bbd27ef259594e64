"""Heads whose matrices all have rank 1, as vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rankone.nn.layers import AttentionLayer, Head

Numbers = NDArray[Any]  # float32 or float64: those of the network


def along(vector: Numbers, z: Numbers) -> Numbers:
    """vector @ z; a vector with one coordinate just looks there."""
    at = np.flatnonzero(vector)
    return vector[at[0]] * z[at[0]] if len(at) == 1 else np.asarray(vector @ z)


def rank1_heads(attention: AttentionLayer) -> list[Head[Numbers]] | None:
    """Heads of softmax whose matrices all have rank 1, as vectors; None if there is another one.

    Eq. 2 with W^K = u_K k^T, W^Q = u_Q q^T and W^V = u_V v^T is eq. 20 with the query direction
    (u_K^T u_Q) q, the key k, the value v, and W^O u_V written.
    """
    if attention.kind != "softmax":
        return None
    found = []
    for head in (head.map(_numpy) for head in attention.heads):
        keys, queries = factors(head.key), factors(head.query)
        values = keys if head.shared else factors(head.value)
        if keys is None or queries is None or values is None:
            return None
        (u_k, k), (u_q, q), (u_v, v) = keys, queries, values
        found.append(Head(k, (u_k @ u_q) * q, v, head.output @ u_v))
    return found


def factors(weight: Numbers) -> tuple[Numbers, Numbers] | None:
    """u and a with W = u a^T up to rounding, or None if W does not have rank 1."""
    if len(weight) == 1:
        return np.ones(1, weight.dtype), weight[0]
    i, j = np.unravel_index(np.abs(weight).argmax(), weight.shape)
    a = weight[i]
    u = weight[:, j] / (weight[i, j] or 1.0)
    product = np.outer(u, a)
    close = np.abs(weight - product) <= 4 * np.finfo(weight.dtype).eps * np.abs(product)
    return (u, a) if close.all() else None


def _numpy(parameter: Tensor) -> Numbers:
    return np.array(parameter.detach().numpy())
