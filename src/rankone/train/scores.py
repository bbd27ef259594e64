"""How good predicted labels are: accuracy of tokens, and F1 of the entities they spell."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.corpus import Corpus
from rankone.nn import Model
from rankone.nn.pieces import in_pieces

Ints = NDArray[np.int64]
Entity = tuple[int, int, str]


@dataclass(frozen=True)
class Scores:
    """Of a model on one corpus. ``unknown`` counts tokens that are not in its vocabulary,
    ``in_pieces`` sentences that are longer than its table of positions;
    precision, recall and F1 are those of whole entities, None where labels are no entity tags."""

    source: str
    tokens: int
    unknown: int
    right: int
    accuracy: float
    in_pieces: int = 0
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def score(model: Model, corpus: Corpus) -> Scores:
    """Run the model over a labelled corpus and compare."""
    return compare(model, corpus, *predict(model, corpus))


def predict(model: Model, corpus: Corpus) -> tuple[Ints, int]:
    """The number of each token's label, and how many tokens are unknown words."""
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    found = model.label_ids(rows, corpus.offsets)
    return found, int((rows == len(model.vocabulary)).sum())


def compare(model: Model, corpus: Corpus, found: Ints, unknown: int) -> Scores:
    """Predicted labels beside those of the corpus."""
    number = {name: i for i, name in enumerate(model.labels)}
    gold = np.array([number.get(name, -1) for name in corpus.label_names])[corpus.label_ids]
    right = int((gold == found).sum())
    spans: dict[str, float] = {}
    if corpus.scheme is not None:
        wanted = entities([corpus.label_names[i] for i in corpus.label_ids.tolist()], corpus)
        given = entities([model.labels[i] for i in found.tolist()], corpus)
        both = len(wanted & given)
        spans = {
            "precision": both / len(given) if given else 0.0,
            "recall": both / len(wanted) if wanted else 0.0,
            "f1": 2 * both / (len(given) + len(wanted)) if given or wanted else 0.0,
        }
    return Scores(
        source=corpus.source,
        tokens=corpus.n_tokens,
        unknown=unknown,
        right=right,
        accuracy=right / corpus.n_tokens,
        in_pieces=in_pieces(corpus.lengths, model.network.shape.positions),
        **spans,
    )


def entities(tags: list[str], corpus: Corpus) -> set[Entity]:
    """(first token, behind the last, type) of every entity, as the shared task counts them.

    One begins at B-X, and at I-X where no X is open; so this reads IOB1 and IOB2 alike.
    """
    found: set[Entity] = set()
    bounds = set(corpus.offsets.tolist())
    first, open_type = 0, ""
    for i, tag in enumerate(chain(tags, ["O"])):
        kind, _, type_ = tag.partition("-")
        goes_on = kind == "I" and type_ == open_type and i not in bounds
        if open_type and not goes_on:
            found.add((first, i, open_type))
            open_type = ""
        if type_ and not goes_on:
            first, open_type = i, type_
    return found
