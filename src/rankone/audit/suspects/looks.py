"""What two tokens may have in common: the windows that vote, and those of the linear model.

Digits are made equal. ``WORD`` is the word itself, ``LOWER`` in lower case, ``SHAPE`` its outline:
"McDonald" is "XxXx", "1996-12" is "0-0". Nearby means: among the same NEARBY sentences of a file,
which are of one document as a rule; a table or a headline is known by its outline and its length.
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from rankone.arrays import Ints
from rankone.audit.windows import Keys, Neighbourhood, mixed
from rankone.corpus.corpus import Corpus

NEARBY = 20  # sentences
SHORT = 12  # a sentence of fewer tokens may be a headline or a row of a table
DIGIT, RUN = re.compile("[0-9]"), re.compile(r"(.)\1+")


class Looks(Neighbourhood):
    """The windows of a corpus by name, widest first: what they share is said to the user."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus)
        self.word = self.by_word(lambda word: DIGIT.sub("0", word))
        self.lower = self.by_word(lambda word: DIGIT.sub("0", word.lower()))
        self.shape = self.by_word(shape)

    @cached_property
    def nearby(self) -> Ints:
        """The block of sentences that each token stands in."""
        corpus = self.corpus
        starts = np.flatnonzero(np.diff(corpus.file_ids, prepend=-1))
        inside = np.arange(corpus.n_sentences) - np.repeat(
            starts, np.diff(np.append(starts, corpus.n_sentences))
        )
        first = (inside % NEARBY == 0).cumsum()
        return np.asarray(first[corpus.sentence_of])

    @cached_property
    def length(self) -> Ints:
        """The length of a short sentence."""
        lengths = self.corpus.lengths[self.corpus.sentence_of]
        return np.where(lengths < SHORT, lengths, 0)

    @cached_property
    def name(self) -> Keys:
        """The run of capitalised words that a token stands in, and the token's place in it."""
        vocabulary = self.corpus.vocabulary
        capital = np.array([word[:1].isupper() for word in vocabulary])[self.corpus.token_ids]
        before = np.append(False, capital[:-1]) & (self.corpus.positions > 0)
        opens = capital & ~before
        run = np.cumsum(opens) - 1
        place = np.arange(self.size) - np.flatnonzero(opens)[run] if opens.any() else run
        words = mixed(self.lower, np.where(capital, place, 0))
        sums = np.zeros(int(opens.sum()) + 1, dtype=np.uint64)
        np.add.at(sums, run[capital], words[capital])
        whole = sums[run]  # -1 before the first run finds the last, which is no run
        own = np.arange(self.size, dtype=np.uint64)  # a token outside is alone
        return np.where(capital, mixed(whole, place), mixed(own, np.full(self.size, -1)))

    def voting(self) -> dict[str, Keys]:
        """The windows whose tokens vote, by what they have in common."""
        word, lower, shape_, at = self.word, self.lower, self.shape, self.at
        name, span = self.name, self.window
        return {
            "three words on either side": span(-3, 3, word),
            "two words on either side": span(-2, 2, word),
            "one word before and three after": span(-1, 3, word),
            "three words before and one after": span(-3, 1, word),
            "two words on either side, whatever the case": span(-2, 2, lower),
            "one word on either side": span(-1, 1, word),
            "two words before": span(-2, 0, word),
            "two words after": span(0, 2, word),
            "two words on either side, not the word itself": mixed(
                at(word, -2), at(word, -1), shape_, at(word, 1), at(word, 2)
            ),
            "the same name nearby": mixed(name, self.nearby),
            "the word before, nearby": mixed(self.nearby, at(lower, -1), lower),
            "the word after, nearby": mixed(self.nearby, lower, at(lower, 1)),
            "the same word nearby": mixed(self.nearby, lower),
            "the same name": name,
            "the word before": span(-1, 0, word),
            "the word after": span(0, 1, word),
            "the word, between words of the same outline": mixed(
                at(shape_, -2), at(shape_, -1), word, at(shape_, 1), at(shape_, 2)
            ),
            "the two words before it": mixed(at(word, -2), at(word, -1), shape_),
            "the two words after it": mixed(shape_, at(word, 1), at(word, 2)),
            "the word before it": mixed(at(word, -1), shape_),
            "the word after it": mixed(shape_, at(word, 1)),
            "the word": word.astype(np.uint64),
            "the word, whatever the case": lower.astype(np.uint64),
            "the same place in rows of a table nearby": mixed(
                self.nearby, self.corpus.positions, span(-1, 1, shape_)
            ),
            "the same place in rows of this length nearby": mixed(
                self.nearby, self.corpus.positions, self.length, shape_
            ),
            "the outlines of three words on either side": mixed(self.length, span(-3, 3, shape_)),
        }

    def linear(self) -> list[Keys]:
        """The windows that the linear model weighs."""
        word, lower, shape_, at = self.word, self.lower, self.shape, self.at
        ending = self.by_word(lambda word: word[-3:].lower())
        opening = self.by_word(lambda word: word[:3].lower())
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


def shape(word: str) -> str:
    """The outline of a word.

    >>> shape("McDonald"), shape("1996-12"), shape("Łódź")
    ('XxXx', '0-0', 'Xx')
    """
    kinds = (
        "X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word
    )
    return RUN.sub(r"\1", "".join(kinds))
