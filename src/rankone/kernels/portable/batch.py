"""Linear-time attention in torch operations, for devices other than the CPU: rows of a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from rankone.kernels.portable.partition import Rows, ScorePart, fitted, prepared

Given = tuple[Tensor, Tensor, Tensor, Tensor | None]  # query, key, value, there


def forward(given: Given, causal: bool) -> tuple[Tensor, Tensor]:
    """out_k = sum_l w_kl u_l / total_k,  total_k = sum_l w_kl,  w_kl = e^(y_k (x_l - x*_k)).

    For y (R, q), x (R, n) and u (R, c, n), over the keys that are `there` (R, n), and l <= k if
    causal; x*_k is the one of them with the largest weight. Both are 0 if there is no such key. out
    is (R, c, q), total is (R, q).

    Computed in float64 and returned in the type of the query. A device without float64 (MPS)
    computes in float32; out is then off by about 1e-6 of the largest value, and gradients, which
    are differences, by more.
    """
    query, key, value, _ = given
    (R, q), c = query.shape, value.shape[1]
    if query.numel() == 0 or key.numel() == 0:
        return value.new_zeros(R, c, q), torch.zeros_like(query)
    with torch.no_grad(), torch.autocast(query.device.type, enabled=False):
        rows = prepared(*given, causal)
        sums = rows.lanes.new_zeros(c + 1, *rows.query.shape)
        for part in rows.parts():
            kernel, gap = rows.kernel(part)
            found = kernel.at_queries(part.of_keys(rows.lanes))
            if gap is not None:
                found *= torch.exp(-part.of_queries(rows.query).abs() * gap)
            part.of_queries(sums).add_(found)
        total = sums[-1:]
        out = sums[:-1] / torch.where(total > 0, total, 1.0)
        return _as_given(out, query), _as_given(total, query).squeeze(1)


def backward(
    grad: Tensor, given: Given, out: Tensor, total: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """With p_kl = w_kl / total_k and e_kl = sum_c g_ck (u_cl - out_ck), the three gradients

    sum_l p_kl e_kl (x_l - x*_k)  to y_k,   sum_k p_kl e_kl y_k  to x_l,   sum_k p_kl g_ck  to u_cl.
    """
    query, key, value, _ = given
    if query.numel() == 0 or key.numel() == 0:
        return torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value)
    with torch.no_grad(), torch.autocast(query.device.type, enabled=False):
        rows = prepared(*given, causal)
        grad, out, total = (
            fitted(x, rows.query.shape[-1], rows.query.dtype).transpose(0, 1).contiguous()
            for x in (grad, out, total.unsqueeze(1))
        )
        grad = grad / torch.where(total > 0, total, torch.inf)
        to_query, to_key = torch.zeros_like(rows.query), torch.zeros_like(rows.key)
        to_value = torch.zeros_like(rows.lanes[:-1])
        for part in rows.parts():
            of_query, of_key, of_value = _gradients(rows, part, grad, out)
            part.of_queries(to_query).add_(of_query)
            part.of_keys(to_key).add_(of_key)
            part.of_keys(to_value).add_(of_value)
        seen = rows.lanes[-1]
        return (
            _as_given((to_query * rows.unit)[None], query).squeeze(1),
            _as_given((to_key * seen / rows.unit)[None], key).squeeze(1),
            _as_given(to_value * seen, value),
        )


def _gradients(
    rows: Rows, part: ScorePart, grad: Tensor, out: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What the scores of a part contribute. `grad` is already divided by the total.

    The kernel is relative to the extreme keys of the part, which are `gap` behind those of all.
    """
    kernel, gap = rows.kernel(part)
    c, y, lanes = len(grad), part.of_queries(rows.query), part.of_keys(rows.lanes)
    grad, out = part.of_queries(grad), part.of_queries(out)
    if gap is not None:
        grad = grad * torch.exp(-y.abs() * gap)

    back = kernel.at_keys(torch.cat([grad, y * grad, y * (grad * out).sum(0, keepdim=True)]))
    of_key = (back[c:-1] * lanes[:-1]).sum(0) - back[-1]

    found = kernel.at_queries(lanes, orders=(1,) if gap is None else (1, 0))
    distant = found[: c + 1]  # lanes times distance
    if gap is not None:
        distant += gap * found[c + 1 :]
    fall = (grad * (distant[:-1] - out * distant[-1])).sum(0)
    return torch.where(y < 0, fall, -fall), of_key, back[:c]


def _as_given(x: Tensor, like: Tensor) -> Tensor:
    """(R, any, size) in the type and size of `like`, from (any, R, size cut or padded)."""
    return fitted(x, like.shape[-1], like.dtype).transpose(0, 1).contiguous()
