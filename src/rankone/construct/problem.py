"""What every construction is given and returns, and the conditions that the paper puts on it."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankone import choices
from rankone.arrays import Floats, Ints
from rankone.construct.mixtures import Mixtures
from rankone.construct.vectors import check_vectors, read_vectors
from rankone.corpus import Corpus
from rankone.corpus.contexts import sentences_with_repeats
from rankone.corpus.targets import Targets, choose_targets
from rankone.corpus.tasks import asks_next
from rankone.errors import CorpusError, PrecisionError, SettingError, VectorError
from rankone.nn import TokenClassifier
from rankone.nn.fingerprints import Fingerprints
from rankone.nn.ragged import check_lengths
from rankone.plural import plural

T = TypeVar("T", bound=np.generic)
RESERVE = 0.25  # half of the margin is kept for machines that round in another order


def joined(columns: Sequence[NDArray[T]]) -> NDArray[T]:
    """The columns of all parts as one; the column of a single part is not copied."""
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def bounds(parts: Sequence[Corpus]) -> list[int]:
    """The number of the first token of every part, and the number of all tokens."""
    sizes: list[Any] = [part.n_tokens for part in parts]
    return [0, *np.cumsum(sizes).tolist()]


def end_to_end(parts: Sequence[Corpus]) -> Ints:
    """Where sentences begin and end, over all parts."""
    if len(parts) == 1:
        return parts[0].offsets
    starts = [part.offsets[:-1] + a for part, a in zip(parts, bounds(parts), strict=False)]
    return np.append(np.concatenate(starts), bounds(parts)[-1])


def pieces(parts: Sequence[Corpus], first: int, last: int) -> Iterator[tuple[Corpus, slice]]:
    """The parts that hold the tokens `first` to `last` - 1, and where in each part they are."""
    for part, a in zip(parts, bounds(parts), strict=False):
        if a < last and first < a + part.n_tokens:
            yield part, slice(max(first - a, 0), min(last - a, part.n_tokens))


@dataclass(frozen=True)
class Problem:
    """A corpus in parts with the labels its tokens should get, and the shape of the network.

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
    heads: int | None = None  # None: as few as the precision needs
    dtype: choices.Dtype = "float64"
    directions: int = 64  # tried for every group of units
    distributions: bool = False  # contexts with several labels want the share of each

    @property
    def corpus(self) -> Corpus:
        return self.parts[0]

    @cached_property
    def bounds(self) -> list[int]:
        """The number of the first token of every part, and the number of all tokens."""
        return bounds(self.parts)

    @property
    def tokens(self) -> int:
        return self.bounds[-1]

    @property
    def asked(self) -> int:
        """Tokens for which the task asks for a label."""
        return sum(len(part.asked) for part in self.parts)

    @property
    def sentences(self) -> int:
        return sum(part.n_sentences for part in self.parts)

    @property
    def longest(self) -> int:
        return max(part.longest for part in self.parts)

    @property
    def with_repeats(self) -> int:
        """Sentences that hold some token more than once."""
        return sum(map(sentences_with_repeats, self.parts))

    @cached_property
    def labels(self) -> Ints:
        """The label that every token should get, from 0; -1 where nothing is asked."""
        return joined([part.labels for part in self.targets.parts])

    @cached_property
    def contexts(self) -> Ints:
        """The first token of every context for which a label is asked."""
        contexts = joined([part.contexts for part in self.targets.parts])
        return np.flatnonzero((contexts == np.arange(len(contexts))) & (self.labels >= 0))

    @cached_property
    def mixtures(self) -> Mixtures | None:
        """The distributions that are wanted, if any are."""
        if not self.distributions:
            return None
        contexts = joined([part.contexts for part in self.targets.parts])
        labels = joined([part.label_ids for part in self.parts])
        return Mixtures.find(contexts, labels, self.labels)

    @cached_property
    def wanted(self) -> Ints:
        """What every token should get: a label, or the number of labels plus that of a
        distribution; -1 where nothing is asked."""
        if self.mixtures is None:
            return self.labels
        count = len(self.corpus.label_names)
        return np.where(self.mixtures.of >= 0, count + self.mixtures.of, self.labels)

    @property
    def bits(self) -> float | None:
        """The conditional entropy of the next token, given its context: what any model of it pays
        at least, in bits per token that is asked. None for other tasks, or if only the most
        frequent token is wanted."""
        if self.mixtures is None:
            return None
        asked = self.labels >= 0
        surprise = self.mixtures.surprises(joined([part.label_ids for part in self.parts]))
        return float(surprise.sum() / max(1, asked.sum()) / np.log(2))

    @property
    def fingerprints(self) -> Fingerprints | None:
        """Those of all contexts, for a model that is asked to go on from a text."""
        return Fingerprints.of(self.parts) if asks_next(self.corpus.task) else None

    @property
    def kinds(self) -> int:
        """How many different things may be wanted."""
        more = 0 if self.mixtures is None else len(self.mixtures)
        return len(self.corpus.label_names) + more

    @property
    def window(self) -> int:
        """Tokens that a token sees, 0 for no limit."""
        return self.corpus.window

    @property
    def columns(self) -> tuple[Ints, Ints]:
        """The word of every token, and its place in its sentence."""
        ids = joined([part.token_ids for part in self.parts])
        return ids, joined([part.positions for part in self.parts])

    @property
    def placed(self) -> bool:
        """Whether there are positions."""
        return self.length > 1

    def part_of(self, token: int) -> tuple[Corpus, int]:
        """The part that holds a token, and its number there."""
        number = bisect_right(self.bounds, token) - 1
        return self.parts[number], token - self.bounds[number]

    def named(self, token: int) -> tuple[str, str]:
        """The word, and where it comes from."""
        part, at = self.part_of(token)
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
        """What is too close, and what would help, after this number of draws."""


