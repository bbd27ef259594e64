"""Keys of contexts: equal for equal contexts, in whichever part of a corpus they occur.

A key is 128 bits: sums of random numbers of words and places, modulo 2^64, twice. They are drawn
with a secret, so that no corpus can be made to collide; only the equality of keys depends on it.
The chance that two different contexts of 10^9 have the same key is below 10^-17. All parts must
number words in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Ints
from rankone.corpus import contexts
from rankone.corpus.contexts import Look
from rankone.corpus.corpus import Corpus

Keys = NDArray[np.uint64]  # (n, 2)
Maker = Callable[[Corpus, Ints, bytes], Keys]
Whole = Callable[[Corpus, bytes], Keys]
WORDS, PLACES, OWN = range(3)  # what random numbers are for
digest = partial(blake2b, digest_size=16)


def drawn(secret: bytes, what: int, count: int) -> Keys:
    """Random numbers, the first of which do not depend on how many there are."""
    seed = np.random.SeedSequence([int.from_bytes(secret), what])
    return np.random.PCG64(seed).random_raw(2 * count).reshape(-1, 2)


def of_sequences(corpus: Corpus, secret: bytes) -> Keys:
    """A key for each sentence: its words in their order."""
    return np.add.reduceat(_placed(corpus, secret), corpus.offsets[:-1])


def of_bags(bags_of: Callable[[Corpus], Ints], corpus: Corpus, secret: bytes) -> Keys:
    """A key for each sentence: its bag of words, the numbers of which `bags_of` gives."""
    bags = bags_of(corpus)
    words = drawn(secret, WORDS, len(corpus.vocabulary))[bags[:, 1]]
    words *= bags[:, 2:].view(np.uint64)
    starts = np.searchsorted(bags[:, 0], np.arange(corpus.n_sentences))
    return np.add.reduceat(words, starts)


def _placed(corpus: Corpus, secret: bytes) -> Keys:
    """A number for each token: that of its word times that of its place."""
    found = drawn(secret, WORDS, len(corpus.vocabulary))[corpus.token_ids]
    found *= (drawn(secret, PLACES, corpus.longest) | np.uint64(1))[corpus.positions]
    return found


def _with(keys: Keys, own: Ints, secret: bytes) -> Keys:
    """The keys of what is known together with a number of the token's own."""
    (factors,) = drawn(secret, OWN, 1) | np.uint64(1)
    return np.asarray(keys + own.view(np.uint64)[:, None] * factors)


def _of_nothing(_: Corpus, tokens: Ints, _secret: bytes) -> Keys:
    return np.zeros((len(tokens), 2), np.uint64)


def _of_token(corpus: Corpus, tokens: Ints, secret: bytes) -> Keys:
    return drawn(secret, WORDS, len(corpus.vocabulary))[corpus.token_ids[tokens]]


def _of_sentence(
    whole: Whole, column: Callable[[Corpus], Ints], corpus: Corpus, tokens: Ints, secret: bytes
) -> Keys:
    """The key of the sentence, with the word of the token or its place."""
    keys = whole(corpus, secret)[corpus.sentence_of[tokens]]
    return _with(keys, column(corpus)[tokens], secret)


def _of_prefix(corpus: Corpus, tokens: Ints, secret: bytes) -> Keys:
    sums = np.cumsum(_placed(corpus, secret), axis=0)
    before = np.concatenate([np.zeros((1, 2), np.uint64), sums[corpus.offsets[1:-1] - 1]])
    return np.asarray(sums[tokens] - before[corpus.sentence_of[tokens]])


def _of_prefix_proportions(corpus: Corpus, tokens: Ints, secret: bytes) -> Keys:
    sums = contexts.prefix_sums(corpus, secret)
    texts = (str(sums[i]).encode() for i in tokens.tolist())
    keys = _joined(digest(text, key=secret).digest() for text in texts)
    return _with(keys, corpus.token_ids[tokens], secret)


def _of_window(corpus: Corpus, tokens: Ints, secret: bytes, window: int) -> Keys:
    data, starts = corpus.token_ids.tobytes(), corpus.offsets[corpus.sentence_of[tokens]]
    firsts = np.maximum(starts, tokens + 1 - window)
    bounds = zip((8 * firsts).tolist(), (8 * tokens + 8).tolist(), strict=True)
    return _joined(digest(data[a:b], key=secret).digest() for a, b in bounds)


def _joined(digests: Iterable[bytes]) -> Keys:
    return np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)


# What all contexts of a sentence share: no other sentence has one of them unless it shares it, too.
SHARED: dict[Look, Whole] = {
    contexts.by_set: partial(of_bags, contexts.set_bags),
    contexts.by_multiset: partial(of_bags, contexts.multiset_bags),
    contexts.by_proportions: partial(of_bags, contexts.proportion_bags),
    contexts.by_sequence: of_sequences,
}


def _words(corpus: Corpus) -> Ints:
    return corpus.token_ids


def _places(corpus: Corpus) -> Ints:
    return corpus.positions


KEYS: dict[Look, Maker] = {
    contexts.by_nothing: _of_nothing,
    contexts.by_token: _of_token,
    **{
        look: partial(_of_sentence, whole, _places if whole is of_sequences else _words)
        for look, whole in SHARED.items()
    },
    contexts.by_prefix: _of_prefix,
    contexts.by_prefix_proportions: _of_prefix_proportions,
}


def maker_of(look: Look) -> Maker:
    """What makes the keys of these contexts."""
    if isinstance(look, partial) and look.func is contexts.by_window:
        return partial(_of_window, **look.keywords)
    return KEYS[look]


def numbered(keys: Keys) -> tuple[Ints, Ints]:
    """Equal keys get equal numbers: where each of the different keys first stands, in order of the
    keys, and the number of every key."""
    order = np.argsort(keys[:, 0])
    one, two = keys[order, 0], keys[order, 1]
    new = np.append(True, one[1:] != one[:-1])[: len(keys)]
    if ((two[1:] != two[:-1]) & ~new[1:]).any():  # half of a key is the same by chance
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        one, two = keys[order, 0], keys[order, 1]
        new = np.append(True, (one[1:] != one[:-1]) | (two[1:] != two[:-1]))
    number = np.empty(len(keys), np.int64)
    number[order] = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    first = np.minimum.reduceat(order, starts) if len(starts) else starts
    return first, number
