"""One-layer rank-1 Transformers for Hugging Face: configuration, model, and classifiers of tokens
and of texts.

This file stands alone: it is saved with the weights, so that `trust_remote_code=True` opens them
where rankone is not installed. Equation numbers are those of Kajitsuka and Sato (ICLR 2024).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import (
    BaseModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.utils import logging

logger = logging.get_logger(__name__)

FORMAT_VERSION = 1
CONSTRUCTED, CHANGED = "construction", "construction, then changed"  # `made_by`
CHOICES = {
    "attention": ("rank1", "softmax", "hardmax"),
    "feedforward": ("rank1", "dense", "gated"),
    "causal": (True, False),
    "made_by": (CONSTRUCTED, CHANGED, None),
}
# Repeated here so that every class is found with `trust_remote_code`, whichever one was saved.
AUTO_MAP = {
    "AutoConfig": "modeling_rankone.RankOneConfig",
    "AutoModel": "modeling_rankone.RankOneModel",
    "AutoModelForTokenClassification": "modeling_rankone.RankOneForTokenClassification",
    "AutoModelForSequenceClassification": "modeling_rankone.RankOneForSequenceClassification",
}


class RankOneConfig(PreTrainedConfig):
    """The shape of a classifier.

    `attention` is "rank1" (eq. 20), or "softmax" or "hardmax" (eq. 2 and 5) with
    `num_attention_heads` heads of size `head_dim`; `feedforward` is "dense" (eq. 3), "rank1" (the
    same with matrices of rank 1, kept as factors) or "gated" (the same with units that belong to
    groups of tokens), with `intermediate_size` hidden units (default 4 `hidden_size`). `gates`,
    `reads`, `writes` and `codes` are sizes of a gated layer, 0 for other kinds.
    `max_position_embeddings` 0 means no positions. The last row of the token table stands for every
    unknown word, and pads; where the tokenizer has more than `vocab_size` tokens, `tokenizer_size`
    of them, it stands for all those beyond. `reading` tells how the corpus was read.

    `made_by` is "construction" for weights that were constructed, not trained, and `made_sha256`
    is their checksum; `save_pretrained` writes "construction, then changed" once they are no longer
    the same. `made_in` is the type of number that the weights need. None where it is not known.
    """

    model_type = "rankone"

    def __init__(
        self,
        vocab_size: int = 2,
        hidden_size: int = 32,
        intermediate_size: int | None = None,
        max_position_embeddings: int = 512,
        num_hidden_layers: int = 1,
        attention: str = "rank1",
        num_attention_heads: int = 1,
        head_dim: int = 1,
        feedforward: str = "dense",
        causal: bool = False,
        gates: int = 0,
        reads: int = 0,
        writes: int = 0,
        codes: int = 0,
        tokenizer_size: int = 0,
        initializer_range: float = 0.02,
        reading: dict[str, Any] | None = None,
        made_by: str | None = None,
        made_in: str | None = None,
        made_sha256: str | None = None,
        format_version: int = FORMAT_VERSION,
        **kwargs: Any,
    ) -> None:
        if format_version != FORMAT_VERSION:
            raise ValueError(
                f"The model was written in version {format_version!r} of the rankone format, but "
                f"this code reads version {FORMAT_VERSION}. Export the model again, or load it "
                "with the code that was saved with it (`trust_remote_code=True`, in a process "
                "that does not import rankone)."
            )
        self.vocab_size = _size("vocab_size", vocab_size, least=1)
        self.hidden_size = _size("hidden_size", hidden_size, least=1)
        hidden = 4 * self.hidden_size if intermediate_size is None else intermediate_size
        self.intermediate_size = _size("intermediate_size", hidden, least=0)
        self.max_position_embeddings = _size(
            "max_position_embeddings", max_position_embeddings, least=0
        )
        self.num_hidden_layers = _size("num_hidden_layers", num_hidden_layers, least=1)
        self.attention = attention
        self.num_attention_heads = _size("num_attention_heads", num_attention_heads, least=1)
        self.head_dim = _size("head_dim", head_dim, least=1)
        self.feedforward = feedforward
        self.causal = causal
        least = 1 if feedforward == "gated" else 0
        self.gates = _size("gates", gates, least)
        self.reads = _size("reads", reads, least)
        self.writes = _size("writes", writes, least)
        self.codes = _size("codes", codes, least)
        self.tokenizer_size = _size("tokenizer_size", tokenizer_size, least=0)
        self.initializer_range = initializer_range
        self.reading = reading or {}
        self.made_by = made_by
        self.made_in = made_in
        self.made_sha256 = made_sha256
        self.format_version = format_version
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"`{name}` must be one of {choices}, not {getattr(self, name)!r}.")
        if attention == "rank1" and (self.num_attention_heads, self.head_dim) != (1, 1):
            raise ValueError('`attention="rank1"` has one head of size 1.')
        kwargs.setdefault("pad_token_id", self.vocab_size - 1)
        kwargs.setdefault("auto_map", dict(AUTO_MAP))
        super().__init__(**kwargs)


def _size(name: str, given: Any, least: int) -> int:
    """A whole number, numpy's too."""
    if isinstance(given, bool) or not hasattr(given, "__index__") or given < least:
        raise ValueError(f"`{name}` must be a whole number from {least}, not {given!r}.")
    return operator.index(given)


