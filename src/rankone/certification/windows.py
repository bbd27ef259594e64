"""Networks with a window: which of them can be certified, and on which corpora.

Such a network has positions E_k = k e. Certified are those in which nothing but keys reads e (they
are `placeless`): then a score q . k_l is l (q . W^K e) plus what the words give, and softmax does
not change if k is counted from where the window begins. So what the network makes of a window does
not depend on where it stands, and context ids are taken in the coordinates where e is 0: nothing
reads the others.
"""

from __future__ import annotations

import numpy as np

from rankone.arrays import Bools, Floats
from rankone.certification.attention_balls import array
from rankone.corpus import Corpus
from rankone.errors import CorpusError, ModelError
from rankone.nn import Model, TokenClassifier
from rankone.nn.exact import ExactModel
from rankone.nn.gated import GatedFeedForward


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
    if window and not (isinstance(model, Model) and placeless(model.network)):
        raise ModelError(
            "a network with a window in which more than keys depends on where a token stands: what "
            "it sees is not only the window",
            remedy="certify a network of one block whose queries, values, units and labels do not "
            "read the step (memorize --window)",
        )


def placeless(network: TokenClassifier) -> bool:
    """Whether nothing but keys reads the step of positions, and no head writes there."""
    s = steps(network)
    if network.shape.depth > 1:
        return False
    layer = network.blocks[0].feedforward
    if isinstance(layer, GatedFeedForward):
        units = bool(array(layer.gates)[:, s].any()) or bool(s[layer.reads.numpy()].any())
    else:
        units = bool(array(layer.expand().weight1)[:, s].any())
    heads = [head.map(array) for head in network.blocks[0].attention.heads]
    read = any(h.query[:, s].any() or h.value[:, s].any() or h.output[s].any() for h in heads)
    return not (units or read or array(network.head.weight)[:, s].any())


def steps(network: TokenClassifier) -> Bools:
    """The coordinates where the step is not 0; none without a window."""
    if network.step is None:
        return np.zeros(network.shape.dim, bool)
    return np.asarray(array(network.step) != 0)


def bare_table(network: TokenClassifier) -> Floats:
    """The token table without the coordinates of the step."""
    table, s = array(network.table), steps(network)
    return np.where(s, 0.0, table) if table[:, s].any() else table
