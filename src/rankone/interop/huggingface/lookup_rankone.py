"""The units of a gated layer that a token may reach, without a look at all others.

This file is saved with the weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .layers_rankone import Attention, GatedFeedForward

PAIRS = 1 << 21  # of tokens and units that are held at once


class Lookup:
    """The gates of words look at other coordinates than those of positions, and at nothing that
    attention writes: so what a gate of a word gives is known for each row of the token table. For
    every row the gates are kept whose units may be more than 0, whatever attention adds; these
    units are run, and no other. Nothing else is taken for granted about the weights.
    """

    def __init__(
        self, layer: GatedFeedForward, table: Tensor, positions: Tensor | None, reach: Tensor
    ) -> None:
        """`reach` is what each unit sees at most besides its gates."""
        self.layer, self.rows = layer, len(table)
        order = torch.argsort(layer.word, stable=True)
        names = ("slopes", "bias1", "penalty", "amplitude", "plus", "minus", "position")
        units = {name: getattr(layer, name) for name in names}
        if not torch.equal(order, torch.arange(len(order), device=order.device)):
            units = {name: x[order] for name, x in units.items()}
            reach = reach[order]
        self.slopes, self.bias, self.penalty, self.amplitude = (units[x] for x in names[:4])
        self.plus, self.minus, self.position = (units[x] for x in names[4:])
        word = layer.word[order]
        self.words, sizes = torch.unique_consecutive(word, return_counts=True)
        self.first = [0, *sizes.cumsum(0).tolist()]
        at = torch.repeat_interleave(torch.arange(len(sizes), device=order.device), sizes)
        nothing = reach.new_full((len(sizes),), -torch.inf)
        self.reach = nothing.scatter_reduce(0, at, reach / self.penalty, "amax")
        gates = layer.gates[self.words]
        self.seen = gates.any(0).nonzero()[:, 0]
        self.gates, self.table = gates[:, self.seen].contiguous(), table[:, self.seen].contiguous()
        self.most = gates.new_zeros(())  # that a gate of a position gives
        self.places: Tensor | None = None
        if positions is not None and self.position.any():
            used, self.position = torch.unique(self.position, return_inverse=True)
            gates = layer.gates[used]
            here = gates.any(0).nonzero()[:, 0]
            self.placing, self.places = gates[:, here], positions[:, here].contiguous()
            ends = [self.placing * x for x in (self.places.amax(0), self.places.amin(0))]
            self.most = torch.maximum(*ends).sum(1).max()
        self.known: dict[int, list[tuple[int, float]]] = {}

    @classmethod
    def of(
        cls,
        layer: GatedFeedForward,
        table: Tensor,
        positions: Tensor | None,
        step: Tensor | None,
        attention: Attention,
    ) -> Lookup | None:
        """None where gates look at more than that."""
        _, _, value, output = attention.matrices
        word, position = torch.unique(layer.word), torch.unique(layer.position)
        words, places = layer.gates[word].any(0), layer.gates[position].any(0)
        written = output.any(2).any(0)
        free = [words & places, (words | places) & written, table.any(0) & places]
        if positions is not None:
            free.append(words & positions.any(0))
        elif places.any():
            return None
        if step is not None:
            seen = words | places
            seen[layer.reads] = True
            free.append(seen & (step != 0))
            if (value.flatten(0, 1) @ step).any():
                return None
        if not len(layer.word) or any(x.any() for x in free) or not (layer.penalty > 0).all():
            return None
        size = layer.gates.new_zeros(len(layer.reads))
        most = layer.gates.new_zeros(output.shape[0] * output.shape[2])
        for x in (table, positions):
            if x is not None:
                size = size + x[:, layer.reads].abs().amax(0)
                most = most + (x @ value.flatten(0, 1).T).abs().amax(0)
        size = size + output.transpose(1, 2).flatten(0, 1)[:, layer.reads].abs().T @ most
        reach = (layer.slopes.abs() @ size + layer.bias1.abs()) * (1 + 2.0**-10)
        return cls(layer, table, positions, reach)

    def __call__(self, h: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        """The layer, for tokens with these rows of the table, at these places."""
        flat = h.reshape(-1, h.shape[-1])
        a = flat[:, self.layer.reads]
        added = a.new_zeros(len(a), self.layer.codes.shape[1])
        tokens: dict[int, list[int]] = {}
        for i, row in enumerate(rows.reshape(-1).tolist()):
            tokens.setdefault(row, []).append(i)
        self._find([row for row in tokens if row not in self.known])
        spots = places.reshape(-1)
        for row, own in tokens.items():
            for gate, fine in self.known[row]:
                size = self.first[gate + 1] - self.first[gate]
                step = max(1, PAIRS // size)
                for i in range(0, len(own), step):
                    self._add(added, a, own[i : i + step], gate, fine, spots)
        return flat.index_add(1, self.layer.writes, added).view_as(h)

    def _find(self, rows: list[int]) -> None:
        """The gates that may be open for these rows, and what they give."""
        step = max(1, PAIRS // len(self.gates))
        for i in range(0, len(rows), step):
            some = rows[i : i + step]
            fines = self.table[some] @ self.gates.T
            most = fines + self.most + self.reach
            slack = 2.0**-12 * (fines.abs() + self.reach)  # far more than rounding
            token, gate = (most + slack > 0).nonzero(as_tuple=True)
            for row in some:
                self.known[row] = []
            found = zip(token.tolist(), gate.tolist(), fines[token, gate].tolist(), strict=True)
            for t, g, fine in found:
                self.known[some[t]].append((g, fine))

    def _add(
        self, added: Tensor, a: Tensor, own: list[int], gate: int, fine: float, spots: Tensor
    ) -> None:
        """What the units of one gate write for some tokens."""
        first = self.first[gate]
        units = slice(first, self.first[gate + 1])
        few = a if len(own) == len(a) else a[own]
        bias = self.bias[units]
        if fine:
            bias = bias + self.penalty[units] * fine
        if self.places is not None:
            fines = self.places[spots[own]] @ self.placing[self.position[units]].T
            bias = bias + self.penalty[units] * fines
        seen = bias + few @ self.slopes[units].T
        token, unit = (seen > 0).nonzero(as_tuple=True)
        if not len(token):
            return
        strength = seen[token, unit]
        unit = unit + first
        codes = self.layer.codes
        o = codes[self.plus[unit]] - codes[self.minus[unit]]
        strength = (strength * self.amplitude[unit])[:, None]
        if len(own) == len(a) == 1:
            added += (strength * o).sum(0)
        else:
            at = torch.tensor(own, device=a.device)[token]
            added.index_add_(0, at, strength * o)
