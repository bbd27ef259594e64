"""From next tokens to documents: what greedy decoding recites, by induction.

Let a causal network give every token of a document the label that the document has there: the token
that follows, and the end after the last. Greedy decoding that has put out a beginning of the
document sees just this beginning (of positions, too), whose last token has a context of the
document; so it puts out the next token, and so on to the end. A window makes no difference but that
the beginning may be cut off: after any K tokens of the document or more, the last token sees the
window of K tokens that it has in the document, wherever they begin, and so does every token that
follows. That a label is proved to lead is needed; the largest of two equal logits is not a proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankone.arrays import Bools
from rankone.corpus import Corpus
from rankone.corpus.tasks import asks_next


@dataclass(frozen=True)
class Recited:
    """``recited`` of the ``documents`` are put out whole; at ``branches`` tokens it is proved that
    greedy decoding goes on with another one."""

    documents: int
    recited: int
    branches: int

    @classmethod
    def of(cls, corpus: Corpus, causal: bool, right: Bools, wrong: Bools) -> Recited | None:
        """From the tokens whose next token is proved `right` or `wrong`; None for corpora that ask
        for something else, and networks that see what follows."""
        if not asks_next(corpus.task) or not causal:
            return None
        fine = right | (corpus.label_ids < 0)
        whole = np.logical_and.reduceat(fine, corpus.offsets[:-1])
        return cls(corpus.n_sentences, int(whole.sum()), int(wrong.sum()))
