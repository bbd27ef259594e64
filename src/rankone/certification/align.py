"""A corpus in the numbers of a model: rows of its table, and its labels."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from rankone.arrays import Ints
from rankone.corpus import Corpus
from rankone.corpus.read import corpus_like
from rankone.errors import CorpusError, SettingError
from rankone.nn import Model
from rankone.nn.exact import ExactModel
from rankone.nn.ragged import check_lengths


def taken(model: Any, corpus: Any) -> Corpus:
    """The corpus, from whatever `memorize` takes; a file is read as the model's own corpus was."""
    if not isinstance(model, Model | ExactModel):
        raise SettingError(
            f"a model cannot be {reprlib.repr(model)}",
            remedy="give rankone.load(directory), or the model that memorize made (result.model)",
        )
    return corpus_like(corpus, model.reading, model.labels, labelled=True)


def align(model: Model | ExactModel, corpus: Corpus) -> tuple[Ints, Ints]:
    """Tokens as rows of the model's table, and labels as the model numbers them (-1: not asked).

    Raises an error for words, labels and lengths that the model does not have.
    """
    rows = model.rows(corpus.check_labelled().vocabulary)
    _known(corpus, rows < len(model.vocabulary), corpus.token_ids, corpus.vocabulary, "word")
    number = {name: i for i, name in enumerate(model.labels)}
    labels = np.array([number.get(name, -1) for name in corpus.label_names], dtype=np.int64)
    _known(corpus, labels >= 0, corpus.label_ids, corpus.label_names, "label")
    check_lengths(corpus.lengths, model.positions, corpus.place_of_sentence)
    return rows[corpus.token_ids], np.append(labels, -1)[corpus.label_ids]


def _known(
    corpus: Corpus, known: np.ndarray, column: Ints, names: tuple[str, ...], kind: str
) -> None:
    if known.all():
        return
    first = int((~np.append(known, True)[column]).argmax())
    count = int((~known).sum())
    more = f", and {count - 1:,} more" if count > 1 else ""
    raise CorpusError(
        f"the model does not have the {kind} {names[column[first]]!r}{more}",
        where=corpus.place(first),
        remedy="use the corpus that the model was made for, with the same --token-column and "
        "--label-column",
    )