class Attention(nn.Module):
    """F(Z) = Z + sum_i W^O_i (W^V_i Z) sigma[(W^K_i Z)^T (W^Q_i Z)]   (eq. 2; eq. 5 for hardmax).

    With ``attention="rank1"`` it is F(Z) = Z + W^O (v1^T Z) sigma[(v1^T Z)^T (v2^T Z)] (eq. 20).
    Tokens are rows of `z`; there is no 1/sqrt(s).
    """

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__()
        self.kind = config.attention
        d, h, s = config.hidden_size, config.num_attention_heads, config.head_dim
        if self.kind == "rank1":
            self.v1, self.v2, self.output = (nn.Parameter(torch.empty(d)) for _ in range(3))
        else:
            self.key, self.query, self.value = (
                nn.Parameter(torch.empty(h, s, d)) for _ in range(3)
            )
            self.output = nn.Parameter(torch.empty(h, d, s))

    def forward(self, z: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """(batch, n, d), and a mask that fits (batch, 1, n, n), to F(Z) and the weights."""
        if self.kind == "rank1":
            key = value = (z @ self.v1)[:, None, :, None]
            query, output = (z @ self.v2)[:, None, :, None], self.output[None, :, None]
        else:
            key, query, value = (
                torch.einsum("hsd,bnd->bhns", weight, z)
                for weight in (self.key, self.query, self.value)
            )
            output = self.output
        scores = query @ key.mT
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        if self.kind == "hardmax":
            largest = (scores == scores.amax(-1, keepdim=True)).to(scores.dtype)
            weights = largest / largest.sum(-1, keepdim=True)
        else:
            weights = scores.softmax(-1)
        if mask is not None:
            weights = torch.where(mask, weights, 0.0)  # a row that sees nothing is NaN until here
        return z + torch.einsum("hds,bhns->bnd", output, weights @ value), weights


class DenseFeedForward(nn.Module):
    """F(H)_k = H_k + W2 relu(W1 H_k + b1) + b2   (eq. 3)."""

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__()
        d, q = config.hidden_size, config.intermediate_size
        self.weight1, self.bias1 = nn.Parameter(torch.empty(q, d)), nn.Parameter(torch.empty(q))
        self.weight2, self.bias2 = nn.Parameter(torch.empty(d, q)), nn.Parameter(torch.empty(d))

    def forward(self, h: Tensor) -> Tensor:
        hidden = torch.relu(nn.functional.linear(h, self.weight1, self.bias1))
        return h + nn.functional.linear(hidden, self.weight2, self.bias2)


class Rank1FeedForward(nn.Module):
    """F(H)_k = H_k + w f(a^T H_k) + b2, f(s) = sum_j t_j relu(g_j s + b_j): eq. 3, W1 = g a^T,
    W2 = w t^T.

    In training, f is added up unit by unit. Otherwise it is evaluated as the piecewise linear
    function that it is, in O(log q) per token: tens of thousands of hidden units, as a memorised
    corpus has, add up to terms so large that they would cost half of the digits.
    """

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__()
        d, q = config.hidden_size, config.intermediate_size
        self.gain, self.bias1, self.out_gain = (nn.Parameter(torch.empty(q)) for _ in range(3))
        self.direction, self.out_direction, self.bias2 = (
            nn.Parameter(torch.empty(d)) for _ in range(3)
        )
        self._known: tuple[list[Tensor], Pieces] | None = None

    def forward(self, h: Tensor) -> Tensor:
        s = h @ self.direction
        if self.training:
            added = torch.relu(s[..., None] * self.gain + self.bias1) @ self.out_gain
        else:
            added = self._pieces()(s)
        return h + added[..., None] * self.out_direction + self.bias2

    def _pieces(self) -> Pieces:
        """Those found before, if the units are the same still and nobody asks for gradients."""
        units = [self.gain, self.bias1, self.out_gain]
        if torch.is_grad_enabled():
            return Pieces(*units)
        if self._known is None or not all(map(_same, self._known[0], units)):
            self._known = [unit.clone() for unit in units], Pieces(*units)
        return self._known[1]


def _same(one: Tensor, other: Tensor) -> bool:
    alike = (one.dtype, one.device) == (other.dtype, other.device)
    return alike and torch.equal(one, other)


class Pieces:
    """f(s) = sum_j t_j relu(g_j s + b_j) by its bends, the values there and the slopes between.

    Unit j bends f at -b_j / g_j by t_j |g_j|. Values are added up from the bend number `start`
    outwards, the first or the one nearest to 0: where the units add up to less.
    """

    def __init__(self, gain: Tensor, bias: Tensor, out_gain: Tensor) -> None:
        with torch.no_grad():
            bends = (bias / gain).isfinite()
        constant = out_gain[~bends] @ torch.relu(bias[~bends])
        gain, bias, out_gain = gain[bends], bias[bends], out_gain[bends]
        if not len(gain):
            zero = constant.new_zeros(1)
            self.knots, self.values, self.slopes = zero, constant[None], zero.expand(2)
            self.start = 0
            return
        theta = -bias / gain
        order = theta.argsort(stable=True)
        self.knots = theta[order]
        leftmost = torch.where(gain < 0, out_gain * gain, 0.0).sum()
        turns = (out_gain * gain.abs())[order]
        self.slopes = torch.cat([leftmost[None], turns]).cumsum(0)

        def terms(i: int) -> Tensor:
            return out_gain * torch.relu(gain * self.knots[i] + bias)

        @torch.no_grad()
        def size(i: int) -> float:
            active = gain * self.knots[i] + bias > 0
            sizes = out_gain.abs() * ((gain * self.knots[i]).abs() + bias.abs())
            return float(sizes[active].sum())

        self.start = min((0, int(self.knots.abs().argmin())), key=size)
        first = (constant + terms(self.start).sum())[None]
        steps = self.slopes[1:-1] * self.knots.diff()
        right = torch.cat([first, steps[self.start :]]).cumsum(0)
        left = torch.cat([first, -steps[: self.start].flip(0)]).cumsum(0)[1:].flip(0)
        self.values = torch.cat([left, right])

    def __call__(self, s: Tensor) -> Tensor:
        piece = torch.searchsorted(self.knots.detach(), s.detach().contiguous())
        anchor = piece - (piece > self.start).long()
        return self.values[anchor] + self.slopes[piece] * (s - self.knots[anchor])


class GatedFeedForward(nn.Module):
    """F(H)_k = H_k + sum_j o_j relu(B_j (G_w + G_p)^T H_k + v_j^T a + b_j): eq. 3, kept compact.

    Unit j belongs to a group of tokens: w and p are its rows of `gates`, ``word[j]`` and
    ``position[j]``, and B_j is ``penalty[j]``. Tokens of other groups are fined so much that the
    unit is 0. It reads a = H_k[``reads``] with the weights v_j = ``slopes[j]``, and writes
    o_j = ``amplitude[j]`` (``codes[plus[j]]`` - ``codes[minus[j]]``) to the coordinates `writes`.

    Whatever the weights are, only those units are computed that may be active.
    """

    PAIRS = 1 << 22  # of tokens and gates, or of tokens and units, held at once

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__()
        d, q = config.hidden_size, config.intermediate_size
        self.gates = nn.Parameter(torch.empty(config.gates, d))
        self.slopes = nn.Parameter(torch.empty(q, config.reads))
        self.penalty, self.bias1, self.amplitude = (nn.Parameter(torch.empty(q)) for _ in range(3))
        self.codes = nn.Parameter(torch.empty(config.codes, config.writes))
        self.word, self.position, self.plus, self.minus = (_indices(q) for _ in range(4))
        self.reads, self.writes = _indices(config.reads), _indices(config.writes)

    def forward(self, h: Tensor) -> Tensor:
        if not len(self.word):
            return h
        flat = h.reshape(-1, h.shape[-1])
        order = torch.argsort(self.word, stable=True)
        parts = torch.split(flat, max(1, self.PAIRS // len(self.gates)))
        added = torch.cat([self._added(part, order) for part in parts])
        change = torch.zeros_like(flat).index_add(1, self.writes, added)
        return h + change.reshape(h.shape)

    def _added(self, h: Tensor, order: Tensor) -> Tensor:
        """What the units write for some tokens."""
        fines, a = h @ self.gates.T, h[:, self.reads]
        token, gate = self._awake(fines, a).nonzero(as_tuple=True)
        rows = torch.arange(len(self.gates) + 1, device=h.device)
        first = torch.searchsorted(self.word[order], rows)
        out = h.new_zeros(len(h), self.codes.shape[1])
        count = (first[1:] - first[:-1])[gate]
        ends = torch.cumsum(count, 0)
        i = 0
        while i < len(count):  # so many pairs of token and gate that not too many units come up
            base = int(ends[i - 1]) if i else 0
            j = max(i + 1, int(torch.searchsorted(ends, base + self.PAIRS, right=True)))
            n, g, t = count[i:j], gate[i:j], token[i:j]
            unit = torch.repeat_interleave(first[g] - (torch.cumsum(n, 0) - n), n)
            unit = order[unit + torch.arange(len(unit), device=h.device)]
            t = torch.repeat_interleave(t, n)
            fine = fines[t, self.word[unit]] + fines[t, self.position[unit]]
            seen = (a[t] * self.slopes[unit]).sum(-1)
            active = torch.relu(self.penalty[unit] * fine + seen + self.bias1[unit])
            o = self.codes[self.plus[unit]] - self.codes[self.minus[unit]]
            out = out.index_add(0, t, (active * self.amplitude[unit])[:, None] * o)
            i = j
        return out

    @torch.no_grad()
    def _awake(self, fines: Tensor, a: Tensor) -> Tensor:
        """For which tokens and gates of words an upper bound of what units reach is above 0."""
        used = torch.unique(self.position)
        most, least = fines[:, used].max(1).values, fines[:, used].min(1).values
        size = a.abs().max(0).values if len(a) else a.new_zeros(a.shape[1])
        seen = self.slopes.abs() @ size + self.bias1
        nothing = fines.new_full((len(self.gates),), -torch.inf)
        reach, high, low = (
            nothing.scatter_reduce(0, self.word, x, "amax")
            for x in (seen, self.penalty, -self.penalty)
        )
        high, low = (torch.nan_to_num(x, neginf=0.0) for x in (high, low))
        x = torch.stack([fines + most[:, None], fines + least[:, None]])
        fine = torch.maximum((x * high).amax(0), (x * -low).amax(0))
        slack = 2.0**-12 * (fine.abs() + reach.abs())  # far more than rounding
        return fine + reach + torch.nan_to_num(slack, posinf=0.0) > 0


def _indices(count: int) -> nn.Parameter:
    """Whole numbers, which no type of weights changes and nobody trains."""
    return nn.Parameter(torch.empty(count, dtype=torch.int64), requires_grad=False)


FEEDFORWARDS: dict[str, type[nn.Module]] = {
    "dense": DenseFeedForward,
    "rank1": Rank1FeedForward,
    "gated": GatedFeedForward,
}


class Block(nn.Module):
    """F(Z) = F^(FF)(F^(SA)(Z))   (eq. 4)."""

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.feedforward = FEEDFORWARDS[config.feedforward](config)

    def forward(
        self, z: Tensor, mask: Tensor | None, at: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The vectors of all tokens, or of one of each row, that `at` names."""
        h, weights = self.attention(z, mask)
        return self.feedforward(h if at is None else _of(h, at)), weights


def _of(z: Tensor, at: Tensor) -> Tensor:
    """One vector of each row."""
    return z[torch.arange(len(z), device=z.device), at]


class RankOnePreTrainedModel(PreTrainedModel):
    """What all models share: tables and blocks, how they are run, trained and saved.

    A sentence is its tokens that are not masked, in their order: however it is padded, its vectors
    are the same.
    """

    config_class = RankOneConfig
    base_model_prefix = "rankone"

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__(config)
        d, length = config.hidden_size, config.max_position_embeddings
        self.table = nn.Parameter(torch.empty(config.vocab_size, d))
        self.positions = nn.Parameter(torch.empty(length, d)) if length else None
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_hidden_layers))

    def _run(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        output_hidden_states: bool | None,
        output_attentions: bool | None,
        *,
        last: bool = False,
    ) -> tuple[Tensor, dict[str, tuple[Tensor, ...] | None]]:
        """The vectors of all tokens, or of the `last` one of each row, and the other outputs that
        were asked for."""
        if input_ids.numel() == 0:
            input_ids = input_ids.long()  # no tokens: tokenizers make that a tensor of floats
        made_in = getattr(torch, self.config.made_in or "", self.table.dtype)
        if torch.finfo(self.table.dtype).bits < torch.finfo(made_in).bits:
            logger.warning_once(
                f"The weights were made in {made_in} and are run in {self.table.dtype}: contexts "
                "that lie close together may get wrong labels."
            )
        places, mask = self._check(input_ids, attention_mask)
        if mask is not None:
            input_ids = torch.where(mask, input_ids, 0)  # under the mask anything may stand
        input_ids = self._rows(input_ids)
        n = input_ids.shape[1]
        attend = None if mask is None else mask[:, None, None, :]
        if self.config.causal:
            causal = torch.ones(n, n, dtype=torch.bool, device=input_ids.device).tril()
            attend = causal if attend is None else attend & causal

        config = self.config
        with_states = (
            config.output_hidden_states if output_hidden_states is None else output_hidden_states
        )
        with_weights = config.output_attentions if output_attentions is None else output_attentions
        at = _last(input_ids, mask) if last else None
        z = self.table[input_ids]
        if self.positions is not None:
            z = z + self.positions[places]
        states, attentions = [z], []
        for i, block in enumerate(self.blocks if n else (), start=1):
            enough = i == len(self.blocks) and not with_states  # nobody sees the other tokens
            z, weights = block(z, attend, at if enough else None)
            states.append(z)
            attentions.append(weights)
        if at is not None and with_states:
            z = _of(z, at)
        return z, {
            "hidden_states": tuple(states) if with_states else None,
            "attentions": tuple(attentions) if with_weights else None,
        }

    def _returned(self, output: Any, return_dict: bool | None) -> Any:
        as_dict = self.config.return_dict if return_dict is None else return_dict
        return output if as_dict else output.to_tuple()

    def train(self, mode: bool = True) -> Self:
        if mode and self.config.made_by == CONSTRUCTED:
            logger.warning_once(
                "These weights were constructed, not learned, and training destroys what they know:"
                " they tell contexts apart by differences that no gradient step leaves intact. Use "
                "them as they are; to train, start from a new `RankOneConfig`."
            )
        super().train(mode)
        return self

    def save_pretrained(self, save_directory: Any, *args: Any, **kwargs: Any) -> None:
        """As in transformers; weights that were changed since are not called constructed."""
        state = kwargs.get("state_dict") or self.state_dict()
        if self.config.made_by == CONSTRUCTED and checksum(state) != self.config.made_sha256:
            self.config.made_by, self.config.made_sha256 = CHANGED, None
        super().save_pretrained(save_directory, *args, **kwargs)

    def resize_token_embeddings(self, *_: Any, **__: Any) -> None:
        raise ValueError(
            "The token table cannot be resized: a row of the token table is a word of the "
            "tokenizer, the last one any other word. Make a new model for other words."
        )

    def _check(self, ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The place of every token in its sentence, and which tokens are real."""
        if ids.dim() != 2:
            raise ValueError(f"`input_ids` must be (batch, length), not {tuple(ids.shape)}.")
        check_shape("attention_mask", attention_mask, ids)
        if attention_mask is None:
            mask, places = None, torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)
        else:
            mask = attention_mask != 0
            places = (mask.long().cumsum(1) - 1).clamp(min=0)
        longest = int(places.max()) + 1 if places.numel() else 0
        if self.positions is not None and longest > len(self.positions):
            raise ValueError(
                f"A sentence of {longest} tokens, but the table of positions has "
                f"{len(self.positions)}. Split the sentence, or make the model with a larger "
                "`max_length`."
            )
        return places, mask

    def _rows(self, ids: Tensor) -> Tensor:
        """The row of every token; those beyond the table have the last one."""
        rows = len(self.table)
        known = max(rows, self.config.tokenizer_size)
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < known:
            wrong = int(ids.max()) if int(ids.max()) >= known else int(ids.min())
            raise ValueError(
                f"`input_ids` holds {wrong}, but the token table has rows 0 to {known - 1}. Is the "
                "tokenizer the one that was saved with the model?"
            )
        return ids.clamp(max=rows - 1)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Tables by `initializer_range`, matrices by their fan-in; biases 0, those of units of rank
        1 drawn, for these bend at one point each. Indices count through what there is."""
        d, q = self.config.hidden_size, max(1, self.config.intermediate_size)
        if isinstance(module, RankOnePreTrainedModel):
            for table in (module.table, module.positions):
                if table is not None:
                    init.normal_(table, std=self.config.initializer_range)
        elif isinstance(module, Attention):
            for parameter in module.parameters():
                init.normal_(parameter, std=d**-0.5)
        elif isinstance(module, DenseFeedForward):
            init.normal_(module.weight1, std=d**-0.5)
            init.normal_(module.weight2, std=q**-0.5)
            init.zeros_(module.bias1)
            init.zeros_(module.bias2)
        elif isinstance(module, Rank1FeedForward):
            init.ones_(module.gain)
            init.normal_(module.bias1)
            init.normal_(module.out_gain, std=q**-0.5)
            init.normal_(module.direction, std=d**-0.5)
            init.normal_(module.out_direction, std=d**-0.5)
            init.zeros_(module.bias2)
        elif isinstance(module, GatedFeedForward):
            init.normal_(module.gates, std=d**-0.5)
            init.ones_(module.penalty)
            init.normal_(module.slopes, std=module.slopes.shape[1] ** -0.5)
            init.zeros_(module.bias1)
            init.normal_(module.amplitude, std=q**-0.5)
            init.normal_(module.codes)
            gates, codes = len(module.gates), len(module.codes)
            for index in (module.position, module.minus):
                init.zeros_(index)
            for index, count in (
                (module.word, gates),
                (module.plus, codes),
                (module.reads, d),
                (module.writes, d),
            ):
                init.copy_(index, torch.arange(len(index), device=index.device) % count)
        elif isinstance(module, nn.Linear):
            init.uniform_(module.weight, -(d**-0.5), d**-0.5)
            init.uniform_(module.bias, -(d**-0.5), d**-0.5)


class RankOneModel(RankOnePreTrainedModel):
    """Block(... Block(X + E)), X rows of the token table, E rows of positions: the vector of every
    token in its sentence, which a head would read."""

    _keys_to_ignore_on_load_unexpected: ClassVar[list[str]] = [r"^head\."]

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__(config)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> BaseModelOutput | tuple[Tensor, ...]:
        """`attention_mask` is not 0 at real tokens. ``last_hidden_state`` is (batch, length, d)."""
        z, kept = self._run(input_ids, attention_mask, output_hidden_states, output_attentions)
        return self._returned(BaseModelOutput(last_hidden_state=z, **kept), return_dict)


class RankOneForTokenClassification(RankOnePreTrainedModel):
    """logits = head(Block(... Block(X + E))): `RankOneModel` with a linear head."""

    accepts_loss_kwargs = True

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> TokenClassifierOutput | tuple[Tensor, ...]:
        """`attention_mask` is not 0 at real tokens; `labels` are not counted where they are -100.

        The loss is the mean over the labels that count, or their sum by `num_items_in_batch`.
        """
        check_shape("labels", labels, input_ids)
        z, kept = self._run(input_ids, attention_mask, output_hidden_states, output_attentions)
        logits = self.head(z)
        loss = None if labels is None else self._loss(logits, labels, num_items_in_batch)
        output = TokenClassifierOutput(loss=loss, logits=logits, **kept)
        return self._returned(output, return_dict)

    def _loss(self, logits: Tensor, labels: Tensor, count: Tensor | int | None) -> Tensor:
        total = nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.to(logits.device).flatten(), reduction="sum"
        )
        if count is None:
            count = (labels != -100).sum().clamp(min=1)
        return total / count


class RankOneForSequenceClassification(RankOnePreTrainedModel):
    """logits = head(z), z the vector that `RankOneModel` gives the last token of a text, which
    stands for all of it."""

    accepts_loss_kwargs = False

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
    ) -> SequenceClassifierOutput | tuple[Tensor, ...]:
        """`attention_mask` is not 0 at real tokens, wherever these are; without it all are real.

        `labels`, one for each text, and the loss are those of transformers (`problem_type`).
        """
        z, kept = self._run(
            input_ids, attention_mask, output_hidden_states, output_attentions, last=True
        )
        logits, loss = self.head(z), None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config)
        output = SequenceClassifierOutput(loss=loss, logits=logits, **kept)
        return self._returned(output, return_dict)


def _last(ids: Tensor, mask: Tensor | None) -> Tensor:
    """The place of the last real token of every row; refuses rows without one."""
    real = (torch.ones_like(ids) if mask is None else mask.long()).cumsum(1)
    counts = real[:, -1] if ids.shape[1] else real.sum(1)
    if len(counts) and int(counts.min()) < 1:
        empty = int(counts.argmin()) + 1
        raise ValueError(f"Text {empty} of the batch has no token, so it has no label.")
    return real.argmax(1) if len(counts) else counts  # the first place that has counted them all


def check_shape(name: str, given: Tensor | None, ids: Tensor) -> None:
    if given is not None and given.shape != ids.shape:
        raise ValueError(
            f"`{name}` is {tuple(given.shape)}, but `input_ids` is {tuple(ids.shape)}."
        )


def checksum(state: Mapping[str, Tensor]) -> str:
    """SHA-256 of the names, types, shapes and bits of these tensors."""
    found = sha256()
    for name, tensor in sorted(state.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().reshape(-1)
        flat = flat.as_strided(flat.shape, (1,))  # one number alone may have any stride
        found.update(flat.view(torch.uint8).numpy().data)
    return found.hexdigest()
