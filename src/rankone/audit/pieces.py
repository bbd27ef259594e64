"""Pieces of a text for people to read: short, and as they stood in the file."""

from __future__ import annotations

from rankone.corpus.corpus import Corpus
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


def joined(corpus: Corpus, first: int, end: int) -> str:
    """These tokens as the text that they were; half a character at an end becomes U+FFFD."""
    words = [corpus.vocabulary[i] for i in corpus.token_ids[first:end].tolist()]
    name = corpus.reading.get("tokenizer")
    if name is None:  # tokens from columns
        return " ".join(words)
    tokenizer = tokenizer_of(name)
    return tokenizer.encode(tokenizer.join(words)).decode("utf-8", "replace")


def unit(corpus: Corpus) -> str:
    """What the numbers of rows count: lines, or documents that were made in Python."""
    return "document" if set(corpus.files) == {None} else "line"
