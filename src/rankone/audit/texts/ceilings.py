"""Ceilings for text: the best that any model of the next token can do, by how much it sees."""

from __future__ import annotations

import numpy as np

from rankone.audit.texts.branches import Branches, Lost
from rankone.audit.texts.result import TextCeiling
from rankone.corpus.corpus import Corpus
from rankone.corpus.splitting import WIDEST


def windows_up_to(last: int) -> list[int]:
    """1, 2, 4, ... and the last.

    >>> windows_up_to(12)
    [1, 2, 4, 8, 12]
    """
    return sorted({1 << i for i in range(last.bit_length())} | {last})


def enough(inside: Branches) -> int:
    """The least window whose contexts with several continuations are those of prefixes.

    A longer window parts two places only if they are equal so far, part here, and are preceded by
    different tokens.
    """
    return inside.limit[1] + 1


def text_ceilings(corpus: Corpus, inside: Branches, wholes: Branches) -> tuple[TextCeiling, ...]:
    """A row for each window, then one for prefixes. The windows are 1, 2, 4, ... and that of the
    corpus; if it has none, up to the first that says as much as prefixes.

    A window of k is k tokens from anywhere, or a document of which there are less so far:
    `inside` counts the first, `wholes` the second.
    """
    windows = windows_up_to(corpus.window or min(_power(enough(inside)), WIDEST))
    lengths, tokens = np.sort(corpus.lengths), corpus.n_tokens
    reach = min(windows[-1], int(lengths[-1]))
    # Different prefixes of each length: those of all documents that are so long, but for copies.
    documents = len(lengths) - np.searchsorted(lengths, np.arange(reach + 1))
    prefixes = np.cumsum((documents - wholes.sharing[: reach + 1])[1:])
    rows = []
    for k in windows:
        long = lengths[lengths >= k]
        full = int((long - (k - 1)).sum() - inside.sharing[k])
        contexts = full + int(prefixes[min(k - 1, reach) - 1] if k > 1 else 0)
        rows.append(_row(corpus, k, contexts, inside.at(k) + wholes.below(k)))
    return (*rows, _row(corpus, 0, tokens - wholes.shared, wholes.below()))


def _row(corpus: Corpus, window: int, contexts: int, lost: Lost) -> TextCeiling:
    tokens = corpus.n_tokens
    return TextCeiling(
        context="window" if window else "prefix",
        window=window,
        contexts=contexts,
        branching=lost.runs,
        tokens=tokens,
        determined=tokens - lost.tokens,
        errors=lost.errors,
        bits=lost.bits / tokens,
    )


def _power(k: int) -> int:
    """The least power of two that is not less.

    >>> [_power(k) for k in (1, 2, 3, 64, 65)]
    [1, 2, 4, 64, 128]
    """
    return 1 << (k - 1).bit_length()
