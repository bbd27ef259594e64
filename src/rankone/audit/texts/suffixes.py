"""A corpus of texts as one text, its suffixes in order, and how much neighbours share.

All that is asked of a text is read off these: windows that are equal are neighbours, whatever
their size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from rankone.arrays import Ints
from rankone.audit.texts.sorting import Numbers, sorted_suffixes
from rankone.corpus.corpus import Corpus
from rankone.errors import SizeError

END = 0  # the symbol after the last token of a document
MOST = 1 << 30  # symbols: numbers of tokens and places are kept in 32 bits, one of them a sign


@dataclass(frozen=True)
class Suffixes:
    """The suffixes that begin at ``order`` are in order, and the first ``shared[i]`` symbols of the
    one at ``order[i]`` are those of the one before it, the end of a document included, but nothing
    beyond. ``shared`` has a 0 at both ends.

    Symbol k of ``text`` is 0 for the end of a document, else the number of a token plus 1.
    """

    text: Numbers
    order: Numbers
    shared: Numbers

    @classmethod
    def of(cls, corpus: Corpus) -> Suffixes:
        """Takes 21 to 24 bytes a token while it works, of which 12 stay."""
        size = corpus.n_tokens + corpus.n_sentences
        if size > MOST:
            raise SizeError(
                f"{size:,} tokens and ends of documents are more than can be sorted",
                where=corpus.source,
                remedy=f"give a text of at most {MOST:,}",
            )
        text = np.full(size, END, dtype=np.int32)
        inside = np.ones(size, dtype=bool)
        inside[corpus.offsets[1:] + np.arange(corpus.n_sentences)] = False
        text[inside] = corpus.token_ids + 1
        del inside
        order = sorted_suffixes(text, len(corpus.vocabulary) + 1)
        return cls(text, order, _shared(text, order))

    @property
    def documents(self) -> Suffixes:
        """Of the suffixes only whole documents: what they share are prefixes."""
        begins = np.empty(len(self.text), dtype=bool)
        begins[0] = True
        begins[1:] = self.text[:-1] == END
        at = np.flatnonzero(begins[self.order])
        shared = np.zeros(len(at) + 1, dtype=np.int32)
        if len(at) > 1:
            between = self.shared[: at[-1] + 1]
            shared[1:-1] = np.minimum.reduceat(between, at[:-1] + 1)
        return Suffixes(self.text, self.order[at], shared)

    def run(self, rank: int, length: int) -> tuple[int, int]:
        """First and end of those that share so many symbols with the one of this rank."""
        first, end = _run(self.shared, rank, length)
        return int(first), int(end)


def tokens_at(corpus: Corpus, places: Ints) -> tuple[Ints, Ints]:
    """Of places in the text: the number of the token there, and of its document."""
    starts = corpus.offsets[:-1] + np.arange(corpus.n_sentences)
    documents = np.searchsorted(starts, places, side="right") - 1
    return places - documents, documents


@njit(nogil=True, cache=True)
def _shared(text: Numbers, order: Numbers) -> Numbers:
    """Kasai et al. 2001: what a suffix shares with the one before it in order is at least what the
    suffix that begins one symbol earlier shares, less one."""
    before = np.empty(len(text), np.int32)
    before[order[0]] = -1
    for i in range(1, len(order)):
        before[order[i]] = order[i - 1]
    length = 0
    for here in range(len(text)):
        there = before[here]
        length = max(length - 1, 0)
        if there < 0:
            length = 0
        elif length == 0 or text[here + length - 1] != END:
            while text[here + length] == text[there + length]:
                length += 1
                if text[here + length - 1] == END:
                    break
        before[here] = length  # from here on: what is shared
    shared = np.empty(len(order) + 1, np.int32)
    for i in range(len(order)):
        shared[i] = before[order[i]]
    shared[-1] = 0
    return shared


@njit(nogil=True, cache=True)
def _run(shared: Numbers, rank: int, length: int) -> tuple[int, int]:
    first, end = rank, rank + 1
    while shared[first] >= length:
        first -= 1
    while shared[end] >= length:
        end += 1
    return first, end
