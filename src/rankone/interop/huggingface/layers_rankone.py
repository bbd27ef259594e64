"""Attention, feed-forward layers and blocks for Hugging Face.

Equation numbers are those of Kajitsuka and Sato (ICLR 2024). This file is saved with the weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .configuration_rankone import RankOneConfig


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

    @property
    def matrices(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """W^K, W^Q, W^V, (heads, head size, d), and W^O, (heads, d, head size)."""
        if self.kind == "rank1":
            v1, v2, output = (x[None, None] for x in (self.v1, self.v2, self.output))
            return v1, v2, v1, output.mT
        return self.key, self.query, self.value, self.output

    def forward(self, z: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """(batch, n, d), and a mask that fits (batch, 1, n, n), to F(Z) and the weights."""
        averages, weights = self.average(*self.read(z), mask)
        return z + torch.einsum("hds,bhns->bnd", self.matrices[3], averages), weights

    def read(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (batch, heads, n, head size)."""
        if self.kind == "rank1":
            key, query = ((z @ v)[:, None, :, None] for v in (self.v1, self.v2))
            return query, key, key
        query, key, value = (
            torch.einsum("hsd,bnd->bhns", weight, z)
            for weight in (self.query, self.key, self.value)
        )
        return query, key, value

    def average(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The averages of values, (batch, heads, n, head size), and their weights."""
        weights = self.weigh(self.scores(query, key, mask), mask)
        return weights @ value, weights

    def scores(self, query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
        """(batch, heads, n, n), minus infinity under the mask."""
        scores = query @ key.mT
        return scores if mask is None else scores.masked_fill(~mask, -torch.inf)

    def weigh(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        if self.kind == "hardmax":
            largest = (scores == scores.amax(-1, keepdim=True)).to(scores.dtype)
            weights = largest / largest.sum(-1, keepdim=True)
        else:
            weights = scores.softmax(-1)
        if mask is not None:
            weights = torch.where(mask, weights, 0.0)  # a row that sees nothing is NaN until here
        return weights


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
        self.word, self.position, self.plus, self.minus = (indices(q) for _ in range(4))
        self.reads, self.writes = indices(config.reads), indices(config.writes)

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
            some = active.nonzero()[:, 0]
            active, t, unit = active[some], t[some], unit[some]
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


def indices(count: int) -> nn.Parameter:
    """Whole numbers, which no type of weights changes and nobody trains."""
    return nn.Parameter(torch.empty(count, dtype=torch.int64), requires_grad=False)


class NextTokens(nn.Linear):
    """logits = W z + b for the tokens that may come next, spread over all tokens of the tokenizer:
    row i is that of token number ``token[i]``. Every other token is far below all of them, by
    `BELOW` at least, but not infinitely.
    """

    BELOW = 1e4

    def __init__(self, config: RankOneConfig) -> None:
        super().__init__(config.hidden_size, config.next_tokens)
        self.token = indices(config.next_tokens)
        self.size = config.vocab_size

    def forward(self, z: Tensor) -> Tensor:
        with torch.no_grad():
            never = -self.BELOW - z.abs() @ self.weight.abs().amax(0) - self.bias.abs().amax()
        logits = never[..., None].expand(*z.shape[:-1], self.size)
        return logits.index_copy(-1, self.token, super().forward(z))


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
        return self.feedforward(h if at is None else chosen(h, at)), weights


def chosen(z: Tensor, at: Tensor) -> Tensor:
    """One vector of each row."""
    return z[torch.arange(len(z), device=z.device), at]
