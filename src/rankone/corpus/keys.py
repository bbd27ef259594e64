"""Keys of contexts: equal for equal contexts, in whichever part of a corpus they occur.

A key is a 128-bit hash of what the context contains of the sentence, and a number for the token
itself (its word, or its position). The hash has a secret key, so that no corpus can be made to
collide; only the equality of keys depends on it. All parts must number words in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Ints
from rankone.corpus import contexts
from rankone.corpus.contexts import Look
from rankone.corpus.corpus import Corpus

Keys = NDArray[np.void]
Maker = Callable[[Corpus, Ints, bytes], Keys]
digest = partial(blake2b, digest_size=16)


def _joined(digests: Iterable[bytes] | Ints, own: Ints | int) -> Keys:
    """Digests and numbers side by side, 24 bytes each."""
    if not isinstance(digests, np.ndarray):
        digests = np.frombuffer(b"".join(digests), dtype=np.int64).reshape(-1, 2)
    columns = np.empty((len(digests), 3), dtype=np.int64)
    columns[:, :2], columns[:, 2] = digests, own
    return columns.view("V24").reshape(-1)


def _of_nothing(_: Corpus, tokens: Ints, _key: bytes) -> Keys:
    return _joined(np.zeros((len(tokens), 2), dtype=np.int64), 0)


def _of_token(corpus: Corpus, tokens: Ints, _key: bytes) -> Keys:
    return _joined(np.zeros((len(tokens), 2), dtype=np.int64), corpus.token_ids[tokens])


def _of_sequence(corpus: Corpus, tokens: Ints, key: bytes) -> Keys:
    hashed = _hashed(corpus.token_ids, corpus.offsets, key)
    return _joined(hashed[corpus.sentence_of[tokens]], corpus.positions[tokens])


def _of_bag(
    runs: Callable[[Corpus], tuple[Ints, Ints]], corpus: Corpus, tokens: Ints, key: bytes
) -> Keys:
    hashed = _hashed(*runs(corpus), key)
    return _joined(hashed[corpus.sentence_of[tokens]], corpus.token_ids[tokens])


def _of_prefix(corpus: Corpus, tokens: Ints, key: bytes) -> Keys:
    def each() -> Iterator[bytes]:
        data, wanted = corpus.token_ids.tobytes(), np.zeros(corpus.n_tokens, dtype=bool)
        wanted[tokens] = True
        asked = wanted.tolist()
        for a, b in pairwise(corpus.offsets.tolist()):
            so_far = digest(key=key)
            for i in range(a, b):
                so_far.update(data[8 * i : 8 * i + 8])
                if asked[i]:
                    yield so_far.digest()

    return _joined(each(), 0)


def _of_prefix_proportions(corpus: Corpus, tokens: Ints, key: bytes) -> Keys:
    sums = contexts.prefix_sums(corpus, key)
    texts = (str(sums[i]).encode() for i in tokens.tolist())
    return _joined((digest(text, key=key).digest() for text in texts), corpus.token_ids[tokens])


def _of_window(corpus: Corpus, tokens: Ints, key: bytes, window: int) -> Keys:
    data, starts = corpus.token_ids.tobytes(), corpus.offsets[corpus.sentence_of[tokens]]
    firsts = np.maximum(starts, tokens + 1 - window)
    bounds = zip((8 * firsts).tolist(), (8 * tokens + 8).tolist(), strict=True)
    return _joined((digest(data[a:b], key=key).digest() for a, b in bounds), 0)


def _hashed(values: Ints, bounds: Ints, key: bytes) -> Ints:
    """One hash for each run of values, as two numbers."""
    data = values.tobytes()
    runs = pairwise((bounds * values.itemsize).tolist())
    hashes = b"".join(digest(data[a:b], key=key).digest() for a, b in runs)
    return np.frombuffer(hashes, dtype=np.int64).reshape(-1, 2)


KEYS: dict[Look, Maker] = {
    contexts.by_nothing: _of_nothing,
    contexts.by_token: _of_token,
    contexts.by_set: partial(_of_bag, contexts.set_runs),
    contexts.by_multiset: partial(_of_bag, contexts.multiset_runs),
    contexts.by_proportions: partial(_of_bag, contexts.proportion_runs),
    contexts.by_sequence: _of_sequence,
    contexts.by_prefix: _of_prefix,
    contexts.by_prefix_proportions: _of_prefix_proportions,
}


def maker_of(look: Look) -> Maker:
    """What makes the keys of these contexts."""
    if isinstance(look, partial) and look.func is contexts.by_window:
        return partial(_of_window, **look.keywords)
    return KEYS[look]
