"""What remains of sentences that a model with gates should not hold?

A forgotten context is one of these sentences that no sentence of the corpus has. If no unit of its
word and position exists, the network treats it as it treats any text that it never saw: it is
silent. The units of other groups that can be reached serve contexts of the corpus; one that adds
hardly anything (`IDLE`) to any context of the corpus serves none, and is idle. All this is proved
from the weights.

It does not show that the units that are left are what they would be without the forgotten ones.
That is shown by making the model again of the corpus alone, and comparing every byte; who has done
so enters it (``anew``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta

from rankone.arrays import Bools, Ints
from rankone.certification.gated_balls import GatedBalls
from rankone.corpus import Corpus
from rankone.corpus.contexts import visible_contexts
from rankone.corpus.parts import numbered
from rankone.corpus.rows import spelled_out
from rankone.errors import ModelError

if TYPE_CHECKING:
    from rankone.nn import Model

Count = Annotated[int, Meta(ge=0)]
IDLE = 2.0**-10  # of a logit


@dataclass(frozen=True)
class Forgotten:
    """``sentences`` are SHA-256 hashes of the words of the forgotten sentences, in order.

    Of their ``contexts`` the corpus has some too (``held``); of the others some are ``silent``. The
    rest can reach ``units``, ``idle`` of which serve no context of the corpus. ``anew``: made again
    of the corpus alone, the model has the same bytes (None: not tried).
    """

    sentences: tuple[str, ...]
    contexts: Count
    held: Count
    silent: Count
    units: Count
    idle: Count
    anew: bool | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is left that only the forgotten sentences could account for."""
        return self.idle == 0 and self.anew is not False


def find_forgotten(model: Model, corpus: Corpus, sentences: Corpus) -> Forgotten:
    """What the model has left of these sentences, beside the corpus that it should hold."""
    balls = GatedBalls.of(model.network)
    if balls is None:
        raise ModelError(
            "what a model has forgotten is known only for networks whose gates are proved",
            remedy="leave out forgotten (certify --forgotten), or give a model that memorize made "
            "with the construction gated",
        )
    firsts = contexts_beside(model, corpus, sentences)
    held = firsts < corpus.n_tokens
    own = np.unique(firsts[~held]) - corpus.n_tokens  # the first token of each forgotten context
    ids = model.rows(sentences.vocabulary)[sentences.token_ids[own]]
    where = sentences.positions[own]
    if model.positions:
        own, ids, where = (x[where < model.positions] for x in (own, ids, where))
    token, unit = balls.keeper.reached(ids, where, balls.gates)
    silent = len(np.unique(firsts[~held])) - len(np.unique(token))
    units = np.unique(unit)
    return Forgotten(
        sentences=tuple(hashed(sentences)),
        contexts=len(np.unique(firsts)),
        held=len(np.unique(firsts[held])),
        silent=silent,
        units=len(units),
        idle=int((~served(model, corpus, balls)[units]).sum()),
    )


def contexts_beside(model: Model, corpus: Corpus, sentences: Corpus) -> Ints:
    """For every token of the sentences the first one with its context, counted from the corpus on,
    behind which the sentences stand."""
    one, two = numbered([corpus, sentences])
    both = replace(
        one,
        token_ids=np.concatenate([one.token_ids, two.token_ids]),
        label_ids=np.concatenate([one.label_ids, two.label_ids]),
        offsets=np.concatenate([one.offsets, one.n_tokens + two.offsets[1:]]),
    )
    shape = model.network.shape
    found = visible_contexts(
        both, positions=bool(shape.positions), causal=shape.causal, window=shape.window
    )
    return found[corpus.n_tokens :]


def served(model: Model, corpus: Corpus, balls: GatedBalls) -> Bools:
    """Which units may add more than `IDLE` to some context of the corpus: for the others it is
    proved that they do not."""
    found = np.zeros(len(balls.bias), bool)
    most = np.abs(balls.amplitude) * balls.heights() * (1 + 2.0**-20)
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    for chunk in balls.run(rows, corpus.offsets):
        unit, seen = chunk.reached.unit, chunk.reached.seen
        found[unit[~(seen.upper() * most[unit] <= IDLE)]] = True
    return found


def hashed(sentences: Corpus) -> Sequence[str]:
    """The hash of each sentence's words."""
    words = [sentences.vocabulary[i] for i in sentences.token_ids.tolist()]
    bounds = sentences.offsets.tolist()
    return [sha256(spelled_out(tuple(words[a:b]))).hexdigest() for a, b in pairwise(bounds)]
