"""Small corpora with consistent labels, and eq. 2 to 4 evaluated literally in mpmath."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import mpmath
from hypothesis import strategies as st

import exact_truth
from rankone import Corpus
from rankone.construct.theorem2.corollaries import ExactMemorized

WORDS = "abcd"


@st.composite
def sets(draw: st.DrawFn) -> Corpus:
    """Corollary 1: sequences of one length without repeats, labelled by token and set."""
    n = draw(st.integers(1, 3))
    chosen = draw(st.lists(st.sampled_from(list(combinations(WORDS, n))), min_size=1, max_size=4))
    labels = st.sampled_from("xyz")
    table = {(s, w): draw(labels) for s in sorted(set(chosen)) for w in s}
    orders = [draw(st.permutations(s)) for s in chosen]
    return Corpus.from_sentences(
        (list(order), [table[tuple(sorted(order)), w] for w in order]) for order in orders
    )


@st.composite
def sequences(draw: st.DrawFn, *, equal: bool) -> Corpus:
    """Corollary 2: sequences of one length or several, labelled by sequence and position."""
    length = st.integers(1, 3)
    n = draw(length)
    words = st.sampled_from(WORDS[:3])
    one = (
        st.lists(words, min_size=n, max_size=n)
        if equal
        else st.lists(words, min_size=1, max_size=3)
    )
    found = draw(st.lists(one.map(tuple), min_size=1, max_size=3, unique=True))
    return Corpus.from_sentences(
        (list(s), [draw(st.sampled_from("xyz")) for _ in s]) for s in found
    )


@st.composite
def prefixes(draw: st.DrawFn) -> Corpus:
    """Appendix C, causal: any sequences, labelled by what stands before the token and itself."""
    words = st.sampled_from(WORDS[:3])
    found = draw(st.lists(st.lists(words, min_size=1, max_size=3), min_size=1, max_size=3))
    table: dict[tuple[str, ...], str] = {}

    def label(prefix: tuple[str, ...]) -> str:
        if prefix not in table:
            table[prefix] = draw(st.sampled_from("xyz"))
        return table[prefix]

    return Corpus.from_sentences(
        (s, [label(tuple(s[: k + 1])) for k in range(len(s))]) for s in found
    )


def worst(found: ExactMemorized, corpus: Corpus) -> Any:
    """The largest |F(X + E) - Y| over all tokens and coordinates, every equation as printed."""
    largest, dps = mpmath.mpf(0), 2 * found.digits + 50
    with mpmath.workdps(dps):
        for sentence in corpus.sentences:
            ids = [corpus.vocabulary.index(word) for word in sentence.tokens]
            outputs = exact_truth.states(found.network, ids, dps)[-1]
            for label, output in zip(sentence.labels, outputs, strict=True):
                number = corpus.label_names.index(label) + 1
                largest = max([largest, *(abs(exact_truth.real(y) - number) for y in output)])
        return largest
