"""Labels as they are judged: entity tags in IOB2, whatever the corpus has; and back again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.audit.suspects.votes import Numbers, Scores
from rankone.corpus.corpus import Corpus
from rankone.corpus.schemes import as_iob1, opening


@dataclass(frozen=True)
class Tags:
    """Token i has the tag ``names[ids[i]]``; its number is -1 if the corpus asks nothing of it.

    The labels of the corpus come first among the names. ``scheme`` is how the corpus writes entity
    tags, None if its labels are others.
    """

    names: list[str]
    ids: Numbers
    scheme: str | None

    @classmethod
    def of(cls, corpus: Corpus, names: Sequence[str] | None = None) -> Tags:
        """`names` are those of a corpus that this is a part of."""
        labels, ids = corpus.label_names, corpus.label_ids
        if names is None:
            names = [*labels, *(f"B-{labels[i][2:]}" for i in opened_types(corpus).tolist())]
            names = list(dict.fromkeys(names))
        if corpus.scheme == "IOB1":
            number = {name: i for i, name in enumerate(names)}
            begun = np.array([number.get(f"B-{label[2:]}", -1) for label in labels])
            ids = np.where(_opens(corpus), begun[ids], ids)
        return cls(list(names), ids.astype(np.int32), corpus.scheme)

    def spelled(self, tags: list[str]) -> list[str]:
        """The tags of a sentence as the corpus writes them."""
        return as_iob1(tags) if self.scheme == "IOB1" else tags

    def expert(self, probabilities: Floats, least: float) -> Scores:
        """A model's probabilities of the corpus's labels as scores of the tags."""
        chances = np.full((len(probabilities), len(self.names)), least)
        known = probabilities.shape[1]  # other splits may have more labels
        chances[:, :known] = np.maximum(probabilities, least)
        if self.scheme == "IOB1":  # which writes I- for most of what IOB2 begins by B-
            number = {name: y for y, name in enumerate(self.names)}
            for name, y in number.items():
                inner = number.get(f"I-{name[2:]}")
                if name[0] == "B" and inner is not None:
                    chances[:, y] = np.maximum(chances[:, y], chances[:, inner])
        return np.asarray(np.log(chances), dtype=np.float32)


def opened_types(corpus: Corpus) -> Ints:
    """The labels that are written I-, and open an entity, in the order of their appearance."""
    if corpus.scheme != "IOB1":
        return np.empty(0, dtype=np.int64)
    labels = corpus.label_ids[_opens(corpus)]
    return np.asarray(labels[np.sort(np.unique(labels, return_index=True)[1])])


def _opens(corpus: Corpus) -> Bools:
    opens = opening(corpus.label_names, corpus.label_ids, corpus.offsets[:-1])
    return np.asarray(opens & (corpus.label_ids >= 0))
