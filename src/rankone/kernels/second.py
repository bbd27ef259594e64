"""Derivatives of the gradients: of second and, as it closes on itself, of every order.

With A(W)_k = sum_l W_l p_kl, the attention as a linear map of the values, and A' its transpose,

    d u = A'(g),   d y_k = g_k (A(u x) - A(u) A(x))_k,   d x_l = (u A'(g y) - A'(g y A(u)))_l

summed over channels. Both maps are there in linear time, A is the operator and A' its gradient by
the values, and <h, A'(g)> = <A(h), g> tells how to differentiate A' by what it depends on.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankone.kernels.operators import attention, attention_backward


class Transpose(torch.autograd.Function):
    """A'(g), (rows, c, n), from g, (rows, c, q)."""

    @staticmethod
    def forward(
        ctx: Any, grad: Tensor, query: Tensor, key: Tensor, there: Tensor | None, causal: bool
    ) -> Tensor:
        ctx.save_for_backward(grad, query, key, there)
        ctx.causal = causal
        value = key.new_zeros(*grad.shape[:2], key.shape[-1])
        result = attention(query, key, value, there, causal)
        found: Tensor = attention_backward(grad, query, key, value, there, *result, causal)[2]
        return found

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> tuple[Tensor | None, ...]:
        grad, query, key, there = ctx.saved_tensors
        out, total = attention(query, key, h, there, ctx.causal)
        found = attention_backward(grad, query, key, h, there, out, total, ctx.causal)
        return out, *found[:2], None, None


def gradients(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, there: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """What `attention_backward` computes, by operations that can be differentiated."""

    def mean(values: Tensor) -> Tensor:
        found: Tensor = attention(query, key, values, there, causal)[0]
        return found

    def transpose(grads: Tensor) -> Tensor:
        found: Tensor = Transpose.apply(grads, query, key, there, causal)  # type: ignore[no-untyped-call]
        return found

    # Any constant may be taken from the keys; the middle leaves the smallest numbers.
    middle = (key.detach().amax(-1, keepdim=True) + key.detach().amin(-1, keepdim=True)) / 2
    x, y = (key - middle).unsqueeze(1), query.unsqueeze(1)
    out = mean(value)
    of_query = (grad * (mean(value * x) - out * mean(x))).sum(1)
    turned = transpose(grad * y)
    of_key = (value * turned).sum(1) - transpose((grad * out * y).sum(1, keepdim=True)).squeeze(1)
    return of_query, of_key, transpose(grad)


def pull_back(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of `attention_backward` by grad, query, key and value.

    The result of the forward pass, which it is given too, is a function of these.
    """
    *saved, there = ctx.saved_tensors
    with torch.enable_grad():
        # Views, since the gradient that came in may itself depend on what it is a gradient by.
        given = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in saved]
        grad, query, key, value = given
        found = gradients(grad, query, key, value, there, ctx.causal)
        grads = torch.autograd.grad(
            found, given, cotangents, create_graph=True, materialize_grads=True
        )
    return *grads, None, None, None, None


def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG001
    grad, query, key, value, there, _, _, ctx.causal = inputs
    ctx.save_for_backward(grad, query, key, value, there)
