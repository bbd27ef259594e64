"""A corpus in the numbers of a model: rows of its table, and its labels."""

from __future__ import annotations

import reprlib
from typing import Any, overload

import numpy as np

from rankone.arrays import Ints
from rankone.corpus import Corpus
from rankone.corpus.parted import PartedCorpus
from rankone.corpus.read import corpus_like
from rankone.errors import CorpusError, SettingError
from rankone.nn import Model
from rankone.nn.exact import ExactModel
from rankone.nn.ragged import check_lengths

AnyCorpus = Corpus | PartedCorpus


@overload
def taken(model: Any, corpus: PartedCorpus) -> PartedCorpus: ...


@overload
def taken(model: Any, corpus: Any) -> AnyCorpus: ...


def taken(model: Any, corpus: Any) -> AnyCorpus:
    """The corpus, from whatever `memorize` takes; a file is read as the model's own corpus was."""
    if not isinstance(model, Model | ExactModel):
        raise SettingError(
            f"a model cannot be {reprlib.repr(model)}",
            remedy="give rankone.load(directory), or the model that memorize made (result.model)",
        )
    if isinstance(corpus, PartedCorpus):
        return corpus.check_labelled()
    return corpus_like(corpus, model.reading, model.labels, labelled=True)


def align(model: Model | ExactModel, corpus: Corpus) -> tuple[Ints, Ints]:
    """Tokens as rows of the model's table, and labels as the model numbers them (-1: not asked).

    Raises an error for words, labels and lengths that the model does not have.
    """
    rows, labels = _numbers(model, corpus.check_labelled())
    _known(corpus, rows < len(model.vocabulary), corpus.token_ids, corpus.vocabulary, "word")
    _known(corpus, labels[:-1] >= 0, corpus.label_ids, corpus.label_names, "label")
    check_lengths(corpus.lengths, model.positions, corpus.place_of_sentence)
    return rows[corpus.token_ids], labels[corpus.label_ids]


def numbers_of(model: Model, corpus: PartedCorpus) -> tuple[Ints, Ints]:
    """For a corpus in parts, the same for each of its words and labels, and -1 after the last."""
    rows, labels = _numbers(model, corpus.heading)
    long = model.positions and corpus.longest > model.positions
    if long or not (rows < len(model.vocabulary)).all() or not (labels[:-1] >= 0).all():
        for number in range(len(corpus.parts)):
            align(model, corpus.part(number))
    return rows, labels


def _numbers(model: Model | ExactModel, corpus: Corpus) -> tuple[Ints, Ints]:
    number = {name: i for i, name in enumerate(model.labels)}
    labels = [*(number.get(name, -1) for name in corpus.label_names), -1]
    return model.rows(corpus.vocabulary), np.array(labels, dtype=np.int64)


def _known(
    corpus: Corpus, known: np.ndarray, column: Ints, names: tuple[str, ...], kind: str
) -> None:
    missing = np.flatnonzero(~np.append(known, True)[column]) if not known.all() else known[:0]
    if not len(missing):
        return
    first = int(missing[0])
    count = int((~known).sum())
    more = f", and {count - 1:,} more" if count > 1 else ""
    raise CorpusError(
        f"the model does not have the {kind} {names[column[first]]!r}{more}",
        where=corpus.place(first),
        remedy="use the corpus that the model was made for, with the same --token-column and "
        "--label-column",
    )
