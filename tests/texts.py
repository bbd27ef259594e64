"""Small texts for tests, and what is asked of them counted by brute force."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import log2

from hypothesis import strategies as st

from rankone import Corpus
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
    return Corpus.from_texts(text, tokenizer="characters", window=window)


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
    """What stands more than once, with a copy that is not inside of a longer one that does."""
    every = {
        document[a:b]
        for document in text
        for a in range(len(document))
        for b in range(a + 1, len(document) + 1)
    }
    repeated = {passage for passage in every if len(places(text, passage)) > 1}

    def alone(j: int, k: int, size: int) -> bool:
        document = text[j]
        wider = [document[k - 1 : k + size]] if k else []
        wider += [document[k : k + size + 1]] if k + size < len(document) else []
        return not repeated & set(wider)

    return {
        passage
        for passage in repeated
        if len(passage) >= least
        and any(alone(j, k, len(passage)) for j, k in places(text, passage))
    }
