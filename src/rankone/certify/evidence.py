"""What float64 says of every token, with its error: the evidence that claims are judged by."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import frexp, inf, isnan

import numpy as np
from numpy.typing import NDArray

from rankone.certify.floats import FloatBalls
from rankone.certify.ids import ContextIds, outline
from rankone.certify.labels import Decoded, Head
from rankone.certify.rounding import Balls, Floats, Ints, linear
from rankone.corpus import Corpus
from rankone.errors import CorpusError
from rankone.nn import Evaluator, Model, Rank1Attention, TokenClassifier
from rankone.nn.model import check_lengths
from rankone.progress import Progress


def align(model: Model, corpus: Corpus) -> tuple[Ints, Ints]:
    """Tokens as rows of the model's table and labels as the model numbers them.

    Refuses a corpus with words, labels or lengths that the model does not have: nothing could be
    said of them.
    """
    if not corpus.labelled:
        raise CorpusError("no labels", where=corpus.source, remedy="give a labelled file")
    rows = model.rows(corpus.vocabulary)
    _known(corpus, rows < len(model.vocabulary), corpus.token_ids, corpus.vocabulary, "word")
    number = {name: i for i, name in enumerate(model.labels)}
    labels = np.array([number.get(name, -1) for name in corpus.label_names], dtype=np.int64)
    _known(corpus, labels >= 0, corpus.label_ids, corpus.label_names, "label")
    check_lengths(corpus.lengths, model.network.shape.positions, corpus.place_of_sentence)
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
        where=corpus.place(first),
        remedy="certify a model on the corpus it was made for, read in the same way "
        "(--scheme, --lower, columns)",
    )


@dataclass
class Readings:
    """What the head makes of every token, in balls and in the float64 run.

    ``labels`` and ``off`` are those of `Decoded`, ``run_labels`` what the float64 run decides for.
    ``distance`` bounds how far the run's values are from the exact ones, but for the tokens that
    balls leave undecided: what the run has for those is in ``run_values``.
    """

    labels: NDArray[np.int32]
    off: Floats
    run_labels: NDArray[np.int32]
    distance: float = 0.0
    run_values: dict[int, Floats] = field(default_factory=dict)

    @classmethod
    def room(cls, tokens: int) -> Readings:
        return cls(np.empty(tokens, np.int32), np.empty(tokens), np.empty(tokens, np.int32))

    def add(self, first: int, exact: Decoded, values: Floats, labels: Ints) -> None:
        """Tokens from `first` on."""
        part = slice(first, first + len(labels))
        self.labels[part], self.off[part], self.run_labels[part] = exact.labels, exact.off, labels
        decided = exact.off < 0.5
        with np.errstate(invalid="ignore"):
            distance = np.abs(values - exact.values.mid) * (1 + 2.0**-50) + exact.values.rad
        largest = float(distance[:, decided].max(initial=0.0))
        self.distance = max(self.distance, inf if isnan(largest) else largest)
        for i in np.flatnonzero(~decided).tolist():
            self.run_values[first + i] = values[:, i]


def evaluate(
    network: TokenClassifier,
    rows: Ints,
    offsets: Ints,
    contexts: Ints,
    head: Head,
    progress: Progress,
) -> tuple[ContextIds, Readings]:
    """The context id of every context, and what the head makes of every token.

    Balls and the float64 run go side by side through the same chunks of the corpus, so that only
    figures have to be kept.
    """
    balls, tokens = FloatBalls(network), np.flatnonzero(contexts == np.arange(len(contexts)))
    along = Balls(np.empty(len(tokens)), np.empty(len(tokens)))
    shade, reach, size = np.empty((3, len(tokens)))
    place, positions = np.empty(len(tokens), np.int64), max(1, network.shape.positions)
    readings = Readings.room(len(rows))
    direction: Floats | None = None
    done = 0
    both = balls.run(rows, offsets), Evaluator(network).features(rows, offsets)
    for chunk, z in zip(*both, strict=True):
        progress("float", chunk.first / len(rows))
        if direction is None:
            direction = main_direction(chunk.moved.mid)
        own = tokens[done : np.searchsorted(tokens, chunk.last)] - chunk.first
        part = slice(done, done + len(own))
        along[part] = linear(direction, chunk.moved[:, own])
        shade[part], reach[part], size[part] = outline(chunk.q[:, own])
        # X + E is known by the word, or by the word and the position
        place[part] = rows[chunk.first + own] * positions
        if network.positions is not None:
            place[part] += chunk.positions[own]
        readings.add(chunk.first, head.decode(chunk.features), *head.run(z))
        done += len(own)
    assert direction is not None

    def locate(at: Ints) -> tuple[Balls, Balls]:
        return _points(balls, rows, offsets, tokens[at])

    straight = isinstance(network.blocks[0].attention, Rank1Attention)
    ids = ContextIds(tokens, place, direction, along, shade, reach, size, locate, straight)
    return ids, readings


def _points(balls: FloatBalls, rows: Ints, offsets: Ints, tokens: Ints) -> tuple[Balls, Balls]:
    """What attention adds to some tokens, and their context ids, from whole sentences."""
    sentences, back = np.unique(
        np.searchsorted(offsets, tokens, side="right") - 1, return_inverse=True
    )
    lengths = np.diff(offsets)[sentences]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    inner = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    moved, q = balls.context_ids(rows[np.repeat(offsets[sentences], lengths) + inner], starts)
    at = starts[back] + tokens - offsets[sentences[back]]
    return moved[:, at], q[:, at]


def main_direction(moved: Floats) -> Floats:
    """The direction in which attention moves tokens apart most, roughly; not 0."""
    widest = int(np.ptp(moved, axis=1).argmax())
    found = moved[:, moved[widest].argmax()] - moved[:, moved[widest].argmin()]
    largest = float(np.abs(found).max())
    if 0 < largest < inf:  # scaled, so that products with it do not overflow
        return np.asarray(found / 2.0 ** frexp(largest)[1])
    return np.random.default_rng(1).normal(size=len(moved))
