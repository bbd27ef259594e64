"""Small texts for tests, and what is asked of them counted by brute force."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import log2

from hypothesis import strategies as st

from rankone import Corpus
from rankone.audit.pieces import unmarked
from rankone.corpus.tasks import END

Text = list[str]  # documents, a token per letter


def texts(letters: str = "ab", documents: int = 5, length: int = 14) -> st.SearchStrategy[Text]:
    """Documents of few letters, so that they repeat themselves and each other."""
    one = st.text(letters, min_size=1, max_size=length)
    several = st.lists(one, min_size=1, max_size=documents)
    # Two halves in any order: long passages with and without the same tokens around them.
    halves = st.lists(st.sampled_from(["abab", "aab", "ba", "abba"]), min_size=1, max_size=4)
    return several | st.lists(halves.map("".join), min_size=1, max_size=documents)


def corpus_of(text: Text, window: int = 0) -> Corpus:
    """The corpus, without marks where documents begin."""
    return unmarked(Corpus.from_texts(text, tokenizer="characters", window=window))


def asked(text: Text) -> list[tuple[int, int, str]]:
    """Document, place and next token of every token."""
    return [
        (j, k, next_of(document, k + 1))
        for j, document in enumerate(text)
        for k in range(len(document))
    ]


def next_of(document: str, k: int) -> str:
    return document[k] if k < len(document) else END


def context(document: str, k: int, window: int) -> tuple[bool, str]:
    """What is seen at token k, and whether the document is seen to begin there (0: a prefix)."""
    first = 0 if window == 0 else max(k + 1 - window, 0)
    return window == 0 or k + 1 < window, document[first : k + 1]


def counts(text: Text, window: int) -> dict[tuple[bool, str], Counter[str]]:
    """How often each context goes on in which way."""
    seen: defaultdict[tuple[bool, str], Counter[str]] = defaultdict(Counter)
    for j, k, following in asked(text):
        seen[context(text[j], k, window)][following] += 1
    return seen


def bits(counted: Counter[str]) -> float:
    """All bits of these continuations."""
    total = counted.total()
    return sum(-n * log2(n / total) for n in counted.values())


def at_odds(text: Text, window: int) -> set[frozenset[tuple[int, int]]]:
    """The tokens of each context with several continuations."""
    members: defaultdict[tuple[bool, str], set[tuple[int, int, str]]] = defaultdict(set)
    for j, k, following in asked(text):
        members[context(text[j], k, window)].add((j, k, following))
    return {
        frozenset((j, k) for j, k, _ in of_one)
        for of_one in members.values()
        if len({following for *_, following in of_one}) > 1
    }


def places(text: Text, passage: str) -> list[tuple[int, int]]:
    """Where a passage begins: document and place."""
    return [
        (j, k)
        for j, document in enumerate(text)
        for k in range(len(document) - len(passage) + 1)
        if document[k : k + len(passage)] == passage
    ]


def passages(text: Text, least: int = 2) -> set[str]:
    """What stands more than once and cannot be extended for all copies; if its copies overlap, one
    of them must not be inside of a longer one that stands more than once."""
    every = {
        document[a:b]
        for document in text
        for a in range(len(document))
        for b in range(a + least, len(document) + 1)
    }
    copies = {passage: places(text, passage) for passage in every}
    repeated = {passage for passage in every if len(copies[passage]) > 1}

    def wider(j: int, k: int, size: int) -> list[str]:
        """With the token before, with the token behind."""
        left = text[j][k - 1 : k + size] if k else ""
        return [left, text[j][k : k + size + 1] if k + size < len(text[j]) else ""]

    def listed(passage: str) -> bool:
        size, at = len(passage), copies[passage]
        around = [wider(j, k, size) for j, k in at]
        maximal = all(len(set(side)) > 1 or side[0] == "" for side in zip(*around, strict=True))
        overlap = any(j == i and 0 < m - k < size for j, k in at for i, m in at)
        return maximal and (not overlap or any(not repeated & {*pair} for pair in around))

    return {passage for passage in repeated if listed(passage)}
