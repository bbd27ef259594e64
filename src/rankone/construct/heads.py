"""The label that a head gives to a token, for any linear head, and by how much it leads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankone.arrays import Floats, Ints
from rankone.nn.classifier import has_label_numbers
from rankone.nn.evaluate import coordinates
from rankone.nn.label_codes import LabelCodes
from rankone.nn.mixed_codes import MixedCodes

LOGITS = 1 << 22  # held at once: there may be tens of thousands of labels


@dataclass(frozen=True)
class Outputs:
    """For some tokens: the label, and the output that decides it.

    ``values`` is the output y for a head of label numbers, else half the lead of the wanted logit.
    ``errors`` is (1 - lead) / 2, which for a head of label numbers is the distance of y from the
    number of the wanted label (unless that is the first or the last, and y lies outside); -infinity
    where nothing is asked. For a head of codes the error is the largest coordinate of the distance
    from the wanted code, if not more than that: the lead is at least what it leaves. ``rounding``
    bounds the rounding error of a logit.
    """

    labels: NDArray[np.generic]
    values: Floats
    errors: Floats
    rounding: float

    @classmethod
    def joined(cls, chunks: list[Outputs]) -> Outputs:
        labels, values, errors = (
            np.concatenate([getattr(chunk, name) for chunk in chunks])
            for name in ("labels", "values", "errors")
        )
        return cls(labels, values, errors, float(np.max([chunk.rounding for chunk in chunks])))


class LabelHead:
    """logits = W z + b. The lead of label c is logit_c - max over the others.

    For a head of label numbers (`has_label_numbers`) y = p^T z decides, and the lead of c over
    its neighbours is 1 - 2 |y - c|. For a head of codes (`LabelCodes`) the features y in a few
    coordinates decide, and the lead is at least 1 - 2 max_i |y_i - c_i|; where that is above 0, the
    logits need not be computed, of which there may be tens of thousands. `MixedCodes` are alike;
    there the error of a token is relative to the lead that its label should have.

    ``seen`` are the coordinates of features that it reads, None if it reads all; `read` is given
    these.
    """

    def __init__(self, head: nn.Linear) -> None:
        self.seen = coordinates(head)
        weight, bias = head.weight.detach(), head.bias.detach()
        if self.seen is not None:
            weight = weight[:, torch.from_numpy(self.seen)]
        self.p, self.numbered = weight[0] / 2, has_label_numbers(head)
        self.codes = None if self.numbered else LabelCodes.of(head)
        plain = self.numbered or self.codes is not None
        self.mixed = None if plain else MixedCodes.of(head)
        self.weight, self.bias = (x.double().numpy() for x in (weight, bias))
        # A logit is added up in d + 3 roundings, from numbers whose sizes add up to `_terms`.
        self.roundings = (weight.shape[1] + 3) * torch.finfo(weight.dtype).eps

    def read(self, z: Floats, wanted: Ints) -> Outputs:
        """Decode the features (d, tokens) of tokens with these wanted labels, -1 for none; just the
        coordinates that are ``seen``."""
        if self.numbered:
            y = np.asarray(self.p.double().numpy() @ z)
            return self._outputs(np.rint(y) - 1, y, wanted, self._terms(z))
        if self.codes is not None:
            return self._by_codes(self.codes, z, wanted)
        if self.mixed is not None:
            return self._by_mixed(self.mixed, z, wanted)
        step, chunks = max(1, LOGITS // len(self.bias)), []
        for i in range(0, max(1, len(wanted)), step):
            part, asked = z[:, i : i + step], wanted[i : i + step]
            logits = self.weight @ part + self.bias[:, None]
            chunk = logits.argmax(0), leads(logits, asked) / 2, asked, self._terms(part)
            chunks.append(self._outputs(*chunk))
        return Outputs.joined(chunks)

    def _by_codes(self, codes: LabelCodes, z: Floats, wanted: Ints) -> Outputs:
        y = self._coded(codes, z)
        labels, known = codes.nearest(y)
        doubt = np.flatnonzero(~(known & (codes.away(y, labels) < 0.5)))
        step = max(1, LOGITS // len(self.bias))
        for i in range(0, len(doubt), step):
            part = doubt[i : i + step]
            logits = 2 * codes.codes @ y[:, part] + self.bias[:, None]
            labels[part] = logits.argmax(0)
        return self._outputs(labels, self._left(codes, y, labels, wanted), wanted, self._terms(z))

    def _by_mixed(self, mixed: MixedCodes, z: Floats, wanted: Ints) -> Outputs:
        y, own, mixed = self._parts(mixed, z)
        labels, known = mixed.nearest(y, own)
        doubt = np.flatnonzero(~(known & (mixed.away(y, own, labels) < 0.5)))
        step = max(1, LOGITS // len(self.bias))
        for i in range(0, len(doubt), step):
            part = doubt[i : i + step]
            labels[part] = mixed.logits(y[:, part], own[:, part]).argmax(0)
        left = 0.5 - mixed.away(y, own, np.where(wanted < 0, labels, wanted))
        terms = float(mixed.terms(y, own).max(initial=0.0)) / mixed.sharp
        return self._outputs(labels, left, wanted, terms)

    def _parts(self, mixed: MixedCodes, z: Floats) -> tuple[Floats, Floats, MixedCodes]:
        """The features of codes, those of the distributions that some token has a share of, and the
        head without the others: there may be thousands, of which few tokens see few."""
        at, own = mixed.at, mixed.own
        if self.seen is not None and len(z) == len(self.seen):
            at, own = (np.searchsorted(self.seen, x) for x in (at, own))
        there = np.array([z[row].any() for row in own.tolist()], dtype=bool)
        y, rest = (z[rows].astype(np.float64, copy=False) for rows in (at, own[there]))
        return y, rest, mixed if there.all() else mixed.among(there)

    def _coded(self, codes: LabelCodes, z: Floats) -> Floats:
        """The features that a head of codes reads: all that it is given, if these are ``seen``."""
        return (z[codes.at] if self.seen is None else z).astype(np.float64, copy=False)

    def _left(self, codes: LabelCodes, y: Floats, labels: Ints, wanted: Ints) -> Floats:
        """What the distance from the wanted code leaves of 1/2."""
        return np.asarray(0.5 - codes.away(y, np.where(wanted < 0, labels, wanted)))

    def read_logits(self, features: Tensor, logits: Tensor, wanted: Ints) -> Outputs:
        """The same for rows of features whose logits are known; these decide the label."""
        if self.codes is not None:
            y, labels = features.double().numpy().T[self.codes.at], logits.argmax(-1).numpy()
            left = self._left(self.codes, y, labels, wanted)
            return self._outputs(labels, left, wanted, 0.0)
        if self.mixed is not None:
            z, labels = features.double().numpy().T, logits.argmax(-1).numpy()
            y, rest = z[self.mixed.at], z[self.mixed.own]
            chosen = np.where(wanted < 0, labels, wanted)
            return self._outputs(labels, 0.5 - self.mixed.away(y, rest, chosen), wanted, 0.0)
        if self.numbered:
            own = features if self.seen is None else features[..., torch.from_numpy(self.seen)]
            values = (own @ self.p).double().numpy()
        else:
            values = leads(logits.double().numpy().T, wanted) / 2
        return self._outputs(logits.argmax(-1).numpy(), values, wanted, 0.0)

    def _outputs(
        self, labels: NDArray[np.generic], values: Floats, wanted: Ints, terms: float
    ) -> Outputs:
        errors = np.abs(values - (wanted + 1)) if self.numbered else 0.5 - values
        if wanted.min(initial=0) < 0:
            errors[wanted < 0] = -np.inf
        return Outputs(labels, values, errors, self.roundings * terms)

    def _terms(self, z: Floats) -> float:
        """The largest |w_c|^T |z| + |b_c|, over all labels c and tokens, or somewhat more."""
        if self.codes is not None:
            y = self._coded(self.codes, z)
            return float(self.codes.terms(y).max(initial=0.0))
        if not self.numbered:
            sums = np.abs(self.weight) @ np.abs(z) + np.abs(self.bias)[:, None]
            return float(sums.max(initial=0.0))
        size = (np.abs(self.p.double().numpy()) @ np.abs(z)).max(initial=0.0)
        return 2 * len(self.bias) * float(size) + len(self.bias) ** 2


def leads(logits: Floats, wanted: Ints) -> Floats:
    """logit of the wanted label, less the largest of the others, for logits (labels, tokens).

    For the largest logit where no label is wanted; 1 where there is no other label.
    """
    chosen = np.where(wanted < 0, logits.argmax(0), wanted)[None]
    own = np.take_along_axis(logits, chosen, 0)[0]
    others = logits.copy()
    np.put_along_axis(others, chosen, -np.inf, 0)
    with np.errstate(invalid="ignore"):  # infinity less infinity is no lead
        return np.asarray(own - (others.max(0) if len(logits) > 1 else own - 1))
