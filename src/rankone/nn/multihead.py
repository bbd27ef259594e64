"""Multi-head softmax attention with one number per query and key, for long sequences."""

from __future__ import annotations

import math
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from rankone.errors import AttentionError
from rankone.kernels import rank1_attention
from rankone.kernels.batched import Method
from rankone.nn.masks import not_ignored

WHERE = "MultiheadRank1Attention"
refused = partial(AttentionError, where=WHERE)
TABLE = 1 << 30  # the largest table of weights: 4 GB in single precision


class MultiheadRank1Attention(nn.Module):
    """out_k = W_o [h_1k, ..., h_Hk] + b_o,   h_ik = sum_l v_il e^(y_ik x_il) / sum_l e^(y_ik x_il).

    Head i asks with the number y_ik = W_q[i] query_k + b_q[i], has the keys x_il = W_k[i] key_l +
    b_k[i], and as values v_il the i-th ``embed_dim // num_heads`` entries of W_v value_l + b_v.
    W_q (num_heads x embed_dim), W_k (num_heads x kdim) and W_v (embed_dim x vdim) are the rows of
    ``in_proj_weight``, or ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight`` if `kdim` or
    `vdim` is not `embed_dim`; b_q, b_k, b_v are the entries of ``in_proj_bias``; W_o, b_o are
    those of ``out_proj``.

    Arguments, parameters and their initial values are those of ``nn.MultiheadAttention``, which it
    can replace, also as ``self_attn`` of ``nn.TransformerEncoderLayer``. With
    ``num_heads == embed_dim`` the two are the same function, and each loads the state of the other.
    There are two differences: weights cannot be dropped out, since they are never computed; and
    `method` is that of `rank1_attention`. As in torch, `need_weights` is on by default. Turn it off
    for long sequences: only then does the module take linear time.
    """

    # The fused inference path of torch's encoder expects heads in in_proj_weight that are as large
    # for queries as for values. It checks this attribute first, and then calls forward instead.
    _qkv_same_embed_dim = False

    in_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    q_proj_weight: Tensor  # these three are None where in_proj_weight is not
    k_proj_weight: Tensor
    v_proj_weight: Tensor

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        method: Method = "auto",
    ) -> None:
        super().__init__()
        kdim, vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        if min(embed_dim, num_heads, kdim, vdim) < 1 or embed_dim % num_heads:
            raise refused(
                f"{embed_dim=}, {num_heads=}, {kdim=}, {vdim=}",
                remedy="all must be positive, and embed_dim a multiple of num_heads",
            )
        if dropout != 0:
            raise refused(
                f"{dropout=}, but the attention weights are never computed, so none can be dropped",
                remedy="use dropout=0 and put nn.Dropout behind this module",
            )
        self.embed_dim, self.num_heads, self.kdim, self.vdim = embed_dim, num_heads, kdim, vdim
        self.batch_first, self.method = batch_first, method
        self._rows = [num_heads, num_heads, embed_dim]  # that ask, that are keys, that are values

        def empty(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(*shape, device=device, dtype=dtype))

        packed = kdim == vdim == embed_dim
        for name, n, m in zip("qkv", self._rows, (embed_dim, kdim, vdim), strict=True):
            self.register_parameter(f"{name}_proj_weight", None if packed else empty(n, m))
        self.in_proj_weight = empty(sum(self._rows), embed_dim) if packed else None
        self.in_proj_bias = empty(sum(self._rows)) if bias else None
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As in nn.MultiheadAttention: Xavier for what comes in, and no bias."""
        weights = (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        for weight in weights:
            if weight is not None:
                nn.init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            nn.init.zeros_(self.in_proj_bias)
            nn.init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output, and the attention weights, or None if they are not needed.

        Shapes are (L, embed_dim), (S, kdim) and (S, vdim) for one sequence; with a batch of N,
        (L, N, embed_dim) and so on, or (N, L, embed_dim) if ``batch_first``. Masks are those of
        torch: True, or -inf, where nothing may be attended to. A mask with other numbers is
        refused: a score is a product of two numbers, to which nothing can be added. A query that
        may attend to nothing gets 0 from the head (torch: 0 or NaN, depending on `need_weights`).

        Args:
            key_padding_mask: (S) or (N, S), the keys to ignore.
            need_weights: also return the table of weights, (N, L, S), which costs what this module
                is there to avoid: time and memory L times S. Refused beyond 2^30 weights.
            attn_mask: (L, S) or (N * num_heads, L, S). All scores are computed if it differs
                between queries; for causal attention say `is_causal` instead.
            average_attn_weights: if not, weights are (N, num_heads, L, S).
            is_causal: query k attends to the keys l <= k, counted from the start of both. No mask
                is needed; one that is given is taken to say the same and not looked at, unless
                L and S differ: then it is followed, as it may count from the end of both.
        """
        axis = _token_axis(self, query, key, value, key_padding_mask, attn_mask)
        tokens = query.shape[:-1]
        if need_weights and (size := self.num_heads * math.prod(tokens) * key.shape[axis]) > TABLE:
            raise refused(
                f"need_weights asks for a table of {size:,} attention weights",
                remedy="call it with need_weights=False: the output takes linear time and memory",
            )
        if self.in_proj_weight is not None:
            w_q, w_k, w_v = torch.split(self.in_proj_weight, self._rows)
        else:
            w_q, w_k, w_v = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        biases = self.in_proj_bias
        b_q, b_k, b_v = (None,) * 3 if biases is None else torch.split(biases, self._rows)
        y, x = (
            nn.functional.linear(z, weight, b).movedim(axis, -1)
            for z, weight, b in ((query, w_q, b_q), (key, w_k, b_k))
        )
        v = nn.functional.linear(value, w_v, b_v)
        v = torch.unflatten(v, -1, (self.num_heads, -1)).movedim(axis, -2)

        if is_causal and y.shape[-1] == x.shape[-1]:
            attn_mask = None
        is_causal = is_causal and attn_mask is None
        mask = None if attn_mask is None else not_ignored(attn_mask, WHERE)
        if mask is not None and mask.dim() == 3:
            mask = mask.view(*y.shape[:-1], *mask.shape[1:])
        if key_padding_mask is not None:
            there = not_ignored(key_padding_mask, WHERE)[..., None, None, :]
            mask = there if mask is None else mask & there
        h = rank1_attention(y, x, v, causal=is_causal, mask=mask, method=self.method)
        out = self.out_proj(h.movedim(-2, axis).flatten(-2))
        if not need_weights:
            return out, None
        weights = _table(y, x, is_causal, mask)
        return out, weights.mean(-3) if average_attn_weights else weights

    def extra_repr(self) -> str:
        return (
            f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, kdim={self.kdim}, "
            f"vdim={self.vdim}, bias={self.in_proj_bias is not None}, "
            f"batch_first={self.batch_first}, method={self.method!r}"
        )


