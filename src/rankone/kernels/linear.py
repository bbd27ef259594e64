"""The linear-time attention as torch operators: gradients, shapes for the compiler, autocast.

On the CPU the loops are compiled by numba, which keeps the machine code on disk; on every other
device the same sums are taken by torch itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, library

from rankone.kernels import nonfinite, portable, second, sweep
from rankone.kernels.operators import attention, attention_backward

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
    out: Tensor = attention(*rows, there, causal)[0]
    return out.reshape(*batch, c, q).mT


@library.impl("rankone::attention", "CompositeExplicitAutograd")
def _attention(
    query: Tensor, key: Tensor, value: Tensor, there: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor]:
    """Means (rows, c, q) of the values (rows, c, n), and the sums (rows, q) of the weights.

    `query` is (rows, q), `key` is (rows, n), `there` is True for the keys (rows, n) that count.
    """
    if nonfinite.all_finite(query, key, value):
        return _forward(query, key, value, there, causal)
    out, total = _forward(*nonfinite.left_out(query, key, value, there), causal)
    return nonfinite.spoil(out, query, key, value, there, causal), total


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
    if nonfinite.all_finite(query, key, value):
        return _backward(grad, query, key, value, there, out, total, causal)
    given = nonfinite.left_out(query, key, value, there)
    out = out.where(torch.isfinite(out), 0.0)
    grads = _backward(grad, *given, out, total, causal)
    return nonfinite.spoil_gradients(grads, query, key, value)


def _forward(
    query: Tensor, key: Tensor, value: Tensor, there: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor]:
    if query.device.type != "cpu":
        return portable.forward(query, key, value, there, causal)
    arrays: list[Any] = [_array(x) for x in (query, key, value, there)]
    out, total = sweep.forward(*arrays, causal=causal)
    return torch.from_numpy(out), torch.from_numpy(total)


def _backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    there: Tensor | None,
    out: Tensor,
    total: Tensor,
    causal: bool,
) -> Three:
    if query.device.type != "cpu":
        return portable.backward(grad, query, key, value, there, out, total, causal)
    arrays: list[Any] = [_array(x) for x in (grad, query, key, value, there, out, total)]
    of_query, of_key, of_value = map(torch.from_numpy, sweep.backward(*arrays, causal=causal))
    return of_query, of_key, of_value


def _array(tensor: Tensor | None) -> Any:
    return None if tensor is None else np.ascontiguousarray(tensor.detach().numpy())


def _shapes(query: Tensor, _: Tensor, value: Tensor, *__: Any) -> tuple[Tensor, Tensor]:
    return value.new_empty(*value.shape[:2], query.shape[1]), query.new_empty(query.shape)


def _shapes_backward(_: Tensor, query: Tensor, key: Tensor, value: Tensor, *__: Any) -> Three:
    return query.new_empty(query.shape), key.new_empty(key.shape), value.new_empty(value.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.causal = inputs
    ctx.save_for_backward(*tensors, *output)


def _pull_back(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    return *attention_backward(grad, *ctx.saved_tensors, ctx.causal), None, None


library.register_fake("rankone::attention", _shapes)
library.register_fake("rankone::attention_backward", _shapes_backward)
library.register_autograd("rankone::attention", _pull_back, setup_context=_save)
library.register_autograd(
    "rankone::attention_backward", second.pull_back, setup_context=second.save
)
for device in ("cpu", "cuda"):
    library.register_autocast("rankone::attention", device, torch.float32)