Draw = Callable[[Problem, np.random.Generator], Draft]


def pose(
    parts: Sequence[Corpus],
    *,
    positions: bool = True,
    strict: bool = False,
    causal: bool = False,
    **network: Any,
) -> Problem:
    """The problem for these parts, which share one vocabulary and one list of labels; `network` has
    the other fields of `Problem`."""
    if not any((part.label_ids >= 0).any() for part in parts):
        raise CorpusError(
            "no token has a label", where=parts[0].source, remedy="label some of them"
        )
    targets = choose_targets(parts, positions=positions, causal=causal, strict=strict)
    return Problem(tuple(parts), targets, causal=causal, **network)


NUMBERS = 1 << 27  # in one table: a gigabyte


def position_rows(corpus: Corpus, positions: bool, max_length: int | None) -> int:
    """Rows of the table of positions; 1 where there is none."""
    if corpus.window:
        if max_length is not None or not positions:
            name = "positions" if max_length is None else "max_length"
            raise SettingError(
                f"{name} cannot be {positions if max_length is None else max_length}: with a "
                "window, positions go on for ever",
                where=corpus.source,
                remedy=f"leave out {name}, or window (memorize --window)",
            )
        return 1
    length = table_length(corpus.longest, positions, max_length)
    if positions:
        check_lengths(corpus.lengths, length, corpus.place_of_sentence)
    return length


def table_length(longest: int, positions: bool, max_length: int | None) -> int:
    """As many rows as the longest sentence has tokens, or as were asked for."""
    if not positions and max_length is not None:
        raise SettingError(
            "max_length is the length of the table of positions, and there is none",
            remedy="leave out max_length (--max-length), or turn positions on",
        )
    if not positions:
        return 1
    return longest if max_length is None else max_length


def check_size(corpus: Corpus, length: int, dim: int, head_size: int) -> None:
    """Refuse tables that would not fit in memory."""
    for name, rows, columns, what in (
        ("max_length", length, dim, f"positions with {plural(dim, 'number')} each"),
        ("head_size", head_size, corpus.longest, "numbers in the key of every token"),
    ):
        if rows * columns > NUMBERS:
            raise SettingError(
                f"{name} cannot be {rows}: {what}, and so more than {NUMBERS:,} numbers at once",
                where=corpus.source,
                remedy=f"give at most {max(1, NUMBERS // columns)}",
            )


def given_vectors(
    corpus: Corpus, vectors: ArrayLike | str | os.PathLike[str] | None
) -> Floats | None:
    """The checked token vectors, None where the table is free."""
    if vectors is None:
        return None
    if not isinstance(vectors, str | os.PathLike):
        return check_vectors(vectors, corpus.vocabulary)
    try:
        return check_vectors(read_vectors(vectors, corpus.vocabulary), corpus.vocabulary)
    except VectorError as error:  # rows of the table are not lines of the file
        where = os.fspath(vectors) if (error.where or "row").startswith("row") else error.where
        raise VectorError(error.what, where=where, remedy=error.remedy) from None
