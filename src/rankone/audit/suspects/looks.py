"""What two tokens may have in common: the windows that vote, and those of the linear model.

Digits are made equal. ``WORD`` is the word itself, ``LOWER`` in lower case, ``SHAPE`` its outline:
"McDonald" is "XxXx", "1996-12" is "0-0". Nearby means: among the same NEARBY sentences of a file,
which are of one document as a rule; a table or a headline is known by its outline and its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from rankone.arrays import Ints
from rankone.audit.windows import Keys, Neighbourhood, mixed
from rankone.corpus.corpus import Corpus

NEARBY = 20  # sentences
SHORT = 12  # a sentence of fewer tokens may be a headline or a row of a table
DIGIT, RUN = re.compile("[0-9]"), re.compile(r"(.)\1+")


@dataclass(frozen=True)
class Spellings:
    """What is made of each word of a vocabulary, as numbers: equal for equal values."""

    word: Ints
    lower: Ints
    shape: Ints
    ending: Ints
    opening: Ints
    capital: Ints

    @classmethod
    def of(cls, vocabulary: Sequence[str]) -> Spellings:
        def numbers(of_word: Callable[[str], object]) -> Ints:
            known: dict[object, int] = {}
            found = [known.setdefault(of_word(word), len(known)) for word in vocabulary]
            return np.array(found, dtype=np.int64)

        return cls(
            word=numbers(lambda word: DIGIT.sub("0", word)),
            lower=numbers(lambda word: DIGIT.sub("0", word.lower())),
            shape=numbers(shape),
            ending=numbers(lambda word: word[-3:].lower()),
            opening=numbers(lambda word: word[:3].lower()),
            capital=np.array([word[:1].isupper() for word in vocabulary], dtype=np.int64),
        )

    def __getitem__(self, words: Ints) -> Spellings:
        return Spellings(*(getattr(self, field.name)[words] for field in fields(self)))


class Looks(Neighbourhood):
    """The windows of some sentences by name, widest first: what they share is said to the user.

    Of the corpus that the sentences are from, `spellings` are those of its vocabulary, `blocks` has
    the block of each sentence, `numbers` the number of each token. By default they are all of it.
    """

    def __init__(
        self,
        corpus: Corpus,
        spellings: Spellings | None = None,
        blocks: Ints | None = None,
        numbers: Ints | None = None,
    ) -> None:
        super().__init__(corpus)
        spelled = (spellings or Spellings.of(corpus.vocabulary))[corpus.token_ids]
        self.word, self.lower, self.shape = spelled.word, spelled.lower, spelled.shape
        self.ending, self.opening, self.capital = spelled.ending, spelled.opening, spelled.capital
        self.blocks = blocks_of(corpus.file_ids) if blocks is None else blocks
        self.numbers = np.arange(self.size) if numbers is None else numbers

    @cached_property
    def nearby(self) -> Ints:
        """The block of sentences that each token stands in."""
        return np.asarray(self.blocks[self.corpus.sentence_of])

    @cached_property
    def length(self) -> Ints:
        """The length of a short sentence."""
        lengths = self.corpus.lengths[self.corpus.sentence_of]
        return np.where(lengths < SHORT, lengths, 0)

    @cached_property
    def name(self) -> Keys:
        """The run of capitalised words that a token stands in, and the token's place in it."""
        capital = self.capital > 0
        before = np.append(False, capital[:-1]) & (self.corpus.positions > 0)
        opens = capital & ~before
        run = np.cumsum(opens) - 1
        place = np.arange(self.size) - np.flatnonzero(opens)[run] if opens.any() else run
        words = mixed(self.lower, np.where(capital, place, 0))
        sums = np.zeros(int(opens.sum()) + 1, dtype=np.uint64)
        np.add.at(sums, run[capital], words[capital])
        whole = sums[run]  # -1 before the first run finds the last, which is no run
        alone = mixed(self.numbers, np.full(self.size, -1))  # a token outside of any run
        return np.where(capital, mixed(whole, place), alone)

    def voting(self, names: Iterable[str] | None = None) -> dict[str, Keys]:
        """The windows whose tokens vote, by what they have in common; all of them, or these."""
        return {name: VOTING[name](self) for name in (VOTING if names is None else names)}

    def linear(self) -> list[Keys]:
        """The windows that the linear model weighs."""
        word, lower, shape_, at = self.word, self.lower, self.shape, self.at
        ending, opening = self.ending, self.opening
        span, length, place = self.window, self.length, self.corpus.positions
        return [
            *(c.astype(np.uint64) for c in (word, lower, shape_, ending, opening)),
            *(at(lower, k).view(np.uint64) for k in (-2, -1, 1, 2)),
            *(at(ending, k).view(np.uint64) for k in (-1, 1)),
            span(-1, 0, lower),
            span(0, 1, lower),
            span(-1, 0, shape_),
            span(0, 1, shape_),
            span(-1, 1, shape_),
            span(-2, 2, shape_),
            mixed(at(lower, -1), at(lower, 1)),
            mixed(at(word, -1), shape_),
            mixed(shape_, at(word, 1)),
            mixed(at(shape_, -1), word),
            mixed(word, at(shape_, 1)),
            span(-2, -1, lower),
            span(1, 2, lower),
            mixed(np.minimum(place, 3), shape_),
            mixed(length, np.where(length > 0, place, 0), shape_),
        ]


