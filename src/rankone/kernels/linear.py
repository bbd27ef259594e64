"""The linear-time attention as torch operators: gradients, shapes for the compiler, autocast.

On the CPU the loops are compiled by numba, which keeps the machine code on disk; on every other
device the same sums are taken by torch itself.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, library

from rankone.kernels import nonfinite
from rankone.kernels.compiled import batch as compiled
from rankone.kernels.compiled.rectangle import UnfitError
from rankone.kernels.gradients import Backward, LinearAttention, attention_forward, run
from rankone.kernels.portable import batch as portable
from rankone.kernels.portable.batch import Given
from rankone.kernels.rescaling import LARGE, Rescaling

Three = tuple[Tensor, Tensor, Tensor]


def linear_attention(
    query: Tensor, key: Tensor, value: Tensor, causal: bool, mask: Tensor | None
) -> Tensor:
    """`direct_attention` in linear time; the mask, if any, is one row for all queries."""
    batch, q, (n, c) = query.shape[:-1], query.shape[-1], value.shape[-2:]
    if 0 in (query.numel(), value.numel()):
        return value.new_zeros(*batch, q, c)
    there = None if mask is None else mask.expand(*batch, 1, n).reshape(-1, n)
    rows = (query.reshape(-1, q), key.reshape(-1, n), value.mT.reshape(-1, c, n))
    out: Tensor = run(LinearAttention, attention_forward, *rows, there, causal)[0]
    return out.reshape(*batch, c, q).mT


@library.impl("rankone::attention", "CompositeExplicitAutograd")
def _attention(
    query: Tensor, key: Tensor, value: Tensor, there: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor]:
    """Means (rows, c, q) of the values (rows, c, n), and, if causal, the sums (rows, q) of weights.

    `query` is (rows, q), `key` is (rows, n), `there` is True for the keys (rows, n) that count.
    """
    if not causal and query.device.type == "cpu":
        with suppress(UnfitError):  # unfit numbers are found on the way
            return _forward((query, key, value, there), causal)
    given, rescaling, finite = _prepared(query, key, value, there)
    out, total = _forward(given, causal)
    if rescaling is not None:
        out *= rescaling.value
    if not finite:
        out = nonfinite.spoil(out, query, key, value, there, causal)
    return out, total


@library.impl("rankone::attention_backward", "CompositeExplicitAutograd")
def _attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    there: Tensor | None,
    out: Tensor,
    total: Tensor,
    causal: bool,
) -> Three:
    """The gradients of query, key and value."""
    if not causal and query.device.type == "cpu":
        with suppress(UnfitError):
            return _backward(grad, (query, key, value, there), out, total, causal)
    given, rescaling, finite = _prepared(query, key, value, there)
    if not finite:
        out = out.where(torch.isfinite(out), 0.0)
    if rescaling is not None:
        out = out / rescaling.value
    grads = _backward(grad, given, out, total, causal)
    if rescaling is not None:
        grads = rescaling.gradients(*grads)
    return grads if finite else nonfinite.spoil_gradients(grads, query, key, value)


def _forward(given: Given, causal: bool) -> tuple[Tensor, Tensor]:
    if given[0].device.type != "cpu":
        return portable.forward(given, causal)
    arrays: list[Any] = [_array(x) for x in given]
    out, total = compiled.forward(*arrays, causal=causal)
    return torch.from_numpy(out), torch.from_numpy(total)


def _backward(grad: Tensor, given: Given, out: Tensor, total: Tensor, causal: bool) -> Three:
    if grad.device.type != "cpu":
        return portable.backward(grad, given, out, total, causal)
    arrays: list[Any] = [_array(x) for x in (grad, *given, out, total)]
    of_query, of_key, of_value = map(torch.from_numpy, compiled.backward(*arrays, causal=causal))
    return of_query, of_key, of_value


def _prepared(
    query: Tensor, key: Tensor, value: Tensor, there: Tensor | None
) -> tuple[Given, Rescaling | None, bool]:
    """Numbers that can be summed, how they were rescaled, and whether all were finite."""
    sizes = nonfinite.largest(query, key, value)
    finite = all(map(math.isfinite, sizes))
    if not finite:
        query, key, value, there = nonfinite.left_out(query, key, value, there)
        sizes = nonfinite.largest(query, key, value)
    rescaling = None
    if max(sizes) > LARGE:
        rescaling = Rescaling.of(query, key, sizes[2])
        query, key, value = rescaling.scaled(query, key, value)
    return (query, key, value, there), rescaling, finite


def _array(tensor: Tensor | None) -> Any:
    return None if tensor is None else np.ascontiguousarray(tensor.detach().numpy())


def _shapes(
    query: Tensor, _: Tensor, value: Tensor, __: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor]:
    rows, q = query.shape
    sums = q if causal or query.device.type != "cpu" else 0
    return value.new_empty(*value.shape[:2], q), query.new_empty(rows, sums)


def _shapes_backward(_: Tensor, query: Tensor, key: Tensor, value: Tensor, *__: Any) -> Three:
    return query.new_empty(query.shape), key.new_empty(key.shape), value.new_empty(value.shape)


library.register_fake("rankone::attention", _shapes)
library.register_fake("rankone::attention_backward", _shapes_backward)
library.register_autograd(
    "rankone::attention",
    LinearAttention.backward,
    setup_context=LinearAttention.setup_context,
)
library.register_autograd(
    "rankone::attention_backward", Backward.backward, setup_context=Backward.setup_context
)
for device in ("cpu", "cuda"):
    library.register_autocast("rankone::attention", device, torch.float32)
