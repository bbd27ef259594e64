"""Small corpora with consistent labels, and eq. 2 to 4 evaluated literally in mpmath."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import mpmath
from hypothesis import strategies as st

from rankone import Corpus
from rankone.construct.theorem2.corollaries import ExactMemorized
from rankone.nn.arb_network import Vector

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
    network = found.network
    attention, readout = network.blocks[0]
    (head,) = attention.heads
    with mpmath.workdps(2 * found.digits + 50):
        key, query, value = (numbers(w[0]) for w in (head.key, head.query, head.value))
        output = [numbers(row)[0] for row in head.output]
        row, bias = numbers(readout.rows[0]), numbers(readout.bias)
        out = [numbers(w) for w in readout.out]
        assert readout.gains is not None
        assert all(gain == 1 for gain in readout.gains)
        largest = mpmath.mpf(0)
        for sentence in corpus.sentences:
            ids = [corpus.vocabulary.index(word) for word in sentence.tokens]
            z = [numbers(network.table[i]) for i in ids]
            if network.positions is not None:
                places = [numbers(network.positions[k]) for k in range(len(ids))]
                z = [
                    [a + b for a, b in zip(*pair, strict=True)]
                    for pair in zip(z, places, strict=True)
                ]
            for k, label in enumerate(sentence.labels):
                seen = z[: k + 1] if network.causal else z
                scores = [mpmath.fdot(key, x) * mpmath.fdot(query, z[k]) for x in seen]
                weights = [mpmath.exp(s - max(scores)) for s in scores]
                values = [mpmath.fdot(value, x) for x in seen]
                average = mpmath.fdot(weights, values) / mpmath.fsum(weights)
                h = [x + w * average for x, w in zip(z[k], output, strict=True)]
                hidden = [max(mpmath.fdot(row, h) + b, mpmath.mpf(0)) for b in bias]
                for i, x in enumerate(h):
                    y = x + mpmath.fdot(hidden, [w[i] for w in out])
                    largest = max(largest, abs(y - (corpus.label_names.index(label) + 1)))
        return largest


def numbers(vector: Vector) -> list[Any]:
    """Exact balls as mpmath numbers, none of their digits lost."""
    found = []
    for x in vector:
        assert x.is_exact()
        mantissa, exponent = (int(part) for part in x.man_exp())
        with mpmath.workprec(max(53, mantissa.bit_length())):
            found.append(mpmath.ldexp(mpmath.mpf(mantissa), exponent))
    return found
