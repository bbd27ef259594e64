"""scikit-learn: `memorize` as an estimator."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
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
from rankone.errors import CorpusError, LengthError, ModelError
from rankone.extras import extra
from rankone.interop.sequences import (
    Labels,
    SequenceError,
    Sequences,
    corpus_of,
    documents_of,
    labelled_documents,
    labelled_words,
    one_each,
    refuse_tokenizer,
    strings_of,
)
from rankone.nn import Model, load
from rankone.nn.store import FILES

with extra("sklearn", "RankOneClassifier"):
    from sklearn.base import BaseEstimator
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_is_fitted


@dataclass(kw_only=True, eq=False, repr=False)
class RankOneClassifier(BaseEstimator):
    """Gives every word of a sequence its label, or every text one; `fit` does not train, it
    constructs the weights.

    X has a list of words per sequence, y a list of labels, all strings; lists, tuples, arrays and
    pandas Series will do. If y has one label for each (strings or whole numbers), the sequence has
    this label; X may then also hold texts, which `tokenizer` splits ("words", "characters", "bytes"
    or the path of a tokenizer.json). The other parameters are those of `rankone.memorize`.
    (`vectors` as an array has a row per word of one vocabulary; to cross-validate, give a file.)
    After `fit` there are ``model_`` (a `rankone.Model`, to be saved or certified), ``report_`` (the
    figures, as `Memorized.to_json` has them) and ``classes_`` (the labels, sorted).

    `predict` gives an array of objects, a list of labels per sequence; or an array of labels, as y
    was. Words that `fit` did not see share one row of the token table. A sequence longer than the
    table of positions is labelled in pieces as long as the table, each as a sequence of its own.
    But a text of which only a piece would be seen is an error, and so is one without words.
    `max_length` makes the table longer, and without `positions` there is none.

    There are no probabilities: constructed logits say nothing of confidence.

    >>> X, y = [["a", "rose"], ["rose", "rose"]], [["DET", "NOUN"], ["VERB", "NOUN"]]
    >>> RankOneClassifier().fit(X, y).predict(X).tolist()
    [['DET', 'NOUN'], ['VERB', 'NOUN']]
    >>> RankOneClassifier().fit(["A rose.", "No rose."], [1, 0]).predict(["No rose."])
    array([0])
    """

    # Not a ClassifierMixin: for what is tagged a classifier, cross validation looks in y for
    # classes to balance the folds by, and refuses lists of lists. (For labels of texts, give
    # ``cv=StratifiedKFold()``.)

    construction: Construction | None = None
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
    tokenizer: str | os.PathLike[str] = "words"

    # X and y, not sequences and labels: any other name is metadata to scikit-learn, to be routed.

    def fit(self, X: Sequences, y: Labels) -> Self:
        """Memorize the labels of these sequences, or texts."""
        settings = {
            name: value.item() if isinstance(value, np.generic) else value  # of an np.arange
            for name, value in self.get_params(deep=False).items()
        }
        tokenizer = settings.pop("tokenizer")
        with _as_sequence_error():
            if one_each(y):
                documents, labels = labelled_documents(X, y)
                corpus = corpus_of(documents, labels.tolist(), tokenizer)
                classes = np.unique(labels)
            else:
                refuse_tokenizer(tokenizer)
                corpus = Corpus.from_sentences(zip(*labelled_words(X, y), strict=True))
                classes = np.unique(corpus.label_names)
        result = memorize(corpus, **settings)
        self.model_, self.report_ = result.model, result.to_json()
        self.classes_: NDArray[Any] = classes
        return self

    def predict(self, X: Sequences) -> NDArray[Any]:
        """A list of labels per sequence, or one label for each."""
        check_is_fitted(self, "model_")
        if self.model_.task.whole:
            number = {str(label): i for i, label in enumerate(self.classes_.tolist())}
            with _as_sequence_error():
                labels = self.model_.classify(documents_of(X))
            return np.asarray(self.classes_[np.array([*map(number.get, labels)], dtype=np.int64)])
        words = strings_of(X, "X")
        # An array, since cross_val_predict cannot join lists of unequal lengths.
        return np.fromiter(self.model_.predict(words), object, len(words))

    def score(self, X: Sequences, y: Labels) -> float:
        """The share of tokens, or texts, whose label is right."""
        check_is_fitted(self, "model_")
        if self.model_.task.whole:
            documents, names = labelled_documents(X, y)
            same: int = sum(map(eq, self.predict(documents).tolist(), names.tolist()))
            return same / len(documents)
        words, labels = labelled_words(X, y)
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


@contextlib.contextmanager
def _as_sequence_error() -> Iterator[None]:
    """What is wrong with X or y is a ValueError, too."""
    try:
        yield
    except SequenceError:
        raise
    except (CorpusError, LengthError) as error:
        raise SequenceError(error.what, where=error.where, remedy=error.remedy) from None


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
