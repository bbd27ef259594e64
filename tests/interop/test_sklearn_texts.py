"""The estimator with one label for each text: strings or lists of words, labels of any kind."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import classification_report
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import rankone
from rankone import Corpus
from rankone.errors import CorpusError, SettingError
from rankone.interop.sklearn import RankOneClassifier, SequenceError

NOUNS = "rose roof bread rain morning tea".split()
X = [f"The {a} likes the {b}." for a in NOUNS for b in NOUNS]
Y = ["same" if text.split()[1] in text.split()[-1] else "other" for text in X]
WORDS = [text.split() for text in X]
LABELS: dict[str, list[Any]] = {
    "strings": Y,
    "numbers": [int(y == "same") + 4 for y in Y],
    "booleans": [y == "same" for y in Y],
    "floats": [float(y == "same") for y in Y],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_come_back_as_they_were(labels: list[Any]) -> None:
    for held in (labels, np.array(labels), pd.Series(labels, index=range(9, 9 + len(X)))):
        found = RankOneClassifier().fit(X, held)
        assert found.classes_.tolist() == sorted({*labels})
        predicted = found.predict(X)
        assert predicted.shape == (len(X),)
        assert predicted.dtype == found.classes_.dtype
        assert predicted.tolist() == labels
        assert {*map(type, predicted.tolist())} == {type(labels[0])}
        assert found.score(X, held) == 1.0
        assert type(found.score(X, held)) is float
        again = pickle.loads(pickle.dumps(found))
        assert again.predict(X).tolist() == labels
        assert again.classes_.tolist() == found.classes_.tolist()
    assert found.score(X, [labels[1], *labels[1:]]) == pytest.approx(1 - 1 / len(X))


def test_the_model_is_what_memorize_makes() -> None:
    for tokenizer in ("words", "characters", "bytes"):
        found = RankOneClassifier(tokenizer=tokenizer, construction="gated", seed=3).fit(X, Y)
        corpus = Corpus.from_texts(list(zip(X, Y, strict=True)), task="class", tokenizer=tokenizer)
        wanted = rankone.memorize(corpus, construction="gated", seed=3)
        assert {**found.report_, "seconds": 0, "source": 0} == {
            **wanted.to_json(),
            "seconds": 0,
            "source": 0,
        }
        assert found.report_["asked"] == len(X)
        assert found.model_.reading == wanted.model.reading
        for name, tensor in wanted.model.network.named_parameters():
            assert tensor.equal(found.model_.network.get_parameter(name))
        assert found.model_.classify(X) == Y


def test_words_are_taken_as_they_are(tmp_path: Path) -> None:
    found = RankOneClassifier().fit(WORDS, Y)
    assert found.model_.vocabulary[:4] == ("The", "rose", "likes", "the")
    for held in (WORDS, [tuple(w) for w in WORDS], np.array(WORDS), pd.Series(WORDS)):
        assert found.predict(held).tolist() == Y
    found.model_.save(tmp_path / "model")
    assert rankone.load(tmp_path / "model").classify(WORDS) == Y
    with pytest.raises(SettingError, match="does not say how a text becomes tokens"):
        found.predict(X)


def test_texts_with_contradicting_labels() -> None:
    found = RankOneClassifier().fit(["a", "a", "a", "b"], [1, 0, 1, 0])
    assert found.predict(["a", "b"]).tolist() == [1, 0]
    assert found.score(["a", "a", "b"], [1, 0, 0]) == 2 / 3
    assert found.report_["unavoidable"] == 1


# At home in scikit-learn.


def test_cross_validation() -> None:
    estimator = RankOneClassifier(max_length=20)
    scores = []
    for train, test in KFold(4).split(X):
        pairs = [(X[i], Y[i]) for i in train]
        model = rankone.memorize(Corpus.from_texts(pairs, task="class"), max_length=20).model
        labels = model.classify([X[i] for i in test])
        scores.append(np.mean([label == Y[i] for i, label in zip(test, labels, strict=True)]))
    assert cross_val_score(estimator, X, Y, cv=4).tolist() == pytest.approx(scores)
    assert cross_val_score(estimator, X, Y, cv=4, scoring="accuracy").tolist() == scores
    assert cross_val_score(estimator, X, Y, cv=StratifiedKFold(4), scoring="f1_macro").shape == (4,)
    found = cross_val_predict(estimator, np.array(X), np.array(Y), cv=4)
    assert np.mean(found == np.array(Y)) == pytest.approx(np.mean(scores))
    assert "same" in classification_report(Y, found, zero_division=0)


def lower(texts: list[str]) -> list[str]:
    return [text.lower() for text in texts]


def test_at_the_end_of_a_pipeline_that_is_searched() -> None:
    steps = make_pipeline(FunctionTransformer(lower), RankOneClassifier(positions=False))
    assert steps.fit(X, Y).predict(["THE ROSE LIKES THE ROSE."]).tolist() == ["same"]
    assert steps.classes_.tolist() == ["other", "same"]
    grid = {
        "rankoneclassifier__tokenizer": ["words", "characters"],
        "rankoneclassifier__construction": np.array(["line", "gated"]),
    }
    search = GridSearchCV(steps, grid, cv=2, error_score="raise", scoring="balanced_accuracy")
    assert search.fit(X, Y).score(X, Y) == 1.0
    best = clone(search.best_estimator_)
    assert best.get_params()["rankoneclassifier__tokenizer"] in ("words", "characters")
    with pytest.raises(NotFittedError):
        best.predict(X)
    assert best.fit(X, Y).score(X, Y) == 1.0


def test_there_are_no_probabilities() -> None:
    found = RankOneClassifier().fit(X, Y)
    assert not hasattr(found, "predict_proba")
    assert not hasattr(found, "decision_function")
    assert repr(RankOneClassifier(tokenizer="bytes")) == "RankOneClassifier(tokenizer='bytes')"


# What is refused.

MISTAKES: dict[str, tuple[Any, Any, str]] = {
    "more texts": (["a", "b"], ["x"], "X: 2 texts, but 1 labels in y"),
    "more labels": (["a"], ["x", "y"], "X: 1 texts, but 2 labels in y"),
    "a list for a text": (["a", ["b"]], ["x", "y"], r"X\[1\]: \['b'\] is not a text, as the first"),
    "a text for a list": ([["a"], "b"], ["x", "y"], r"X\[1\]: 'b' is not a list of words, as the"),
    "a number for a text": (
        ["a", 3],
        ["x", "y"],
        r"X\[1\]: 3 is not a list of words, as|X\[1\]: 3",
    ),
    "one text": ("a b", ["x"], "X: 'a b' is not a list of texts"),
    "no text": ([np.nan], ["x"], r"X\[0\]: nan is not a list of strings"),
    "a generator": ((x for x in "ab"), ["x", "y"], "X: <generator .* is not a list of texts"),
    "a list among labels": (
        ["a", "b"],
        ["x", ["y"]],
        r"y\[1\]: \['y'\] is not a string, as labels",
    ),
    "a number among names": (
        ["a", "b"],
        ["x", 1],
        r"y\[1\]: 1 is not a string, as labels are here",
    ),
    "a name among numbers": (["a", "b"], [1, "x"], r"y\[1\]: 'x' is not a whole number, as labels"),
    "a missing name": (["a", "b"], ["x", None], r"y\[1\]: None is not a string, as labels are"),
    "a missing number": (["a", "b"], [1.0, np.nan], r"y\[1\]: nan is not a whole number"),
    "a measure": (
        ["a", "b"],
        [0.5, 1.0],
        r"y\[0\]: 0\.5 is not a whole number, as labels are here",
    ),
    "an empty name": (["a"], [""], r"y\[0\]: '' is not a string"),
    "NUL in a name": (["a"], ["x\0"], r"y\[0\]: 'x\\x00' is not a string"),
    "a date": (
        ["a"],
        np.array(["2020-01-01"], "datetime64[D]"),
        r"y\[0\]: .* is not a whole number",
    ),
    "one label": (["a"], "x", "y: 'x' is not a list of labels"),
}


@pytest.mark.parametrize(("texts", "labels", "message"), MISTAKES.values(), ids=MISTAKES)
def test_one_clear_message(texts: Any, labels: Any, message: str) -> None:
    fitted = RankOneClassifier().fit(["a", "b"], ["x", "y"])
    for method in (RankOneClassifier().fit, fitted.score):
        if isinstance(texts, list) and texts == ["a", "b"] and method == fitted.score:
            assert isinstance(fitted.score(texts, ["x", "z"]), float)
        with pytest.raises(SequenceError, match=f"^({message})") as caught:
            method(texts, labels)
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, CorpusError)
        assert caught.value.remedy


def test_texts_without_a_label() -> None:
    """Empty ones, and those of which only a piece would be seen."""
    with pytest.raises(SequenceError, match="X, document 2: an empty document"):
        RankOneClassifier().fit(["a", ""], [0, 1])
    with pytest.raises(SequenceError, match=r"X\[1\]: no words"):
        RankOneClassifier().fit([["a"], []], [0, 1])
    found = RankOneClassifier().fit(["a b", "b"], [0, 1])
    with pytest.raises(SequenceError, match="document 2: an empty document"):
        found.predict(["a", ""])
    with pytest.raises(SequenceError, match=r"document 1: 3 tokens, but the table .* has 2 rows"):
        found.predict(["a b c"])
    for how in ({"max_length": 3}, {"positions": False}):
        assert RankOneClassifier(**how).fit(["a b", "b"], [0, 1]).predict(["a b c"]).shape == (1,)
    assert found.predict([]).shape == (0,)


def test_a_tokenizer_is_for_texts() -> None:
    for given in ((WORDS, Y), ([["a"]], [["x"]])):
        with pytest.raises(
            SettingError, match="a tokenizer is for texts, and X has lists of words"
        ):
            RankOneClassifier(tokenizer="characters").fit(*given)
    with pytest.raises(SettingError, match="no tokenizer 'letters'"):
        RankOneClassifier(tokenizer="letters").fit(X, Y)


def test_taggers_and_classifiers_are_not_mixed_up() -> None:
    tagger, classifier = RankOneClassifier().fit([["a"]], [["x"]]), RankOneClassifier().fit(X, Y)
    with pytest.raises(SequenceError, match=r"y\[0\]: 'x' is not a list of strings"):
        tagger.score([["a"]], ["x"])
    with pytest.raises(
        SequenceError, match=r"y\[0\]: \['x'\] is not a whole number|is not a string"
    ):
        classifier.score(["a"], [["x"]])
    # Fitted again, it is what it was fitted to last.
    assert classifier.fit([["a"]], [["x"]]).predict([["a"]]).tolist() == [["x"]]
    assert classifier.fit(X, Y).predict(X).tolist() == Y
