"""Which tokens of a corpus look the same to a function of a given input.

Every function ``by_...`` returns one integer per token: the index of the FIRST token of the corpus
that has the same context. No function of that input can tell tokens with equal numbers apart; this
is what ceilings and targets are made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import shake_256
from itertools import pairwise
from math import gcd
from secrets import token_bytes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Ints
from rankone.corpus.corpus import Corpus
from rankone.spans import places, spans

Look = Callable[[Corpus], Ints]


def visible(*, positions: bool, causal: bool, depth: int = 1, window: int = 0) -> Look:
    """What attention can see of a token's surroundings.

    With positions, it sees the whole sentence (if causal, its prefix) and the place in it. Without
    them, it sees only the share of each token; but from the second layer of a causal network on,
    tokens have seen prefixes, and thus much of the order. With a `window`, it sees so many tokens,
    the last of which is the token itself, and in which order they come.
    """
    if window:
        return partial(by_window, window=window)
    if positions:
        return by_prefix if causal else by_sequence
    if causal:
        return partial(nested_proportions, depth=depth) if depth > 1 else by_prefix_proportions
    return by_proportions


def visible_contexts(
    corpus: Corpus, *, positions: bool, causal: bool, depth: int = 1, window: int = 0
) -> Ints:
    """The contexts that attention can tell apart."""
    return visible(positions=positions, causal=causal, depth=depth, window=window)(corpus)


def by_nothing(corpus: Corpus) -> Ints:
    """One context for all tokens: the function is a constant."""
    return np.zeros(corpus.n_tokens, dtype=np.int64)


def by_token(corpus: Corpus) -> Ints:
    """The token alone."""
    return _first(corpus.token_ids)


def by_set(corpus: Corpus) -> Ints:
    """The token and the set of tokens of its sentence (the condition of Corollary 1)."""
    return _by_bag(corpus, set_bags(corpus))


def by_multiset(corpus: Corpus) -> Ints:
    """The token and how often each token occurs in its sentence."""
    return _by_bag(corpus, multiset_bags(corpus))


def by_proportions(corpus: Corpus) -> Ints:
    """The token and the share of each token in its sentence: all that attention sees, unordered."""
    return _by_bag(corpus, proportion_bags(corpus))


def by_prefix_proportions(corpus: Corpus) -> Ints:
    """The same for causal attention: shares in the sentence up to and including the token."""
    seen: dict[tuple[int, int], int] = {}
    pairs = zip(corpus.token_ids.tolist(), prefix_sums(corpus, token_bytes(16)), strict=True)
    return np.array([seen.setdefault(pair, i) for i, pair in enumerate(pairs)], dtype=np.int64)


def nested_proportions(corpus: Corpus, depth: int) -> Ints:
    """The same for several layers: each sees the shares of what the one before it told apart.

    Deep networks come to see almost the whole prefix, but not how often its first word stands
    there at the beginning: all these tokens have seen nothing but themselves.
    """
    found = by_prefix_proportions(corpus)
    for _ in range(1, depth):
        classes, ids = np.unique(found, return_inverse=True)
        told = replace(corpus, token_ids=ids, vocabulary=tuple(map(str, classes.tolist())))
        finer = by_prefix_proportions(told)
        if np.array_equal(finer, found):
            break
        found = finer
    return found


def prefix_sums(corpus: Corpus, key: bytes) -> list[int]:
    """A number for the shares in the sentence up to and including each token.

    A bag of words is identified by the sum of 128-bit numbers of its words; the probability that
    two different bags of a corpus have the same sum is below 10^-20. The numbers depend on a key
    that is drawn each time, so that no corpus can be made to collide; nothing else depends on them.
    """
    drawn = shake_256(key).digest(16 * len(corpus.vocabulary))
    numbers = [int.from_bytes(drawn[i : i + 16]) for i in range(0, len(drawn), 16)]
    sums: list[int] = []
    ids, bounds = corpus.token_ids.tolist(), corpus.offsets.tolist()
    for a, b in pairwise(bounds):
        counts: Counter[int] = Counter()
        often: Counter[int] = Counter()  # number of words with each count: few counts, many words
        total = 0
        for token in ids[a:b]:
            count = counts[token]
            counts[token] = count + 1
            often[count + 1] += 1
            often[count] -= 1
            if not often[count]:
                del often[count]
            total += numbers[token]
            common = 1 if often[1] else gcd(*often)
            # total is the sum over words of count times number: a divisor of all counts divides it
            sums.append(total // common)
    return sums


def by_sequence(corpus: Corpus) -> Ints:
    """The whole sentence and the position in it (the condition of Corollary 2)."""
    first = _first_copy(corpus)
    return np.repeat(corpus.offsets[first], corpus.lengths) + corpus.positions


def by_prefix(corpus: Corpus) -> Ints:
    """The sentence up to and including the token, from a trie that grows level by level.

    Once no other sentence shares its prefix, a sentence needs no more levels.
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


