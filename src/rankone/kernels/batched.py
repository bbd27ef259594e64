"""Rank-1 softmax attention over a batch of rows: checks, precision, and the choice of method."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rankone.errors import AttentionError
from rankone.kernels.direct import direct_attention

EXACT = (torch.float32, torch.float64)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
Method = Literal["auto", "direct", "linear"]

broadcast: Callable[..., torch.Size] = torch.broadcast_shapes
refused = partial(AttentionError, where="rank1_attention")

SWITCH = 1 << 17  # scores per row above which `linear` is faster (benchmarks/attention.py)


def rank1_attention(
    query: Float[Tensor, "*#batch q"],
    key: Float[Tensor, "*#batch n"],
    value: Float[Tensor, "*batch_and_n_or_n_c"],
    *,
    causal: bool = False,
    mask: Bool[Tensor, "*#batch_and_q n"] | None = None,
    lengths: Int[Tensor, "*#batch"] | None = None,
    method: Method = "auto",
) -> Float[Tensor, "*batch_and_q_or_q_c"]:
    """out_k = sum_l value_l e^(y_k x_l) / sum_l e^(y_k x_l)   over the keys l that k may attend to.

    y is `query`, x is `key`; a value is a number, (..., n), or a vector, (..., n, c). Leading
    dimensions (batch, heads) broadcast. A query that may attend to nothing gets 0.

    Unlike ``scaled_dot_product_attention``, this function has no axis for the head size: a batch is
    (batch, n). In the other layout, (batch, n, 1), every token would be a sequence of its own, and
    the result would be the values, whatever the queries and keys. So query, key and value are
    refused if all three end in the axes (m, 1) with m > 1. If they have no other axes, they may
    well be m sequences of one token, and get a warning only. Neither happens if a `mask` or
    `lengths` is given, or if values are vectors, (..., m, 1, c): pass ``value.unsqueeze(-1)`` if
    you mean one token per sequence.

    Args:
        causal: query k attends only to the keys l <= k, both counted from the start.
        mask: True where a query may attend to a key; (..., 1, n) for padding, which is the same for
            all queries. Without a batch, padding may also be (n,).
        lengths: another way to give padding: the number of keys at the start of each row that
            count. A length above n means all of them.
        method: ``"linear"`` takes O(n) time and memory, O(n log n) if causal, and agrees with
            ``"direct"`` up to rounding; it cannot use a mask that differs between queries.
            ``"direct"`` computes every score. ``"auto"`` chooses the faster one.
    """
    _check_tensors(query=query, key=key, value=value, mask=mask, lengths=lengths)
    vector = value.dim() > max(query.dim(), key.dim())
    if not vector and value.dim():
        if value.shape[-1] == 1 and mask is lengths is None:
            _check_layout(query, key, value)
        value = value.unsqueeze(-1)
    query, key, value, mask = _aligned(query, key, value, mask, lengths, vector)
    given = query.dtype
    if not (given == key.dtype == value.dtype and given in EXACT):
        given, exact = _precision(query, key, value)
        query, key, value = (x.to(exact) for x in (query, key, value))
    padding = mask is None or mask.shape[-2] == 1
    if padding and mask is not None:  # padding may hold anything, even NaN
        key, value = key.where(mask[..., 0, :], 0.0), value.where(mask.mT, 0.0)
    if method == "auto":
        method = "linear" if padding and query.shape[-1] * key.shape[-1] >= SWITCH else "direct"
    if method == "direct":
        out = direct_attention(query, key, value, causal=causal, mask=mask)
    elif method == "linear":
        if not padding:
            raise refused(
                "the linear method cannot use a mask that differs between queries",
                remedy='use method="auto", or causal=True, or give a mask of shape (..., 1, n)',
            )
        from rankone.kernels.linear import linear_attention  # compiled code: loaded when used

        out = linear_attention(query, key, value, causal, mask)
    else:
        raise refused(
            f"there is no method {method!r}",
            remedy='use "auto", "direct" or "linear"',
        )
    if out.dtype != given:
        out = out.to(given)
    return out if vector else out.squeeze(-1)


def _check_tensors(**given: Tensor | None) -> None:
    for name, x in given.items():
        if x is None or (isinstance(x, Tensor) and x.layout is torch.strided and not x.is_nested):
            continue
        kind = f"of type {type(x).__name__}"
        if isinstance(x, Tensor):
            kind = "a nested tensor" if x.is_nested else f"a tensor of layout {x.layout}"
        raise refused(
            f"{name} is {kind}",
            remedy="give dense tensors: torch.as_tensor makes them from lists and arrays, "
            "to_dense and torch.nested.to_padded_tensor from the others",
        )


def _check_layout(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Refuse numbers as (..., m, 1): m sequences of one token are hardly ever what is meant."""
    m = value.shape[-2] if value.dim() > 1 else 1
    if m < 2 or any(x.shape[-2:] != (m, 1) for x in (query, key, value)):
        return
    what = (
        f"the shape {tuple(value.shape)} means {m} sequences of one token each, whose result is "
        "their values"
    )
    remedy = (
        "take the last axis off, query.squeeze(-1), key.squeeze(-1), value.squeeze(-1); if one "
        "token per sequence is meant, give value.unsqueeze(-1)"
    )
    if max(query.dim(), key.dim(), value.dim()) > 2:
        raise refused(what, remedy=remedy)
    if not torch.compiler.is_compiling():
        warnings.warn(f"rank1_attention: {what}; {remedy}", stacklevel=3)


