"""Small corpora for tests: generators, and brute force for what the fast code computes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction

from hypothesis import strategies as st

from rankone import Corpus

Sentences = list[tuple[list[str], list[str]]]


@st.composite
def sentences(draw: st.DrawFn, max_sentences: int = 12, max_length: int = 7) -> Sentences:
    """Few words and few labels, so that repeats, copies and conflicts are common."""
    words = draw(st.integers(1, 5))
    labels = draw(st.integers(1, 4))
    row = st.tuples(st.integers(0, words - 1), st.integers(0, labels - 1))
    lists = st.lists(st.lists(row, min_size=1, max_size=max_length), min_size=1)
    return [
        ([f"w{word}" for word, _ in rows], [f"L{label}" for _, label in rows])
        for rows in draw(lists.filter(bool).map(lambda found: found[:max_sentences]))
    ]


def spelled(*pairs: str) -> Sentences:
    """Sentences of one-letter words and labels: "ab xy" is a labelled x and b labelled y."""
    return [(list(words), list(labels)) for words, labels in map(str.split, pairs)]


corpora = sentences().map(Corpus.from_sentences)


def shares(tokens: list[str]) -> frozenset[tuple[str, Fraction]]:
    """The share of each token: all that attention without positions can see."""
    return frozenset((t, Fraction(k, len(tokens))) for t, k in Counter(tokens).items())


# What a function may look at, for token k of a sentence.
Look = Callable[[list[str], int], Hashable]
LOOKS: dict[str, Look] = {
    "majority": lambda *_: None,
    "token": lambda tokens, k: tokens[k],
    "set": lambda tokens, k: (tokens[k], frozenset(tokens)),
    "multiset": lambda tokens, k: (tokens[k], tuple(sorted(tokens))),
    "sequence": lambda tokens, k: (k, tuple(tokens)),
    "prefix": lambda tokens, k: tuple(tokens[: k + 1]),
    "proportions": lambda tokens, k: (tokens[k], shares(tokens)),
    "prefix proportions": lambda tokens, k: (tokens[k], shares(tokens[: k + 1])),
}


def errors(corpus: Sentences, look: Look) -> int:
    """The fewest errors any function of what `look` sees can make."""
    seen: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
    for tokens, labels in corpus:
        for k, label in enumerate(labels):
            seen[look(tokens, k)][label] += 1
    return sum(sum(c.values()) - max(c.values()) for c in seen.values())