# The windows that vote, widest first, by what their tokens have in common.
VOTING: dict[str, Callable[[Looks], Keys]] = {
    "three words on either side": lambda s: s.window(-3, 3, s.word),
    "two words on either side": lambda s: s.window(-2, 2, s.word),
    "one word before and three after": lambda s: s.window(-1, 3, s.word),
    "three words before and one after": lambda s: s.window(-3, 1, s.word),
    "two words on either side, whatever the case": lambda s: s.window(-2, 2, s.lower),
    "one word on either side": lambda s: s.window(-1, 1, s.word),
    "two words before": lambda s: s.window(-2, 0, s.word),
    "two words after": lambda s: s.window(0, 2, s.word),
    "two words on either side, not the word itself": lambda s: mixed(
        s.at(s.word, -2), s.at(s.word, -1), s.shape, s.at(s.word, 1), s.at(s.word, 2)
    ),
    "the same name nearby": lambda s: mixed(s.name, s.nearby),
    "the word before, nearby": lambda s: mixed(s.nearby, s.at(s.lower, -1), s.lower),
    "the word after, nearby": lambda s: mixed(s.nearby, s.lower, s.at(s.lower, 1)),
    "the same word nearby": lambda s: mixed(s.nearby, s.lower),
    "the same name": lambda s: s.name,
    "the word before": lambda s: s.window(-1, 0, s.word),
    "the word after": lambda s: s.window(0, 1, s.word),
    "the word, between words of the same outline": lambda s: mixed(
        s.at(s.shape, -2), s.at(s.shape, -1), s.word, s.at(s.shape, 1), s.at(s.shape, 2)
    ),
    "the two words before it": lambda s: mixed(s.at(s.word, -2), s.at(s.word, -1), s.shape),
    "the two words after it": lambda s: mixed(s.shape, s.at(s.word, 1), s.at(s.word, 2)),
    "the word before it": lambda s: mixed(s.at(s.word, -1), s.shape),
    "the word after it": lambda s: mixed(s.shape, s.at(s.word, 1)),
    "the word": lambda s: s.word.astype(np.uint64),
    "the word, whatever the case": lambda s: s.lower.astype(np.uint64),
    "the same place in rows of a table nearby": lambda s: mixed(
        s.nearby, s.corpus.positions, s.window(-1, 1, s.shape)
    ),
    "the same place in rows of this length nearby": lambda s: mixed(
        s.nearby, s.corpus.positions, s.length, s.shape
    ),
    "the outlines of three words on either side": lambda s: mixed(
        s.length, s.window(-3, 3, s.shape)
    ),
}


def blocks_of(files: Ints, inside: int = 0, before: int = 0) -> Ints:
    """The block of each sentence, from the file of each; there are `before` blocks already, and the
    first file has `inside` sentences before these."""
    numbers = np.arange(len(files))
    first = np.where(np.diff(files, prepend=files[:1] - (inside == 0)) != 0, numbers, -inside)
    places = numbers - np.maximum.accumulate(first)
    return np.asarray(before + (places % NEARBY == 0).cumsum())


def shape(word: str) -> str:
    """The outline of a word.

    >>> shape("McDonald"), shape("1996-12"), shape("Łódź")
    ('XxXx', '0-0', 'Xx')
    """
    kinds = (
        "X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word
    )
    return RUN.sub(r"\1", "".join(kinds))
