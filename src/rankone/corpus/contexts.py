"""Which tokens of a corpus look the same to a function of a given input.

Every function here returns one integer per token: the index of the FIRST token of the corpus that
has the same context. Tokens with equal numbers cannot be told apart by any function of that input,
whatever the function; this is what ceilings and targets are made of.
"""

from __future__ import annotations

import secrets
from collections import Counter
from itertools import pairwise
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.corpus.corpus import Corpus
from rankone.corpus.rows import Ints
from rankone.spans import spans


def visible_contexts(corpus: Corpus, *, positions: bool, causal: bool, depth: int = 1) -> Ints:
    """What attention can see of a token's surroundings.

    With positions the whole sentence (or, causal, its prefix) and the place in it. Without them
    only the share of each token; but in the second layer of a causal network tokens have seen
    prefixes, and with them the order.
    """
    if positions:
        return by_prefix(corpus) if causal else by_sequence(corpus)
    if causal:
        return by_prefix(corpus) if depth > 1 else by_prefix_proportions(corpus)
    return by_proportions(corpus)


def by_token(corpus: Corpus) -> Ints:
    """The token alone."""
    return _first(corpus.token_ids)


def by_set(corpus: Corpus) -> Ints:
    """The token and the set of tokens of its sentence (the condition of Corollary 1)."""
    return _by_bag(corpus, _bags(corpus)[:, :2])


def by_multiset(corpus: Corpus) -> Ints:
    """The token and how often each token occurs in its sentence."""
    return _by_bag(corpus, _bags(corpus))


def by_proportions(corpus: Corpus) -> Ints:
    """The token and the share of each token in its sentence: all that attention sees, unordered."""
    bags = _bags(corpus)
    starts = np.searchsorted(bags[:, 0], np.arange(corpus.n_sentences))
    bags[:, 2] //= np.gcd.reduceat(bags[:, 2], starts)[bags[:, 0]]
    return _by_bag(corpus, bags)


def by_prefix_proportions(corpus: Corpus) -> Ints:
    """The same for causal attention: shares within the sentence up to and including the token.

    A bag is known by the sum of 128-bit numbers drawn for its words; that two different bags of a
    corpus agree in it has a chance below 10^-20. They are drawn anew each time, so that no corpus
    can have been made for them; nothing else depends on them.
    """
    numbers = [secrets.randbits(128) for _ in corpus.vocabulary]
    seen: dict[tuple[int, int], int] = {}
    groups = np.empty(corpus.n_tokens, dtype=np.int64)
    ids, bounds = corpus.token_ids.tolist(), corpus.offsets.tolist()
    for a, b in pairwise(bounds):
        counts: Counter[int] = Counter()
        often: Counter[int] = Counter()  # how many words have a count: few counts, many words
        total = 0
        for i in range(a, b):
            token = ids[i]
            count = counts[token]
            counts[token] = count + 1
            often[count + 1] += 1
            often[count] -= 1
            if not often[count]:
                del often[count]
            total += numbers[token]
            common = 1 if often[1] else gcd(*often)
            # total is the sum over words of count times number, so it divides as the counts do
            groups[i] = seen.setdefault((token, total // common), i)
    return groups


def by_sequence(corpus: Corpus) -> Ints:
    """The whole sentence and the position in it (the condition of Corollary 2)."""
    first = _first_copy(corpus)
    return np.repeat(corpus.offsets[first], corpus.lengths) + corpus.positions


def by_prefix(corpus: Corpus) -> Ints:
    """The sentence up to and including the token, read off a trie that is grown level by level.

    A prefix that no other sentence shares has its own tokens from there on, and is left.
    """
    groups = np.arange(corpus.n_tokens)
    order = np.argsort(-corpus.lengths, kind="stable")
    starts, lengths = corpus.offsets[order], corpus.lengths[order]
    parents = np.zeros(len(order), dtype=np.int64)
    for level in range(corpus.longest):
        alive = int(np.searchsorted(-lengths, -level))
        if alive < 2:
            break
        tokens = starts[:alive] + level
        pairs = parents[:alive] * len(corpus.vocabulary) + corpus.token_ids[tokens]
        _, parents, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        first = np.full(len(counts), corpus.n_tokens, dtype=np.int64)
        np.minimum.at(first, parents, tokens)
        groups[tokens] = first[parents]
        shared = counts[parents] > 1
        starts, lengths, parents = starts[:alive][shared], lengths[:alive][shared], parents[shared]
    return groups


def _first(keys: NDArray[np.integer[Any]]) -> Ints:
    """For each key, the first place where it stands: like np.unique, but with an unstable sort."""
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    first = np.empty(len(keys), dtype=np.int64)
    lengths = np.diff(np.append(starts, len(keys)))
    first[order] = np.repeat(np.minimum.reduceat(order, starts), lengths)
    return first


def _first_copy(corpus: Corpus) -> Ints:
    """For each sentence, the first one that equals it.

    Sentences are compared by a 64-bit number first; those that agree in it are then compared token
    by token, and if two of them differ after all, everything is done over by comparing in full.
    """
    rng = np.random.default_rng(0)
    words = rng.integers(1 << 63, size=len(corpus.vocabulary), dtype=np.uint64)
    places = rng.integers(1 << 63, size=corpus.longest, dtype=np.uint64) | np.uint64(1)
    numbers = np.empty(corpus.n_sentences, dtype=np.uint64)
    for a, b in spans(corpus.offsets):
        start, stop = corpus.offsets[a], corpus.offsets[b]
        mixed = np.take(words, corpus.token_ids[start:stop])
        mixed *= np.take(places, corpus.positions[start:stop])
        np.add.reduceat(mixed, corpus.offsets[a:b] - start, out=numbers[a:b])
    first = _first(numbers)
    copies = np.flatnonzero(first != np.arange(len(first)))
    lengths = corpus.lengths[copies]
    if (lengths == corpus.lengths[first[copies]]).all():
        inner = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        here, there = (np.repeat(corpus.offsets[at], lengths) for at in (copies, first[copies]))
        if (corpus.token_ids[here + inner] == corpus.token_ids[there + inner]).all():
            return first
    return _first_equal(corpus.token_ids, corpus.offsets)


def _first_equal(values: Ints, offsets: Ints) -> Ints:
    """For each run of `values`, the first run that equals it."""
    data, seen = values.tobytes(), dict[bytes, int]()
    bounds = (offsets * values.itemsize).tolist()
    runs = enumerate(pairwise(bounds))
    return np.array([seen.setdefault(data[a:b], i) for i, (a, b) in runs], dtype=np.int64)


def _bags(corpus: Corpus) -> Ints:
    """Rows (sentence, token, count), sorted: the bag of words of every sentence."""
    size = len(corpus.vocabulary)
    pairs, counts = np.unique(corpus.sentence_of * size + corpus.token_ids, return_counts=True)
    return np.stack([pairs // size, pairs % size, counts], axis=1)


def _by_bag(corpus: Corpus, bags: Ints) -> Ints:
    sentences, rest = bags[:, 0], np.ascontiguousarray(bags[:, 1:])
    bounds = np.searchsorted(sentences, np.arange(corpus.n_sentences + 1)) * rest.shape[1]
    bag = _first_equal(rest.reshape(-1), bounds)
    return _first(bag[corpus.sentence_of] * len(corpus.vocabulary) + corpus.token_ids)
