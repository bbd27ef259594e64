"""scikit-learn: `memorize` as an estimator."""

from __future__ import annotations

import os
import reprlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import eq
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankone.choices import Construction, Dtype, Readout, Verify
from rankone.construct import memorize
from rankone.corpus import Corpus
from rankone.errors import CorpusError, ModelError
from rankone.extras import extra
from rankone.nn import Model, load
from rankone.nn.store import FILES

with extra("sklearn", "RankOneClassifier"):
    from sklearn.base import BaseEstimator
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_is_fitted

Sequences = Iterable[Sequence[str]]


class SequenceError(CorpusError, ValueError):
    """X or y is not what it should be; a ValueError too, as scikit-learn's own are."""


@dataclass(kw_only=True, eq=False, repr=False)
class RankOneClassifier(BaseEstimator):
    """Gives every word of a sequence its label; `fit` does not train, it constructs the weights.

    X has a list of words per sequence, y a list of labels, all strings; lists, tuples, arrays and
    pandas Series will do. The parameters are those of `rankone.memorize`. (`vectors` as an array
    has a row per word of one vocabulary; to cross-validate, give a file.) After `fit` there are
    ``model_`` (a `rankone.Model`, to be saved or certified), ``report_`` (the figures, as
    `Memorized.to_json` has them) and ``classes_`` (the labels, sorted).

    `predict` gives an array of objects, a list of labels per sequence. Words that `fit` did not see
    share one row of the token table. A sequence longer than the table of positions is not an error
    either: it is labelled in pieces as long as the table, each as a sequence of its own.
    `max_length` makes the table longer.

    >>> X, y = [["a", "rose"], ["rose", "rose"]], [["DET", "NOUN"], ["VERB", "NOUN"]]
    >>> RankOneClassifier().fit(X, y).predict(X).tolist()
    [['DET', 'NOUN'], ['VERB', 'NOUN']]
    """

    # Not a ClassifierMixin: for what is tagged a classifier, cross validation looks in y for
    # classes to balance the folds by, and refuses lists of lists.

    construction: Construction = "line"
    vectors: ArrayLike | str | os.PathLike[str] | None = None
    positions: bool = True
    causal: bool = False
    head_size: int = 1
    heads: int | None = None
    dtype: Dtype = "float64"
    directions: int = 64
    editable: bool = False
    readout: Readout = "merged"
    strict: bool = False
    max_length: int | None = None
    verify: Verify = "sample"
    seed: int = 0  # not random_state, which may be None or a generator that is used up

    # X and y, not sequences and labels: any other name is metadata to scikit-learn, to be routed.

    def fit(self, X: Sequences, y: Sequences) -> Self:
        """Memorize the labels of these sequences."""
        words, labels = _labelled(X, y)
        settings = {
            name: value.item() if isinstance(value, np.generic) else value  # of an np.arange
            for name, value in self.get_params(deep=False).items()
        }
        try:
            corpus = Corpus.from_sentences(zip(words, labels, strict=True))
        except CorpusError as error:
            raise SequenceError(error.what, where=error.where, remedy=error.remedy) from None
        result = memorize(corpus, **settings)
        self.model_, self.report_ = result.model, result.to_json()
        self.classes_ = np.unique(result.model.labels)
        return self

    def predict(self, X: Sequences) -> NDArray[np.object_]:
        """A list of labels per sequence."""
        check_is_fitted(self, "model_")
        words = _strings(X, "X")
        found = self.model_.predict(words)
        # An array, since cross_val_predict cannot join lists of unequal lengths.
        return np.fromiter(found, object, len(words))

    def score(self, X: Sequences, y: Sequences) -> float:
        """The share of tokens whose label is right."""
        words, labels = _labelled(X, y)
        found, wanted = chain.from_iterable(self.predict(words)), chain.from_iterable(labels)
        right: int = sum(map(eq, found, wanted))
        return right / sum(map(len, words))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array, tags.input_tags.string = False, True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """The files of the model directory stand for the model in copies and pickles."""
        state: dict[str, Any] = super().__getstate__()  # this may be __dict__ itself
        if "model_" not in state:
            return state
        return {**state, "model_": state["model_"].files()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "model_" in state:
            state = {**state, "model_": _unpacked(state["model_"])}
        super().__setstate__(state)


def _unpacked(files: Any) -> Model:
    """The model of these files, with all the checks of loading."""
    where, remedy = "a pickled RankOneClassifier", "fit it again"
    if not isinstance(files, dict) or not all(isinstance(c, bytes) for c in files.values()):
        raise ModelError("does not hold the files of a model", where=where, remedy=remedy)
    with tempfile.TemporaryDirectory() as home:
        for name in files.keys() & set(FILES):
            Path(home, name).write_bytes(files[name])
        try:
            model = load(home)
            _ = model.memory  # read before its file is gone
            return model
        except ModelError as error:  # names a directory that will be gone
            where = f"{where}, {Path(error.where or home).name}"
            raise ModelError(error.what, where=where, remedy=remedy) from None


def _labelled(X: Sequences, y: Sequences) -> tuple[list[list[str]], list[list[str]]]:
    """X and y as lists of lists, with a label for every word."""
    words, labels = _strings(X, "X"), _strings(y, "y")
    if len(words) != len(labels):
        raise SequenceError(
            f"{len(words)} sequences, but {len(labels)} in y",
            where="X",
            remedy="give one sequence of labels for each sequence of words",
        )
    for i, (w, names) in enumerate(zip(words, labels, strict=True)):
        if len(w) != len(names):
            raise SequenceError(
                f"{len(w)} words, but {len(names)} labels in y[{i}]",
                where=f"X[{i}]",
                remedy="give exactly one label per word",
            )
    if not any(words):
        raise SequenceError("no words", where="X", remedy="give a sequence that is not empty")
    return words, labels


def _strings(given: Sequences, name: str) -> list[list[str]]:
    """Lists of lists of strings, whatever held them."""
    found = []
    for i, items in enumerate(_members(given, name, "a list of sequences")):
        strings = _members(items, f"{name}[{i}]", "a list of strings")
        if set(map(type, strings)) - {str}:  # a quick look: numpy has strings of its own
            for j, string in enumerate(strings):
                if not isinstance(string, str):
                    raise _mistaken(string, f"{name}[{i}][{j}]", "a string")
        found.append(strings)
    return found


def _members(given: Any, where: str, wanted: str) -> list[Any]:
    """What a list, a tuple, an array or a Series holds; nothing in a string, set or iterator."""
    if isinstance(given, (list, tuple)):
        return list(given)
    listed = hasattr(given, "__len__") and hasattr(given, "__getitem__")
    if not listed or isinstance(given, str | bytes | Mapping) or getattr(given, "ndim", 1) < 1:
        raise _mistaken(given, where, wanted)
    return list(given)


def _mistaken(given: object, where: str, wanted: str) -> SequenceError:
    return SequenceError(
        f"{reprlib.repr(given)} is not {wanted}",
        where=where,
        remedy="give a list of strings for every sequence: [['a', 'rose'], ['a', 'red', 'rose']]",
    )