def _aligned(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    lengths: Tensor | None,
    vector: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Give all tensors the same leading dimensions, and make `lengths` part of the mask."""
    same = key.shape == value.shape[:-1] and key.shape[:-1] == query.shape[:-1]
    if same and mask is lengths is None and query.dim():
        return query, key, value, None
    try:
        q, (n, c) = query.shape[-1], value.shape[-2:]
        if key.shape[-1] != n:
            raise ValueError(f"{key.shape[-1]} keys but {n} values")
        batch = query.shape[:-1]
        if not batch == key.shape[:-1] == value.shape[:-2]:  # torch would load sympy to compare
            batch = broadcast(batch, key.shape[:-1], value.shape[:-2])
        if mask is not None:
            if mask.dim() == 1 and not batch:
                mask = mask.unsqueeze(0)
            if mask.dtype != torch.bool or mask.dim() < 2:
                raise TypeError("a mask must be boolean, with an axis of queries and one of keys")
        if lengths is not None:
            if lengths.dtype not in INTEGERS:
                raise TypeError("lengths must be integers")
            there = (torch.arange(n, device=key.device) < lengths[..., None]).unsqueeze(-2)
            mask = there if mask is None else mask & there
        if mask is not None:
            mask.expand(*batch, q, n)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        shown = value if vector else value.squeeze(-1)
        given = {"query": query, "key": key, "value": shown, "mask": mask, "lengths": lengths}
        named = (f"{k} {tuple(x.shape)} {x.dtype}" for k, x in given.items() if x is not None)
        remedy = (
            "query (..., q), key (..., n), value (..., n) or (..., n, c), a boolean mask "
            "(..., q, n) or (..., 1, n), integer lengths (...); there is no axis of head size, "
            "squeeze(-1) takes one of length 1 off"
        )
        if mask is not None and mask.shape == key.shape and mask.dtype == torch.bool:
            remedy = "give a mask of padding an axis of queries: mask.unsqueeze(-2)"
        raise refused(
            f"these do not fit together: {', '.join(named)}",
            remedy=remedy,
        ) from error
    return query.expand(*batch, q), key.expand(*batch, n), value.expand(*batch, n, c), mask


def _precision(*tensors: Tensor) -> tuple[torch.dtype, torch.dtype]:
    """The type of the result, and the one to compute in: at least float32."""
    given = tensors[0].dtype
    try:
        for tensor in tensors[1:]:
            given = torch.promote_types(given, tensor.dtype)
        exact = torch.promote_types(given, torch.float32)
    except RuntimeError:  # types of one byte
        exact = given
    if exact not in EXACT or not given.is_floating_point:
        raise refused(f"numbers of type {given}", remedy="use float32 or float64")
    return given, exact
