"""What the head makes of features: logits and log-probabilities, of a few tokens at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from torch import nn

from rankone.arrays import Ints
from rankone.errors import ModelError
from rankone.nn.classifier import TokenClassifier
from rankone.nn.evaluate import Evaluator, Numbers, coordinates
from rankone.nn.ragged import cut

LOGITS = 1 << 22  # held at once: there may be tens of thousands of labels


@dataclass(frozen=True)
class Readout:
    """logits = W z + b, where z has the coordinates ``seen`` of the features (None: all)."""

    weight: Numbers
    bias: Numbers
    seen: Ints | None

    @classmethod
    def of(cls, head: nn.Linear) -> Readout:
        if not head.weight.any() and not head.bias.any():
            raise ModelError(
                "a model without a readout: it has context ids, but no labels",
                remedy="give a model that memorize wrote",
            )
        weight, seen = head.weight.detach().numpy(), coordinates(head)
        weight = weight if seen is None else np.ascontiguousarray(weight[:, seen])
        return cls(weight, head.bias.detach().numpy(), seen)

    def logits(self, features: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
        """For features (d, tokens) the logits (labels, tokens) of some tokens after the other, and
        the largest of each."""
        step = max(1, LOGITS // len(self.bias))
        for i in range(0, features.shape[1], step):
            found = self.weight @ features[:, i : i + step] + self.bias[:, None]
            most = found.max(0)
            if not np.isfinite(most).all():
                raise ModelError(
                    f"a label depends on numbers that overflow {found.dtype}",
                    remedy="give a model with smaller weights; certify says what these do",
                )
            yield found, most

    def labels(self, features: Numbers) -> Ints:
        """The number of the label with the largest logit, for every token."""
        found = [logits.argmax(0) for logits, _ in self.logits(features)]
        return np.concatenate(found or [np.empty(0, np.int64)])

    def log_probabilities(self, features: Numbers) -> Iterator[Numbers]:
        """log softmax of the logits, (tokens, labels), of some tokens after the other."""
        for logits, most in self.logits(features):
            logits -= most
            # in float64, so that thousands of small terms next to a 1 are not lost
            total = np.exp(logits).sum(0, dtype=np.float64)
            logits -= np.log(total).astype(logits.dtype)
            yield np.ascontiguousarray(logits.T)


@dataclass(frozen=True)
class Reader:
    """Reads what a head makes of sentences; those that are longer than the table of ``positions``
    are cut into pieces."""

    head: Readout
    evaluator: Evaluator
    positions: int

    @classmethod
    def of(cls, network: TokenClassifier, tokens: int) -> Reader:
        """For about so many tokens."""
        head = Readout.of(network.head)
        with np.errstate(over="ignore", invalid="ignore"):  # checked by the readout
            evaluator = Evaluator(network, only=head.seen, tokens=tokens)
        return cls(head, evaluator, network.shape.positions)

    def read(
        self, ids: Ints, offsets: Ints, read: Callable[[Readout, Numbers], Iterable[Numbers]]
    ) -> Iterator[Numbers]:
        """What `read` makes of the features of some tokens after the other."""
        features = self.evaluator.features(ids, cut(offsets, self.positions))
        return quietly(block for z in features for block in read(self.head, z))

    def label_ids(self, ids: Ints, offsets: Ints) -> Ints:
        """The number of the label of every token."""
        found = [np.empty(0, np.int64)]
        found += self.read(ids, offsets, lambda head, z: [head.labels(z)])
        return np.concatenate(found)


def by_sentence(blocks: Iterable[Numbers], offsets: Ints, none: Numbers) -> Iterator[Numbers]:
    """Rows that come in blocks, as one array for every sentence; `none` is a block without rows."""
    more, left = iter(blocks), none
    for length in np.diff(offsets).tolist():
        parts = [none]
        while length:
            left = left if len(left) else next(more)
            parts.append(left[:length])
            left, length = left[length:], length - len(parts[-1])
        yield np.concatenate(parts)


def quietly(items: Iterator[Numbers]) -> Iterator[Numbers]:
    """The same arrays; numpy does not warn of overflow while they are made, only then."""
    while True:
        with np.errstate(over="ignore", invalid="ignore"):  # checked by the readout
            item = next(items, None)
        if item is None:
            return
        yield item