def _table(
    query: Float[Tensor, "*batch q"],
    key: Float[Tensor, "*batch n"],
    causal: bool,
    mask: Bool[Tensor, "*#batch #q n"] | None,
) -> Float[Tensor, "*batch q n"]:
    """e^(y_k x_l) / sum_l e^(y_k x_l) for every query k and key l, 0 where k may not attend."""
    exact = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(exact).unsqueeze(-1) * key.to(exact).unsqueeze(-2)
    allowed = scores.new_ones(scores.shape[-2:], dtype=torch.bool)
    allowed = allowed.tril() if causal else allowed
    allowed = allowed if mask is None else allowed & mask
    weights = scores.where(allowed, -torch.inf).softmax(-1)
    return weights.where(allowed, 0.0).to(query.dtype)  # a row that sees nothing is NaN until here


def _token_axis(
    module: MultiheadRank1Attention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    padding: Tensor | None,
    mask: Tensor | None,
) -> int:
    """The axis of tokens. Shapes must fit exactly, since broadcasting is often a mistake."""
    if query.is_nested:
        raise refused(
            "nested tensors are not supported",
            remedy="make the nn.TransformerEncoder around it with enable_nested_tensor=False",
        )
    axis = 1 if module.batch_first and query.dim() == 3 else 0
    if query.dim() in (2, 3) and key.dim() == query.dim():
        batch = (*query.shape[:axis], *query.shape[axis + 1 : -1])
        q, n, heads = query.shape[axis], key.shape[axis], module.num_heads * math.prod(batch)
        if (
            query.shape[-1] == module.embed_dim
            and key.shape == (*batch[:axis], n, *batch[axis:], module.kdim)
            and value.shape == (*key.shape[:-1], module.vdim)
            and (padding is None or padding.shape == (*batch, n))
            and (mask is None or mask.shape == (q, n) or mask.shape == (heads, q, n))
        ):
            return axis
    given = {"query": query, "key": key, "value": value}
    masks = {"key_padding_mask": padding, "attn_mask": mask}
    named = [f"{k} {tuple(x.shape)}" for k, x in (given | masks).items() if x is not None]
    raise refused(
        f"shapes do not fit: {', '.join(named)}",
        remedy=f"see the documentation of forward for {module.extra_repr()}",
    )
