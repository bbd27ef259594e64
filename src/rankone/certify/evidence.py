"""What float64 says of every token, with its error: the evidence that claims are judged by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankone.certify.floats import FloatBalls
from rankone.certify.labels import Decoded, Head
from rankone.certify.mapping import ContextIds
from rankone.certify.rounding import Balls, Floats, Ints, linear
from rankone.corpus import Corpus
from rankone.errors import CorpusError
from rankone.nn import Model, TokenClassifier
from rankone.nn.model import check_lengths


def align(model: Model, corpus: Corpus) -> tuple[Ints, Ints]:
    """Tokens as rows of the model's table and labels as the model numbers them.

    Refuses a corpus with words, labels or lengths that the model does not have: nothing could be
    said of them.
    """
    rows = model.rows(corpus.vocabulary)
    _known(corpus, rows < len(model.vocabulary), corpus.token_ids, corpus.vocabulary, "word")
    number = {name: i for i, name in enumerate(model.labels)}
    labels = np.array([number.get(name, -1) for name in corpus.label_names], dtype=np.int64)
    _known(corpus, labels >= 0, corpus.label_ids, corpus.label_names, "label")
    starts = corpus.lines[corpus.offsets[:-1]]
    check_lengths(
        corpus.lengths,
        model.network.shape.positions,
        lambda j: f"{corpus.source}, line {starts[j]}",
    )
    return rows[corpus.token_ids], labels[corpus.label_ids]


def _known(
    corpus: Corpus, known: np.ndarray, column: Ints, names: tuple[str, ...], kind: str
) -> None:
    if known.all():
        return
    first = int((~known[column]).argmax())
    count = int((~known).sum())
    more = f", and {count - 1:,} more" if count > 1 else ""
    raise CorpusError(
        f"the {kind} {names[column[first]]!r}{more}: the model has no such {kind}",
        where=f"{corpus.source}, line {corpus.lines[first]}",
        remedy="certify a model on the corpus it was made for, read in the same way "
        "(--scheme, --lower, columns)",
    )


def evaluate(
    network: TokenClassifier,
    rows: Ints,
    offsets: Ints,
    contexts: Ints,
    head: Head,
    progress: Callable[[str, float], None],
) -> tuple[ContextIds, Decoded]:
    """The context id of every context, and what the head makes of every token."""
    direction: Floats | None = None
    moved, q, decoded, tokens = [], [], [], []
    for chunk in FloatBalls(network).run(rows, offsets):
        progress("float", chunk.first / len(rows))
        if direction is None:
            direction = main_direction(chunk.moved.mid)
        every = np.arange(chunk.first, chunk.last)
        own = np.flatnonzero(contexts[chunk.first : chunk.last] == every)
        tokens.append(every[own])
        moved.append(linear(direction, chunk.moved[:, own]))
        q.append(chunk.q[:, own])
        decoded.append(head.decode(chunk.features))
    assert direction is not None
    at = np.concatenate(tokens)
    ids = ContextIds(at, _places(network, rows, offsets)[at], join(moved), join(q), direction)
    labels, off = (
        np.concatenate([getattr(d, name) for d in decoded]) for name in ("labels", "off")
    )
    return ids, Decoded(labels, off, join([d.values for d in decoded]))


def main_direction(moved: Floats) -> Floats:
    """The direction in which attention moves tokens apart most, roughly; not 0."""
    widest = int(np.ptp(moved, axis=1).argmax())
    found = moved[:, moved[widest].argmax()] - moved[:, moved[widest].argmin()]
    return found if np.isfinite(found).all() and found.any() else np.ones(len(moved))


def join(parts: list[Balls]) -> Balls:
    """Side by side along the last axis."""
    mid, rad = (np.concatenate([getattr(p, name) for p in parts], -1) for name in ("mid", "rad"))
    return Balls(mid, rad)


def _places(network: TokenClassifier, rows: Ints, offsets: Ints) -> Ints:
    """A number for X + E of each token: the word, or the word and the position."""
    if network.positions is None:
        return rows
    positions = np.arange(len(rows)) - np.repeat(offsets[:-1], np.diff(offsets))
    return rows * len(network.positions) + positions
