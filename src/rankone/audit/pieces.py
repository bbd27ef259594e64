"""Texts for people to read: pieces of them, short, as they stood in the file, without marks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankone.corpus.corpus import Corpus
from rankone.corpus.rows import Words
from rankone.corpus.tasks import asks_next
from rankone.corpus.tokenizers import tokenizer_of

LETTERS = 160  # of a piece
TOKENS = 100  # that are joined for either end of it
GAP = " ... "


def piece(corpus: Corpus, first: int, end: int, *, of: str = "both") -> str:
    """The tokens from `first` to `end` (not included) as text; of a long piece both ends, the
    beginning ("head") or the end ("tail")."""
    if end - first <= 2 * TOKENS:
        text = joined(corpus, first, end)
        if len(text) <= LETTERS:
            return text
        head = tail = text
    else:
        head, tail = joined(corpus, first, first + TOKENS), joined(corpus, end - TOKENS, end)
    half = LETTERS // 2
    if of == "head":
        return head[:LETTERS].rstrip() + GAP.rstrip()
    if of == "tail":
        return GAP.lstrip() + tail[-LETTERS:].lstrip()
    return head[:half].rstrip() + GAP + tail[-half:].lstrip()


def unmarked(corpus: Corpus) -> Corpus:
    """A text without the marks that ask for nothing, such as one where a document begins: they are
    for models, and no part of the text. Any other corpus as it is."""
    asked = corpus.label_ids >= 0
    if not asks_next(corpus.task) or asked.all():
        return corpus
    words = Words.renamed(list(corpus.vocabulary), corpus.token_ids[asked])
    lengths = np.add.reduceat(asked.astype(np.int64), corpus.offsets[:-1])
    return replace(
        corpus,
        vocabulary=tuple(words.index),
        token_ids=words.numbers(),
        label_ids=corpus.label_ids[asked],
        offsets=np.append(0, np.cumsum(lengths)),
        lines=corpus.lines[asked],
    )


def joined(corpus: Corpus, first: int, end: int) -> str:
    """These tokens as the text that they were; half a character at an end becomes U+FFFD."""
    words = [corpus.vocabulary[i] for i in corpus.token_ids[first:end].tolist()]
    name = corpus.reading.get("tokenizer")
    if name is None:  # tokens from columns
        return " ".join(words)
    tokenizer = tokenizer_of(name)
    return tokenizer.encode(tokenizer.join(words)).decode("utf-8", "replace")
