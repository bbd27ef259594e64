"""Repeated passages: what stands in a text more than once, where, and how it goes on."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankone.arrays import Ints
from rankone.audit.findings import Row
from rankone.audit.pieces import piece
from rankone.audit.texts.branches import SEVERAL
from rankone.audit.texts.result import Passage
from rankone.audit.texts.sorting import Numbers
from rankone.audit.texts.suffixes import END, Suffixes, tokens_at
from rankone.corpus.corpus import Corpus
from rankone.corpus.tasks import END as END_TOKEN

LISTED = 100  # passages, and places of each
NEXT = 20  # different continuations that are listed
SHORTEST = 2  # tokens of a passage
TRIED = 20 * LISTED  # passages: of what repeats itself, many are no more than parts


def find_passages(corpus: Corpus, suffixes: Suffixes, limit: int = LISTED) -> tuple[Passage, ...]:
    """The longest passages that stand more than once, at most `limit`.

    A passage is as long as it can be: its copies are not all preceded by the same token, nor all
    followed by the same. Of what repeats itself, such as a row of dashes, only the whole is listed:
    a passage whose copies overlap must have one that is not inside of a longer repeated passage.
    """
    runs = _maximal(*_columns(suffixes), SHORTEST, TRIED)
    found = list[Passage]()
    longest: Numbers | None = None
    for first, end, length in runs[np.lexsort((runs[:, 0], -runs[:, 2]))].tolist():
        if len(found) == limit:
            break
        places = suffixes.order[first:end]
        if np.diff(np.sort(places)).min() < length:
            longest = _longest(*_columns(suffixes)) if longest is None else longest
            if not _alone(suffixes.text, longest, places, length):
                continue
        found.append(passage(corpus, suffixes, first, end, length))
    return tuple(found)


def _alone(text: Numbers, longest: Numbers, places: Numbers, length: int) -> bool:
    """Whether one of these copies is not inside of a longer repeated passage."""
    starts = (places == 0) | (text[places - 1] == END)
    return bool(((longest[places] == length) & (starts | (longest[places - 1] <= length))).any())


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
def _maximal(text: Numbers, order: Numbers, shared: Numbers, shortest: int, most: int) -> Ints:
    """The longest runs of suffixes that share so many tokens or more, but not the symbol before
    them nor the one behind, at most `most`: first rank, end, tokens.

    The end of a document is a symbol behind, but none before, and no token.
    """
    stack = np.empty((64, 3), np.int64)  # depth, first rank, symbol before all of the run
    found = np.empty((2 * most, 3), np.int64)
    top, taken = -1, 0
    for i in range(1, len(order) + 1):
        length, first = shared[i], i - 1
        before = text[order[first] - 1] if order[first] > 0 else END
        while top >= 0 and stack[top, 0] >= length:
            if stack[top, 2] != before:
                stack[top, 2] = SEVERAL
            if stack[top, 0] == length:
                break
            depth, first, before = stack[top]
            top -= 1
            outside = max(length, stack[top, 0] if top >= 0 else 0)
            tokens = depth - (text[order[first] + depth - 1] == END)
            if tokens >= shortest and tokens > outside and before in (SEVERAL, END):
                if taken == len(found):
                    found[:most] = found[np.argsort(-found[:, 2])[:most]]
                    taken, shortest = most, found[most - 1, 2]
                found[taken, 0], found[taken, 1], found[taken, 2] = first, i, tokens
                taken += 1
        if length > 0 and (top < 0 or stack[top, 0] < length):
            top += 1
            if top == len(stack):
                stack = np.concatenate((stack, np.empty_like(stack)))
            stack[top, 0], stack[top, 1], stack[top, 2] = length, first, before
    return found[np.argsort(-found[:taken, 2])[:most]]


@njit(nogil=True, cache=True)
def _longest(text: Numbers, order: Numbers, shared: Numbers) -> Numbers:
    """The tokens of the longest repeated passage that begins at each place."""
    longest = np.empty(len(text), np.int32)
    for i in range(len(order)):
        longest[order[i]] = max(shared[i], shared[i + 1])
    left = 0  # tokens to the end of the document
    for i in range(len(text) - 1, -1, -1):
        left = 0 if text[i] == END else left + 1
        longest[i] = min(longest[i], left)
    return longest
