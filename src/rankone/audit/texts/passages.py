"""Repeated passages: what stands in a text more than once, where, and how it goes on."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankone.arrays import Ints
from rankone.audit.findings import Row
from rankone.audit.pieces import piece
from rankone.audit.texts.result import Passage
from rankone.audit.texts.sorting import Numbers
from rankone.audit.texts.suffixes import END, Suffixes, tokens_at
from rankone.corpus.corpus import Corpus
from rankone.corpus.tasks import END as END_TOKEN

LISTED = 100  # passages, and places of each
NEXT = 20  # different continuations that are listed
SHORTEST = 2  # tokens of a passage


def find_passages(corpus: Corpus, suffixes: Suffixes, limit: int = LISTED) -> tuple[Passage, ...]:
    """The longest passages that stand more than once, at most `limit`.

    A passage is listed if at least one of its copies is not inside of a longer repeated passage: no
    copy of what it and the token before it, or after it, say together is anywhere else. So it
    cannot be extended for all copies, and what is only ever a part of longer passages is left out.
    """
    ranks, lengths = _alone(*_columns(suffixes), SHORTEST)
    order = np.argsort(-lengths, kind="stable")
    found = list[Passage]()
    length, covered = 0, 0  # ranks below `covered` are in passages of this length
    for rank, size in zip(ranks[order].tolist(), lengths[order].tolist(), strict=True):
        if len(found) == limit:
            break
        if size != length:
            length, covered = size, 0
        if rank >= covered:
            first, covered = suffixes.run(rank, length)
            found.append(passage(corpus, suffixes, first, covered, length))
    return tuple(found)


def passage(corpus: Corpus, suffixes: Suffixes, first: int, end: int, length: int) -> Passage:
    """The first tokens of the suffixes of ranks `first` to `end` (not included)."""
    places = suffixes.order[first:end]
    tokens, _ = tokens_at(corpus, least(places, 1))
    start = int(tokens[0])
    following, others = continuations(suffixes, places, length)
    return Passage(
        length,
        len(places),
        rows_at(corpus, least(places, LISTED)),
        piece(corpus, start, start + length),
        {token_of(corpus, symbol): len(copies) for symbol, copies in following},
        others,
    )


def continuations(
    suffixes: Suffixes, places: Numbers, depth: int
) -> tuple[list[tuple[int, Numbers]], int]:
    """The symbols that follow `depth` tokens after these places, the most frequent first, each with
    its places, and how many more there are. Places are in the order of their suffixes."""
    symbols = suffixes.text[places + depth]
    starts = np.flatnonzero(np.diff(symbols, prepend=-1))
    ends = np.append(starts[1:], len(symbols))
    earliest = np.minimum.reduceat(places, starts)
    chosen = np.lexsort((earliest, starts - ends))[:NEXT]
    found = [
        (int(symbols[a]), places[a:b])
        for a, b in zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True)
    ]
    return found, len(starts) - len(found)


def least(places: Numbers, count: int) -> Ints:
    """The first of some places, in the order of the text."""
    if len(places) > count:
        places = np.partition(places, count)[:count]
    return np.sort(places).astype(np.int64)


def token_of(corpus: Corpus, symbol: int) -> str:
    return END_TOKEN if symbol == END else corpus.vocabulary[symbol - 1]


def rows_at(corpus: Corpus, places: Ints) -> tuple[Row, ...]:
    """Where these places of the text are; of documents made in Python, the number of each."""
    tokens, documents = tokens_at(corpus, places)
    files = [corpus.files[file] for file in corpus.file_ids[documents].tolist()]
    own = [file is not None for file in files]
    lines = corpus.lines[np.where(own, tokens, corpus.offsets[documents])]
    return tuple(map(Row, files, lines.tolist()))


def _columns(suffixes: Suffixes) -> tuple[Numbers, Numbers, Numbers]:
    return suffixes.text, suffixes.order, suffixes.shared


@njit(nogil=True, cache=True)
def _alone(
    text: Numbers, order: Numbers, shared: Numbers, shortest: int
) -> tuple[Numbers, Numbers]:
    """The places that begin a repeated passage of so many tokens which is not inside of a longer
    one: their ranks, and its tokens."""
    longest = np.empty(len(text), np.int32)  # repeated passage that begins at each place
    for i in range(len(order)):
        longest[order[i]] = max(shared[i], shared[i + 1])
    left = 0  # tokens to the end of the document
    for i in range(len(text) - 1, -1, -1):
        left = 0 if text[i] == END else left + 1
        longest[i] = min(longest[i], left)
    count = 0
    ranks, lengths = np.empty(len(order), np.int32), np.empty(len(order), np.int32)
    for i in range(len(order)):
        at = order[i]
        length = longest[at]
        begins = at == 0 or text[at - 1] == END
        if length >= shortest and (begins or longest[at - 1] <= length):
            ranks[count], lengths[count] = i, length
            count += 1
    return ranks[:count].copy(), lengths[:count].copy()
