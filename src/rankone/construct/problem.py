"""What every construction is given, and what it gives back."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankone import choices
from rankone.arrays import Floats, Ints
from rankone.corpus import Corpus
from rankone.corpus.targets import Targets, choose_targets
from rankone.errors import CorpusError, PrecisionError
from rankone.nn import TokenClassifier

T = TypeVar("T", bound=np.generic)
RESERVE = 0.25  # half of the margin is kept for machines that round in another order


def joined(columns: Sequence[NDArray[T]]) -> NDArray[T]:
    """The columns of all parts as one; that of a single part is not copied."""
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def bounds(parts: Sequence[Corpus]) -> list[int]:
    """The number of the first token of every part, and behind the last: how many there are."""
    sizes: list[Any] = [part.n_tokens for part in parts]
    return [0, *np.cumsum(sizes).tolist()]


def end_to_end(parts: Sequence[Corpus]) -> Ints:
    """Where sentences begin and end, over all parts."""
    if len(parts) == 1:
        return parts[0].offsets
    starts = [part.offsets[:-1] + a for part, a in zip(parts, bounds(parts), strict=False)]
    return np.append(np.concatenate(starts), bounds(parts)[-1])


def pieces(parts: Sequence[Corpus], first: int, last: int) -> Iterator[tuple[Corpus, slice]]:
    """The parts that hold the tokens from `first` to behind `last`, and where in them."""
    for part, a in zip(parts, bounds(parts), strict=False):
        if a < last and first < a + part.n_tokens:
            yield part, slice(max(first - a, 0), min(last - a, part.n_tokens))


@dataclass(frozen=True)
class Problem:
    """A corpus in parts with what its tokens shall get, and how the network is to look.

    Tokens are numbered over all parts laid end to end. All parts have the words and labels of the
    first, ``corpus``. ``length`` counts the rows of the table of positions (1: none is needed),
    ``vectors`` is the given token table, if there is one.
    """

    parts: tuple[Corpus, ...]
    targets: Targets
    length: int = 1
    causal: bool = False
    vectors: Floats | None = None
    head_size: int = 1
    readout: choices.Readout = "merged"

    @property
    def corpus(self) -> Corpus:
        return self.parts[0]

    @cached_property
    def bounds(self) -> list[int]:
        """The number of the first token of every part, and how many there are in all."""
        return bounds(self.parts)

    @property
    def tokens(self) -> int:
        return self.bounds[-1]

    @property
    def longest(self) -> int:
        return max(part.longest for part in self.parts)

    @cached_property
    def labels(self) -> Ints:
        """What every token shall get, from 0; -1 where nothing is asked."""
        return joined([part.labels for part in self.targets.parts])

    @cached_property
    def contexts(self) -> Ints:
        """The first token of every context of which something is asked."""
        contexts = joined([part.contexts for part in self.targets.parts])
        return np.unique(contexts[self.labels >= 0])

    def named(self, token: int) -> tuple[str, str]:
        """The word, and where it stood."""
        number = bisect_right(self.bounds, token) - 1
        part, at = self.parts[number], token - self.bounds[number]
        return part.vocabulary[part.token_ids[at]], part.place(at)


class Draft(Protocol):
    """One draw: a network (None if the draw has no room for one), with the smallest gap between
    what it tells apart (infinite if there is nothing to tell apart).

    The head is scaled so that the logit of the wanted label leads all others by 1 where nothing is
    rounded: more than 2 `RESERVE` of that must be left.
    """

    @property
    def network(self) -> TokenClassifier | None: ...

    @property
    def min_gap(self) -> float: ...

    def hopeful(self, before: Self | None) -> bool:
        """Whether to draw again, after this draw and the one `before` it have failed."""

    def refusal(self, draws: int) -> PrecisionError:
        """What is too close, and what would help, after so many draws."""


Draw = Callable[[Problem, np.random.Generator], Draft]


def pose(
    parts: Sequence[Corpus],
    *,
    positions: bool = True,
    strict: bool = False,
    causal: bool = False,
    **network: Any,
) -> Problem:
    """The problem of these parts, which share one vocabulary and one list of labels; `network` are
    the other fields of `Problem`."""
    if not any((part.label_ids >= 0).any() for part in parts):
        raise CorpusError(
            "no token has a label", where=parts[0].source, remedy="label some of them"
        )
    targets = choose_targets(parts, positions=positions, causal=causal, strict=strict)
    return Problem(tuple(parts), targets, causal=causal, **network)
