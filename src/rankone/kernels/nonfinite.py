"""Infinities and NaN in linear time; `direct` gets them from its table of scores.

The sums leave them out; afterwards every result that they spoil is overwritten. This is rare, so
all of it is plain torch.
"""

from __future__ import annotations

import torch
from torch import Tensor


def largest(*tensors: Tensor) -> list[float]:
    """The largest |x| of each, not finite if one of them is not; without a temporary array."""
    ends = [torch.stack(torch.aminmax(x.detach())).abs().amax() for x in tensors]
    found: list[float] = torch.stack(ends).tolist()
    return found


def left_out(
    query: Tensor, key: Tensor, value: Tensor, there: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Leave out what is not finite: queries and values become 0, keys are masked."""
    finite = torch.isfinite(key)
    return (
        query.where(torch.isfinite(query), 0.0),
        key.where(finite, 0.0),
        value.where(torch.isfinite(value), 0.0),
        finite if there is None else finite & there,
    )


def spoil(
    out: Tensor, query: Tensor, key: Tensor, value: Tensor, there: Tensor | None, causal: bool
) -> Tensor:
    """`out` with infinities and NaN where the table of scores would have put them.

    For y >= 0 a key +inf is the extreme one, and inf - inf is NaN; for y < 0 its weight is 0. A
    query that is not finite is multiplied by a distance of 0, which is NaN. A value +-inf counts if
    all such keys that are seen have some weight; otherwise 0 * inf is NaN.
    """
    there = torch.ones_like(key, dtype=torch.bool) if there is None else there

    def most(x: Tensor) -> Tensor:
        """The largest over the keys that each query sees."""
        found = x.cummax(-1).values if causal else x.amax(-1, keepdim=True)
        return _to_queries(found, query.shape[-1], causal)

    def seen(keys: Tensor) -> Tensor:
        """Whether a query sees one of these keys."""
        return most(keys.to(key.dtype)) > 0

    finite = torch.isfinite(key) & there
    spoiled = seen(there) & ~torch.isfinite(query)
    spoiled |= seen(there) & ~seen(finite)
    spoiled |= seen(there & key.isnan())
    spoiled |= seen(there & key.isposinf()) & (query >= 0)
    spoiled |= seen(there & key.isneginf()) & (query <= 0)
    odd = ~torch.isfinite(value) & there.unsqueeze(-2)
    if odd.any():
        furthest = []  # for queries of either sign, how far behind the extreme key an odd one lies
        for towards in (1.0, -1.0):
            keys = (towards * key).unsqueeze(-2)
            best = most(keys.masked_fill(~finite.unsqueeze(-2), -torch.inf))
            furthest.append(best + most(-keys.where(odd, torch.inf)))
        y = query.unsqueeze(-2)
        weight = torch.exp(-y.abs() * torch.where(y >= 0, furthest[0], furthest[1]))
        above, below = seen(odd & value.isposinf()), seen(odd & value.isneginf())
        counts = (weight > 0) & ~(above & below) & ~seen(odd & value.isnan())
        counts &= ~seen(odd & ~finite.unsqueeze(-2))
        infinite = torch.where(above, torch.inf, -torch.inf).where(counts, torch.nan)
        out = torch.where(seen(odd), infinite, out)
    out = out.masked_fill(spoiled.unsqueeze(-2), torch.nan)
    return out.masked_fill(~seen(there).unsqueeze(-2), 0.0)


def spoil_gradients(
    grads: tuple[Tensor, Tensor, Tensor], query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients that depend on a number that is not finite are NaN."""
    of_query, of_key, of_value = grads
    queries = ~torch.isfinite(query)
    keys = (~torch.isfinite(key)).any(-1, keepdim=True)
    values = (~torch.isfinite(value)).any(-1).any(-1, keepdim=True)
    some = queries.any(-1, keepdim=True) | keys
    return (
        of_query.masked_fill(queries | keys | values, torch.nan),
        of_key.masked_fill(some | values, torch.nan),
        of_value.masked_fill(some.unsqueeze(-1), torch.nan),
    )


def _to_queries(prefix: Tensor, q: int, causal: bool) -> Tensor:
    """One entry for each query, from the results up to each key, or from one result for all."""
    if not causal:
        return prefix.expand(*prefix.shape[:-1], q)
    last = torch.arange(q, device=prefix.device).clamp(max=prefix.shape[-1] - 1)
    return prefix[..., last]
