"""Windows against their definitions, written out."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone import Corpus
from rankone.audit.suspects.looks import NEARBY, SHORT, Looks, shape

WORDS = ["A", "a", "Ab", "b1", "b2", "B", "-", "C"]
texts = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=SHORT + 1), min_size=1, max_size=5
)


class Place:
    """A token in its sentence, as the definitions speak of it."""

    def __init__(self, sentences: list[list[str]], j: int, i: int) -> None:
        self.words, self.j, self.i = sentences[j], j, i

    def at(self, k: int, make: Callable[[str], str] = str) -> Hashable:
        inside = 0 <= self.i + k < len(self.words)
        return make(self.words[self.i + k]) if inside else ("end", k > 0)

    def word(self, *ks: int) -> tuple[Hashable, ...]:
        return tuple(self.at(k, lambda w: re.sub("[0-9]", "0", w)) for k in ks)

    def lower(self, *ks: int) -> tuple[Hashable, ...]:
        return tuple(self.at(k, lambda w: re.sub("[0-9]", "0", w.lower())) for k in ks)

    def shape(self, *ks: int) -> tuple[Hashable, ...]:
        return tuple(self.at(k, shape) for k in ks)

    def ending(self, *ks: int) -> tuple[Hashable, ...]:
        return tuple(self.at(k, lambda w: w[-3:].lower()) for k in ks)

    @property
    def nearby(self) -> int:
        return self.j // NEARBY

    @property
    def length(self) -> int:
        return len(self.words) if len(self.words) < SHORT else 0

    @property
    def name(self) -> Hashable:
        """The run of capitalised words, and the place in it; a token outside is alone."""
        if not self.words[self.i][0].isupper():
            return ("alone", self.j, self.i)
        first = last = self.i
        while first > 0 and self.words[first - 1][0].isupper():
            first -= 1
        while last + 1 < len(self.words) and self.words[last + 1][0].isupper():
            last += 1
        return tuple(word.lower() for word in self.words[first : last + 1]), self.i - first


VOTING: dict[str, Callable[[Place], Hashable]] = {
    "three words on either side": lambda p: p.word(-3, -2, -1, 0, 1, 2, 3),
    "two words on either side": lambda p: p.word(-2, -1, 0, 1, 2),
    "one word before and three after": lambda p: p.word(-1, 0, 1, 2, 3),
    "three words before and one after": lambda p: p.word(-3, -2, -1, 0, 1),
    "two words on either side, whatever the case": lambda p: p.lower(-2, -1, 0, 1, 2),
    "one word on either side": lambda p: p.word(-1, 0, 1),
    "two words before": lambda p: p.word(-2, -1, 0),
    "two words after": lambda p: p.word(0, 1, 2),
    "two words on either side, not the word itself": lambda p: (
        p.word(-2, -1, 1, 2),
        p.shape(0),
    ),
    "the same name nearby": lambda p: (p.name, p.nearby),
    "the word before, nearby": lambda p: (p.nearby, p.lower(-1, 0)),
    "the word after, nearby": lambda p: (p.nearby, p.lower(0, 1)),
    "the same word nearby": lambda p: (p.nearby, p.lower(0)),
    "the same name": lambda p: p.name,
    "the word before": lambda p: p.word(-1, 0),
    "the word after": lambda p: p.word(0, 1),
    "the word, between words of the same outline": lambda p: (p.shape(-2, -1, 1, 2), p.word(0)),
    "the two words before it": lambda p: (p.word(-2, -1), p.shape(0)),
    "the two words after it": lambda p: (p.shape(0), p.word(1, 2)),
    "the word before it": lambda p: (p.word(-1), p.shape(0)),
    "the word after it": lambda p: (p.shape(0), p.word(1)),
    "the word": lambda p: p.word(0),
    "the word, whatever the case": lambda p: p.lower(0),
    "the same place in rows of a table nearby": lambda p: (p.nearby, p.i, p.shape(-1, 0, 1)),
    "the same place in rows of this length nearby": lambda p: (
        (p.nearby, p.i, p.length),
        p.shape(0),
    ),
    "the outlines of three words on either side": lambda p: (
        p.length,
        p.shape(-3, -2, -1, 0, 1, 2, 3),
    ),
}
LINEAR: list[Callable[[Place], Hashable]] = [
    lambda p: p.word(0),
    lambda p: p.lower(0),
    lambda p: p.shape(0),
    lambda p: p.ending(0),
    lambda p: p.words[p.i][:3].lower(),
    *(lambda p, k=k: p.lower(k) for k in (-2, -1, 1, 2)),  # type: ignore[misc]
    *(lambda p, k=k: p.ending(k) for k in (-1, 1)),  # type: ignore[misc]
    lambda p: p.lower(-1, 0),
    lambda p: p.lower(0, 1),
    lambda p: p.shape(-1, 0),
    lambda p: p.shape(0, 1),
    lambda p: p.shape(-1, 0, 1),
    lambda p: p.shape(-2, -1, 0, 1, 2),
    lambda p: p.lower(-1, 1),
    lambda p: (p.word(-1), p.shape(0)),
    lambda p: (p.shape(0), p.word(1)),
    lambda p: (p.shape(-1), p.word(0)),
    lambda p: (p.word(0), p.shape(1)),
    lambda p: p.lower(-2, -1),
    lambda p: p.lower(1, 2),
    lambda p: (min(p.i, 3), p.shape(0)),
    lambda p: (p.length, p.i if p.length else 0, p.shape(0)),
]


def groups(keys: list[Hashable]) -> list[int]:
    """Which tokens are equal: the first of each."""
    first: dict[Hashable, int] = {}
    return [first.setdefault(key, i) for i, key in enumerate(keys)]


def compare(sentences: list[list[str]]) -> None:
    corpus = Corpus.from_sentences([(words, ["X"] * len(words)) for words in sentences])
    looks = Looks(corpus)
    places = [Place(sentences, j, i) for j, s in enumerate(sentences) for i in range(len(s))]
    voting = looks.voting()
    assert voting.keys() == VOTING.keys()
    for name, keys in voting.items():
        expected = groups([VOTING[name](place) for place in places])
        assert groups(keys.tolist()) == expected, name
    for k, (keys, define) in enumerate(zip(looks.linear(), LINEAR, strict=True)):
        assert groups(keys.tolist()) == groups([define(place) for place in places]), k


@given(texts)
def test_equal_keys_are_equal_windows(sentences: list[list[str]]) -> None:
    compare(sentences)


@pytest.mark.parametrize("count", [NEARBY, NEARBY + 1, 2 * NEARBY + 3])
def test_what_is_nearby(count: int) -> None:
    compare([["A", "b1"], ["a"]] * count)


def test_nearby_ends_with_the_file() -> None:
    from rankone.corpus import join

    one, two = (Corpus.from_sentences([(["a"], ["X"])] * 3, source=name) for name in "xy")
    assert Looks(join([one, two])).nearby.tolist() == [1, 1, 1, 2, 2, 2]
