"""Networks with a window: which of them can be certified, and on which corpora."""

from __future__ import annotations

from rankone.corpus import Corpus
from rankone.errors import CorpusError, ModelError
from rankone.nn import Model
from rankone.nn.exact import ExactModel


def check_window(model: Model | ExactModel, corpus: Corpus) -> None:
    """Refuse a corpus with other contexts than the model's, and networks that are not understood.

    The context of a token is what its network can see: the window. A corpus that was read with
    another window has other marks where documents begin.
    """
    window = 0 if isinstance(model, ExactModel) else model.network.shape.window
    if corpus.window != window:
        seen = (f"a window of {n:,} tokens" if n else "no window" for n in (window, corpus.window))
        raise CorpusError(
            "the model has {}, but the corpus was read with {}".format(*seen),
            where=corpus.source,
            remedy="give the path of the text, which is then read as the model's own corpus was",
        )
    if window:
        raise ModelError(
            "networks with a window cannot be certified",
            remedy="memorize without window (--window), or compare what predict says",
        )
