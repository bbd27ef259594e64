"""Derivatives of the attention, of every order, forwards and backwards.

With A(W)_k = sum_l W_l p_kl, the attention as a linear map of the values, and A' its transpose,

    d u = A'(g),   d y_k = g_k (A(u x) - A(u) A(x))_k,   d x_l = (u A'(g y) - A'(g y A(u)))_l

summed over channels. Both maps take linear time: A is the operator, and A' is its gradient with
respect to the values. <h, A'(g)> = <A(h), g> shows how to differentiate A'.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, library

# Defined by their schemas: an operator made from a function loads torch's compiler when it is first
# called, which takes two seconds. The code of the two is in `linear`.
library.define(
    "rankone::attention",
    "(Tensor query, Tensor key, Tensor value, Tensor? there, bool causal) -> (Tensor, Tensor)",
)
library.define(
    "rankone::attention_backward",
    "(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? there, Tensor out, "
    "Tensor total, bool causal) -> (Tensor, Tensor, Tensor)",
)
Forward = Callable[..., tuple[Tensor, Tensor]]
Gradients = Callable[..., tuple[Tensor, Tensor, Tensor]]
attention_forward: Forward = torch.ops.rankone.attention.default
attention_backward: Gradients = torch.ops.rankone.attention_backward.default


class LinearAttention(torch.autograd.Function):
    """The operator for function transforms, with its derivatives in both directions."""

    @staticmethod
    def forward(
        query: Tensor, key: Tensor, value: Tensor, there: Tensor | None, causal: bool
    ) -> tuple[Tensor, Tensor]:
        return attention_forward(query, key, value, there, causal)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.causal = inputs
        ctx.set_materialize_grads(False)  # no zeros for the sums of the weights
        ctx.save_for_backward(*tensors, *output)
        ctx.save_for_forward(*tensors, *output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * 5
        return *_backward(grad, *ctx.saved_tensors, ctx.causal), None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> tuple[Tensor, Tensor]:
        """A(u') + y' (A(u x) - A(u) A(x)) + y (A(u x') - A(u) A(x'))."""
        query, key, value, there, out, total = ctx.saved_tensors

        def mean(values: Tensor) -> Tensor:
            return attention_forward(query, key, values, there, ctx.causal)[0]

        def slope(along: Tensor) -> Tensor:
            along = along.unsqueeze(1)
            found: Tensor = mean(value * along) - out * mean(along)
            return found

        moved = torch.zeros_like(out)
        if tangents[2] is not None:
            moved = moved + mean(tangents[2])
        if tangents[0] is not None:
            moved = moved + tangents[0].unsqueeze(1) * slope(_centred(key))
        if tangents[1] is not None:
            moved = moved + query.unsqueeze(1) * slope(tangents[1])
        return moved, torch.zeros_like(total)  # nobody needs that of the sums


class Transpose(torch.autograd.Function):
    """A'(g), (rows, c, n), from g, (rows, c, q)."""

    @staticmethod
    def forward(
        grad: Tensor, query: Tensor, key: Tensor, there: Tensor | None, causal: bool
    ) -> Tensor:
        value = key.new_zeros(*grad.shape[:2], key.shape[-1])
        result = attention_forward(query, key, value, there, causal)
        return attention_backward(grad, query, key, value, there, *result, causal)[2]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        *tensors, ctx.causal = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> tuple[Tensor | None, ...]:
        grad, query, key, there = ctx.saved_tensors
        out, total = attention_forward(query, key, h, there, ctx.causal)
        return out, *_backward(grad, query, key, h, there, out, total, ctx.causal)[:2], None, None


def gradients(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, there: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """What `attention_backward` computes, in differentiable operations."""

    def mean(values: Tensor) -> Tensor:
        return attention_forward(query, key, values, there, causal)[0]

    def transpose(grads: Tensor) -> Tensor:
        found: Tensor = Transpose.apply(grads, query, key, there, causal)  # type: ignore[no-untyped-call]
        return found

    x, y = _centred(key).unsqueeze(1), query.unsqueeze(1)
    out = mean(value)
    of_query = (grad * (mean(value * x) - out * mean(x))).sum(1)
    turned = transpose(grad * y)
    of_key = (value * turned).sum(1) - transpose((grad * out * y).sum(1, keepdim=True)).squeeze(1)
    return of_query, of_key, transpose(grad)


def _centred(key: Tensor) -> Tensor:
    """Any constant may be subtracted from the keys; the middle leaves the smallest numbers."""
    fixed = key.detach()
    return key - (fixed.amax(-1, keepdim=True) / 2 + fixed.amin(-1, keepdim=True) / 2)


class Backward(torch.autograd.Function):
    """The operator of the gradients, with its own gradients by grad, query, key and value.

    The result of the forward pass, also an argument, is a function of these.
    """

    @staticmethod
    def forward(*given: Any) -> tuple[Tensor, Tensor, Tensor]:
        return attention_backward(*given)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG004
        grad, query, key, value, there, _, _, ctx.causal = inputs
        ctx.save_for_backward(grad, query, key, value, there)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        *saved, there = ctx.saved_tensors
        with torch.enable_grad():
            # Views, since the incoming gradient may depend on the tensors it belongs to.
            given = [
                x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in saved
            ]
            grad, query, key, value = given
            found = gradients(grad, query, key, value, there, ctx.causal)
            grads = torch.autograd.grad(
                found, given, cotangents, create_graph=True, materialize_grads=True
            )
        return *grads, None, None, None, None


def _merge_rows(function: Any, info: Any, in_dims: tuple[int | None, ...], *given: Any) -> Any:
    """For torch.vmap, one more batch dimension means more rows."""
    count = info.batch_size
    merged = [
        (x.expand(count, *x.shape) if dim is None else x.movedim(dim, 0)).flatten(0, 1)
        if isinstance(x, Tensor)
        else x
        for x, dim in zip(given, in_dims, strict=True)
    ]
    found = function.apply(*merged)
    several = isinstance(found, tuple)
    split = tuple(
        x.view(count, len(x) // count, *x.shape[1:]) for x in (found if several else (found,))
    )
    return (split, (0,) * len(split)) if several else (split[0], 0)


for each in (LinearAttention, Transpose, Backward):
    each.vmap = staticmethod(partial(_merge_rows, each))  # type: ignore[method-assign]


def run(function: Any, operator: Any, *given: Any) -> Any:
    """The compiler knows operators; transforms such as torch.func.grad know functions."""
    return operator(*given) if torch.compiler.is_compiling() else function.apply(*given)


def _backward(*given: Any) -> tuple[Tensor, Tensor, Tensor]:
    found: tuple[Tensor, Tensor, Tensor] = run(Backward, attention_backward, *given)
    return found