def by_window(corpus: Corpus, window: int) -> Ints:
    """The token and those before it, `window` tokens in all; fewer where the sentence begins."""
    *_, (size, classes) = doubled_windows(corpus, window)
    if size < window:
        classes = _with_earlier(corpus, classes, window - size)
    return _first(classes)


def doubled_windows(corpus: Corpus, longest: int) -> Iterator[tuple[int, Ints]]:
    """Windows of 1, 2, 4, ... tokens up to `longest`: (size, a number per token that is the same
    for equal windows). Each comes from the one before it by one sort."""
    size, classes = 1, corpus.token_ids
    yield size, classes
    while 2 * size <= longest:
        classes = _with_earlier(corpus, classes, size)
        size *= 2
        yield size, classes


def _with_earlier(corpus: Corpus, classes: Ints, shift: int) -> Ints:
    """Numbers for the windows that end at each token and, if its sentence has begun by then,
    `shift` tokens before it."""
    earlier = np.zeros(len(classes), dtype=np.int64)
    earlier[shift:] = classes[:-shift] + 1 if shift < len(classes) else 0
    earlier[corpus.positions < shift] = 0
    pairs = earlier * (int(classes.max()) + 1) + classes
    return np.asarray(np.unique(pairs, return_inverse=True)[1])


def _first(keys: NDArray[np.integer[Any]]) -> Ints:
    """For each key, the first place where it occurs: np.unique, but with an unstable sort."""
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    first = np.empty(len(keys), dtype=np.int64)
    lengths = np.diff(np.append(starts, len(keys)))
    first[order] = np.repeat(np.minimum.reduceat(order, starts), lengths)
    return first


def _first_copy(corpus: Corpus) -> Ints:
    """For each sentence, the first one that equals it.

    Sentences are first compared by a 64-bit hash. Those with equal hashes are compared token by
    token; if two of them differ after all, all sentences are compared in full.
    """
    rng = np.random.default_rng(0)
    words = rng.integers(1 << 63, size=len(corpus.vocabulary), dtype=np.uint64)
    factors = rng.integers(1 << 63, size=corpus.longest, dtype=np.uint64) | np.uint64(1)
    numbers = np.empty(corpus.n_sentences, dtype=np.uint64)
    for a, b in spans(corpus.offsets):
        start, stop = corpus.offsets[a], corpus.offsets[b]
        mixed = np.take(words, corpus.token_ids[start:stop])
        mixed *= np.take(factors, corpus.positions[start:stop])
        np.add.reduceat(mixed, corpus.offsets[a:b] - start, out=numbers[a:b])
    first = _first(numbers)
    copies = np.flatnonzero(first != np.arange(len(first)))
    lengths = corpus.lengths[copies]
    if (lengths == corpus.lengths[first[copies]]).all():
        inner = places(np.append(0, np.cumsum(lengths)))
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


def multiset_bags(corpus: Corpus) -> Ints:
    """Rows (sentence, token, count), sorted: the bag of words of every sentence."""
    size = len(corpus.vocabulary)
    pairs, counts = np.unique(corpus.sentence_of * size + corpus.token_ids, return_counts=True)
    return np.stack([pairs // size, pairs % size, counts], axis=1)


def set_bags(corpus: Corpus) -> Ints:
    """The same with every count 1."""
    bags = multiset_bags(corpus)
    bags[:, 2] = 1
    return bags


def proportion_bags(corpus: Corpus) -> Ints:
    """The same with counts divided by their greatest common divisor."""
    bags = multiset_bags(corpus)
    starts = np.searchsorted(bags[:, 0], np.arange(corpus.n_sentences))
    bags[:, 2] //= np.gcd.reduceat(bags[:, 2], starts)[bags[:, 0]]
    return bags


def _by_bag(corpus: Corpus, bags: Ints) -> Ints:
    bounds = 2 * np.searchsorted(bags[:, 0], np.arange(corpus.n_sentences + 1))
    bag = _first_equal(np.ascontiguousarray(bags[:, 1:]).reshape(-1), bounds)
    return _first(bag[corpus.sentence_of] * len(corpus.vocabulary) + corpus.token_ids)


def sentences_with_repeats(corpus: Corpus) -> int:
    """How many sentences hold some token more than once."""
    pairs = np.sort(corpus.sentence_of * len(corpus.vocabulary) + corpus.token_ids)
    again = pairs[1:][pairs[1:] == pairs[:-1]] // len(corpus.vocabulary)
    return len(np.unique(again))
