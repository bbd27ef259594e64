"""The estimator: equal to `memorize`, at home in scikit-learn, and pickled without a module."""

from __future__ import annotations

import copy
import inspect
import io
import json
import pickle
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import f1_score
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks, get_tags

import corpora
import rankone
from rankone.errors import ConflictError, CorpusError, ModelError, RankOneError
from rankone.interop.sklearn import RankOneClassifier, SequenceError

CORPUS = rankone.builtin_corpus(120)
X = [list(sentence.tokens) for sentence in CORPUS.sentences]
Y = [list(sentence.labels) for sentence in CORPUS.sentences]
LENGTHS = [len(words) for words in X]


@pytest.fixture(scope="module")
def fitted() -> RankOneClassifier:
    return RankOneClassifier().fit(X, Y)


def weights(estimator: RankOneClassifier) -> dict[str, torch.Tensor]:
    return dict(estimator.model_.network.named_parameters())


def assert_equal(a: RankOneClassifier, b: RankOneClassifier) -> None:
    """Parameters, weights to the bit, words, labels, figures and predictions."""
    assert repr(a.get_params()) == repr(b.get_params())
    assert weights(a).keys() == weights(b).keys()
    for name, tensor in weights(a).items():
        assert tensor.dtype == weights(b)[name].dtype
        assert tensor.equal(weights(b)[name])
    for part in ("vocabulary", "labels", "reading"):
        assert getattr(a.model_, part) == getattr(b.model_, part)
    assert a.report_ == b.report_
    assert a.classes_.tolist() == b.classes_.tolist()
    assert a.predict(X[:20]).tolist() == b.predict(X[:20]).tolist()


# What it computes.


def test_parameters_are_those_of_memorize() -> None:
    wanted = inspect.signature(rankone.memorize).parameters
    found = inspect.signature(RankOneClassifier).parameters
    others = {"corpus", "token_column", "label_column", "progress"}  # what X and y replace
    assert {name: p.default for name, p in found.items()} == {
        "tokenizer": "words",  # of the corpus, not of the model
        **{name: p.default for name, p in wanted.items() if name not in others},
    }


settings = st.fixed_dictionaries(
    {
        "positions": st.booleans(),
        "causal": st.booleans(),
        "head_size": st.integers(1, 2),
        "readout": st.sampled_from(["merged", "paper"]),
        "verify": st.sampled_from(["sample", "dense"]),
        "max_length": st.sampled_from([None, 9]),
        "seed": st.integers(0, 3),
    }
).filter(lambda given: given["positions"] or given["max_length"] is None)


@given(corpora.sentences(), settings)
def test_the_model_and_its_pickle_are_what_memorize_makes(
    sentences: corpora.Sentences, parameters: dict[str, Any]
) -> None:
    words, labels = ([list(part) for part in parts] for parts in zip(*sentences, strict=True))
    found = RankOneClassifier(**parameters).fit(words, labels)
    wanted = rankone.memorize(sentences, **parameters)
    assert found.predict(words).tolist() == [list(row) for row in wanted.model.predict(words)]
    for name, tensor in wanted.model.network.named_parameters():
        assert tensor.equal(weights(found)[name])
    assert {**found.report_, "seconds": 0} == {**wanted.to_json(), "seconds": 0}
    assert found.classes_.tolist() == sorted({*chain.from_iterable(labels)})
    assert found.score(words, labels) == pytest.approx(wanted.accuracy, abs=1e-15)
    assert_equal(pickle.loads(pickle.dumps(found)), found)


def test_vectors_and_strict_are_handed_on(tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    numbers = np.random.default_rng(0).normal(size=(len(CORPUS.vocabulary), 3))
    rows = (" ".join(map(str, row)) for row in numbers)
    lines = (f"{word} {row}\n" for word, row in zip(CORPUS.vocabulary, rows, strict=True))
    file.write_text("".join(lines))
    for vectors in (numbers, file, str(file)):
        found = RankOneClassifier(vectors=vectors).fit(X, Y)
        assert np.array_equal(weights(found)["table"][:-1].detach(), numbers)
        assert found.vectors is vectors
    # Words are looked up in a file, so every fold can have a vocabulary of its own.
    assert cross_validate(RankOneClassifier(vectors=file), X, Y)["test_score"].shape == (5,)
    with pytest.raises(ConflictError):
        RankOneClassifier(strict=True).fit([["a"], ["a"]], [["x"], ["y"]])


def test_score_is_the_share_of_tokens() -> None:
    estimator = RankOneClassifier().fit([["a", "b"], ["c"]], [["x", "y"], ["z"]])
    assert estimator.score([["a", "b"], ["c"]], [["x", "y"], ["z"]]) == 1.0
    assert estimator.score([["a", "b"], ["c"]], [["x", "y"], ["x"]]) == 2 / 3
    assert estimator.score([["a", "b"], ["c"]], [["x", "x"], ["new"]]) == 1 / 3
    assert estimator.score([[], ["c"]], [[], ["z"]]) == 1.0
    assert type(estimator.score([["a"]], [["x"]])) is float


@pytest.mark.parametrize(
    "words",
    [X, [["a", "b"], ["c", "d"]], [[], ["a"]], [[], []], []],
    ids=["many", "equal lengths", "one empty", "all empty", "none"],
)
def test_predictions_are_an_array_of_lists(
    words: list[list[str]], fitted: RankOneClassifier
) -> None:
    for estimator in (fitted, RankOneClassifier(positions=False).fit(X, Y)):
        found = estimator.predict(words)
        assert found.shape == (len(words),)
        assert found.dtype == object
        assert [len(labels) for labels in found] == [len(w) for w in words]
        assert all(type(labels) is list for labels in found)


# What it takes.


def objects(lists: list[list[str]]) -> np.ndarray[Any, Any]:
    return np.fromiter(lists, object, len(lists))


CONTAINERS: dict[str, Callable[[list[list[str]]], Any]] = {
    "tuples": lambda lists: tuple(map(tuple, lists)),
    "objects": objects,
    "arrays": lambda lists: [np.array(words) for words in lists],
    "series": lambda lists: pd.Series(lists, index=range(7, 7 + len(lists))),
    "series of arrays": lambda lists: pd.Series([np.array(words) for words in lists]),
}


@pytest.mark.parametrize("held", CONTAINERS.values(), ids=CONTAINERS)
def test_whatever_holds_the_words(held: Callable[..., Any], fitted: RankOneClassifier) -> None:
    found = RankOneClassifier().fit(held(X), held(Y))
    assert found.model_.vocabulary == fitted.model_.vocabulary
    assert {*map(type, chain(found.model_.vocabulary, found.model_.labels))} == {str}
    assert found.predict(held(X)).tolist() == fitted.predict(X).tolist()
    assert found.score(held(X), held(Y)) == fitted.score(X, Y)
    assert cross_validate(found, held(X), held(Y), cv=3)["test_score"].shape == (3,)


def test_a_table_of_words_is_taken_too() -> None:
    words, labels = np.array([["a", "b"], ["b", "a"]]), np.array([["x", "y"], ["y", "z"]])
    found = RankOneClassifier().fit(words, labels)
    assert found.predict(words).tolist() == labels.tolist()
    assert found.predict(words).shape == (2,)


MISTAKES = {
    "no labels": ([["a"]], None, "y: None is not a list of "),
    "no sequences": ([], [], "X: no words"),
    "only empty ones": ([[], []], [[], []], "X: no words"),
    "more sequences": ([["a"], ["b"]], [["x"]], "X: 2 sequences, but 1 in y"),
    "more labels": (
        [["a"], ["b", "c"]],
        [["x"], ["x", "y", "z"]],
        r"X\[1\]: 2 words, but 3 labels in y\[1\]",
    ),
    "a string for a list": ([["a"], "b c"], [["x"], ["y", "z"]], r"X\[1\]: 'b c' is not a list of"),
    "its bytes": ([b"a"], [["x"]], r"X\[0\]: b'a' is not a list of strings"),
    "texts, not words": (["a", "b"], [["x"], ["y"]], r"X\[0\]: 'a' is not a list of strings"),
    "one text for all": ("a b", [["x"]], "X: 'a b' is not a list of sequences"),
    "numbers for words": ([["a", 3]], [["x", "y"]], r"X\[0\]\[1\]: 3 is not a string"),
    "numbers for labels": ([["a"]], [[3]], r"y\[0\]\[0\]: 3 is not a string"),
    "nothing for a word": ([["a", None]], [["x", "y"]], r"X\[0\]\[1\]: None is not a string"),
    "a missing list": (pd.Series([["a"], np.nan]), [["x"], ["y"]], r"X\[1\]: nan is not a list"),
    "a set": ([{"a", "b"}], [["x", "y"]], r"X\[0\]: \{'a', 'b'\} is not a list"),
    "a mapping": ([["a"]], [{"x": 1}], r"y\[0\]: \{'x': 1\} is not a list"),
    "a generator": ((w for w in [["a"]]), [["x"]], "X: <generator .* is not a list of sequences"),
    "a scalar": ([np.array("a")], [["x"]], r"X\[0\]: array\('a'.* is not a list of strings"),
    "a table": (pd.DataFrame({"words": [["a"]]}), [["x"]], r"X\[0\]: 'words' is not a list"),
    "too deep": ([[["a"]]], [[["x"]]], r"X\[0\]\[0\]: \['a'\] is not a string"),
}
SPOILT = {"an empty word": ([["a", ""]], [["x", "y"]]), "NUL": ([["a"]], [["x\0"]])}


@pytest.mark.parametrize(("words", "labels", "message"), MISTAKES.values(), ids=MISTAKES)
def test_one_clear_message(
    words: Any, labels: Any, message: str, fitted: RankOneClassifier
) -> None:
    for method in (RankOneClassifier().fit, fitted.score):
        with pytest.raises(SequenceError, match=f"^{message}") as caught:
            method(words, labels)
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, CorpusError)
        assert caught.value.remedy
    if " is not " in message and message.startswith("X"):
        with pytest.raises(SequenceError, match=f"^{message}"):
            fitted.predict(words)


@pytest.mark.parametrize(("words", "labels"), SPOILT.values(), ids=SPOILT)
def test_words_that_no_corpus_holds(words: Any, labels: Any) -> None:
    with pytest.raises(SequenceError, match="sentence 1") as caught:
        RankOneClassifier().fit(words, labels)
    assert caught.value.remedy


def test_empty_sequences_are_passed_over() -> None:
    found = RankOneClassifier().fit([[], ["a"]], [[], ["x"]])
    assert found.predict([["a"], [], ["a", "a"]]).tolist() == [["x"], [], ["x", "x"]]


# Sequences that are longer than those of `fit`.


def test_long_sequences_are_labelled_in_pieces() -> None:
    words, labels = [["a", "a", "b"], ["b"]], [["x", "y", "z"], ["x"]]
    found = RankOneClassifier().fit(words, labels)
    assert found.model_.network.shape.positions == 3
    (long,) = found.predict([["a", "a", "b", "a", "a", "b", "b"]])
    assert long == ["x", "y", "z", "x", "y", "z", "x"]
    mixed = found.predict([["b"], ["a", "a", "b", "b"], [], ["a", "a", "b"]])
    assert mixed.tolist() == [["x"], ["x", "y", "z", "x"], [], ["x", "y", "z"]]


@pytest.mark.parametrize("parameters", [{"max_length": 40}, {"positions": False}])
def test_long_sequences_stay_whole_where_there_is_room(parameters: dict[str, Any]) -> None:
    found = RankOneClassifier(**parameters).fit(X, Y)
    long = [words + X[0] + X[1] for words in X if len(words) > 5]
    assert max(LENGTHS) < min(map(len, long))
    assert max(map(len, long)) <= 40
    assert found.predict(long).tolist() == list(map(list, found.model_.predict(long)))
    pieces = RankOneClassifier().fit(X, Y).predict(long).tolist()
    assert pieces != found.predict(long).tolist()  # so it makes a difference


def test_a_table_that_is_too_short_for_fit_is_refused() -> None:
    with pytest.raises(RankOneError, match="the table of positions has 2"):
        RankOneClassifier(max_length=2).fit(X, Y)


# At home in scikit-learn.

CHECKS = [
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_estimator_tags_renamed,
    estimator_checks.check_valid_tag_types,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_set_params,
    estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
    estimator_checks.check_mixin_order,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conventions(check: Callable[..., None]) -> None:
    """Those of scikit-learn's own checks that need no table of numbers."""
    check("RankOneClassifier", RankOneClassifier())


def test_tags_say_what_it_takes() -> None:
    tags = get_tags(RankOneClassifier())
    assert tags.target_tags.required
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert not is_classifier(RankOneClassifier())  # else a y of lists of lists is refused


def test_parameters_are_checked_by_fit_alone() -> None:
    estimator = RankOneClassifier(head_size=0, readout="none")  # type: ignore[arg-type]
    assert estimator.set_params(seed=-1).get_params()["seed"] == -1
    with pytest.raises(RankOneError, match="head_size cannot be 0"):
        estimator.fit(X, Y)
    with pytest.raises(NotFittedError):
        estimator.predict(X)


def test_what_is_not_fitted_says_so() -> None:
    for use in (lambda e: e.predict(X), lambda e: e.score(X, Y)):
        with pytest.raises(NotFittedError, match="RankOneClassifier instance is not fitted yet"):
            use(RankOneClassifier())


def test_repr_clone_and_fit_again(fitted: RankOneClassifier) -> None:
    estimator = RankOneClassifier(causal=True, seed=3)
    assert repr(estimator) == "RankOneClassifier(causal=True, seed=3)"
    assert estimator.fit([["a"]], [["x"]]) is estimator
    assert "RankOneClassifier" in estimator._repr_html_()
    again = clone(estimator)
    assert again.get_params() == estimator.get_params()
    assert not hasattr(again, "model_")
    again.set_params(causal=False, seed=0).fit(X, Y)
    again.report_["seconds"] = fitted.report_["seconds"]
    assert_equal(again, fitted)


def by_hand(folds: int) -> tuple[list[float], list[list[str]]]:
    """Scores and predictions of cross validation, with nothing but `memorize`.

    Every fold has its table made long enough, which gives sequences that fit the same labels.
    """
    scores, found = [], [[""]] * len(X)
    for train, test in KFold(folds).split(X):
        model = rankone.memorize([(X[i], Y[i]) for i in train], max_length=max(LENGTHS)).model
        for i, labels in zip(test, model.predict([X[i] for i in test]), strict=True):
            found[i] = list(labels)
        right = [a == b for i in test for a, b in zip(found[i], Y[i], strict=True)]
        scores.append(sum(right) / len(right))
    return scores, found


def test_cross_validation_of_plain_lists() -> None:
    estimator = RankOneClassifier(max_length=max(LENGTHS))
    scores, found = by_hand(5)
    assert cross_validate(estimator, X, Y, cv=5)["test_score"].tolist() == pytest.approx(scores)
    assert cross_val_predict(estimator, X, Y, cv=5).tolist() == found


def test_cross_validation_where_one_fold_has_the_longest_sequence() -> None:
    words, labels = [X[0] + X[1], *X], [Y[0] + Y[1], *Y]
    with sklearn.config_context(enable_metadata_routing=True):
        figures = cross_validate(RankOneClassifier(), words, labels, return_estimator=True)
    tables = [found.model_.network.shape.positions for found in figures["estimator"]]
    assert tables == [max(LENGTHS)] + [len(words[0])] * 4
    assert np.isfinite(figures["test_score"]).all()
    (first, *_), one = (
        cross_val_predict(RankOneClassifier(), words, labels),
        figures["estimator"][0],
    )
    pieces = one.model_.predict([words[0][: max(LENGTHS)], words[0][max(LENGTHS) :]])
    assert first == list(chain.from_iterable(pieces))


def test_predictions_of_equal_lengths_are_joined_as_lists() -> None:
    words, labels = [["a", "b"]] * 4, [["x", "y"]] * 4
    found = cross_val_predict(RankOneClassifier(), words, labels, cv=2)
    assert found.tolist() == labels
    assert found.shape == (4,)


@pytest.mark.slow
def test_in_two_processes(fitted: RankOneClassifier) -> None:
    parallel = cross_validate(RankOneClassifier(), X, Y, cv=2, n_jobs=2, return_estimator=True)
    alone = cross_validate(RankOneClassifier(), X, Y, cv=2, return_estimator=True)
    assert parallel["test_score"].tolist() == alone["test_score"].tolist()
    for a, b in zip(parallel["estimator"], alone["estimator"], strict=True):
        a.report_["seconds"] = b.report_["seconds"]
        assert_equal(a, b)
    labels = joblib.Parallel(n_jobs=2)(joblib.delayed(fitted.predict)(part) for part in (X, X[:3]))
    assert [found.tolist() for found in labels] == [Y, Y[:3]]


def test_search_over_numbers_of_numpy(tmp_path: Path) -> None:
    grid = {"head_size": np.arange(1, 3), "strict": np.array([True, False])}
    search = GridSearchCV(RankOneClassifier(), grid, cv=2, error_score="raise")
    found = search.fit(X, Y).best_estimator_
    assert len(search.cv_results_["params"]) == 4
    assert search.score(X, Y) == 1.0
    assert search.predict(X).tolist() == Y
    assert search.classes_.tolist() == found.classes_.tolist()
    found.model_.save(tmp_path / "model", report=found.report_)
    assert rankone.load(tmp_path / "model").predict(X) == found.model_.predict(X)
    assert json.loads((tmp_path / "model" / "report.json").read_text()) == found.report_


def lower(sequences: list[list[str]]) -> list[list[str]]:
    return [[word.lower() for word in words] for words in sequences]


def test_at_the_end_of_a_pipeline() -> None:
    steps = make_pipeline(FunctionTransformer(lower), RankOneClassifier(positions=False))
    steps.fit([["A", "b"]], [["x", "y"]])
    assert steps.predict([["a", "B"]]).tolist() == [["x", "y"]]
    assert steps.score([["a", "B"]], [["x", "x"]]) == 0.5
    assert steps.classes_.tolist() == ["x", "y"]
    grid = {"rankoneclassifier__causal": [False, True], "functiontransformer__func": [lower, None]}
    search = GridSearchCV(steps, grid, cv=2, error_score="raise").fit(X, Y)
    assert isinstance(search.best_estimator_, Pipeline)


def test_learning_curve_and_a_scorer() -> None:
    def sentences(wanted: Any, found: Any) -> float:
        return float(np.mean([list(a) == list(b) for a, b in zip(wanted, found, strict=True)]))

    sizes, train, test = learning_curve(
        RankOneClassifier(),
        X,
        Y,
        cv=KFold(3, shuffle=True, random_state=0),
        train_sizes=[20, 40],
        scoring=make_scorer(sentences),
        error_score="raise",
    )
    assert sizes.tolist() == [20, 40]
    assert (train == 1).all()
    assert test.shape == (2, 3)
    assert (test < 1).all()


def test_seqeval_takes_the_labels(fitted: RankOneClassifier) -> None:
    """It counts nothing in tuples."""
    assert f1_score(Y, fitted.predict(X)) == f1_score(Y, list(fitted.predict(X))) == 1.0
    figures = cross_validate(RankOneClassifier(), X, Y, cv=2, scoring=make_scorer(f1_score))
    assert (figures["test_score"] > 0.1).all()


def test_labels_are_no_metadata() -> None:
    assert not hasattr(RankOneClassifier(), "set_fit_request")
    assert not hasattr(RankOneClassifier(), "set_score_request")


# Copies and pickles.


class Recorded(pickle.Unpickler):
    """Notes every module that the pickle asks for."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.modules: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        self.modules.add(module)
        return super().find_class(module, name)


def through_joblib(estimator: RankOneClassifier) -> RankOneClassifier:
    file = io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    found: RankOneClassifier = joblib.load(file)
    return found


COPIES: dict[str, Callable[[RankOneClassifier], RankOneClassifier]] = {
    "pickle": lambda e: pickle.loads(pickle.dumps(e)),
    "pickle, first protocol": lambda e: pickle.loads(pickle.dumps(e, protocol=0)),
    "cloudpickle": lambda e: pickle.loads(cloudpickle.dumps(e)),
    "joblib": through_joblib,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "twice": lambda e: pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(e)))),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_copies_are_equal_to_the_bit(
    copied: Callable[[RankOneClassifier], RankOneClassifier], fitted: RankOneClassifier
) -> None:
    model = fitted.model_
    found = copied(fitted)
    assert fitted.model_ is model  # copying leaves the original as it was
    assert found.model_ is not model
    assert_equal(found, fitted)
    assert not hasattr(copied(RankOneClassifier(seed=2)), "model_")
    assert copied(RankOneClassifier(seed=2)).seed == 2
    numbers = np.random.default_rng(0).normal(size=(2, 3))
    given = RankOneClassifier(vectors=numbers, head_size=2).fit([["a", "b"]], [["x", "y"]])
    assert np.array_equal(copied(given).vectors, numbers)
    assert copied(given).predict([["a", "b"]]).tolist() == [["x", "y"]]


def test_no_module_is_in_a_pickle(fitted: RankOneClassifier) -> None:
    read = Recorded(pickle.dumps(fitted))
    read.load()
    ours = {module for module in read.modules if module.startswith(("torch", "rankone"))}
    assert ours == {"rankone.interop.sklearn"}


Damage = Callable[[dict[str, Any]], Any]
DAMAGE: dict[str, tuple[Damage, str]] = {
    "no weights": (lambda files: files.pop("model.safetensors"), "model.safetensors: no weights"),
    "cut short": (
        lambda files: files.update({"model.safetensors": files["model.safetensors"][:-8]}),
        "model.safetensors: damaged weights",
    ),
    "other labels": (lambda files: files.update({"labels.json": b'["x"]'}), "labels.json: 1 diff"),
    "no json": (lambda files: files.update({"config.json": b"{"}), "config.json: cannot be read"),
    "other words": (
        lambda files: files.update({"vocabulary.json": b"3"}),
        "vocabulary.json: expected a list",
    ),
    "no bytes": (lambda files: files.update({"config.json": "{}"}), "does not hold the files"),
    "nothing": (lambda files: files.clear(), "config.json: no such file"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_pickles_are_refused(
    damage: Damage, message: str, fitted: RankOneClassifier
) -> None:
    state = fitted.__getstate__()
    damage(state["model_"])
    with pytest.raises(ModelError, match=message) as caught:
        RankOneClassifier().__setstate__(state)
    assert caught.value.where is not None
    assert caught.value.where.startswith("a pickled RankOneClassifier")
    assert caught.value.remedy


@pytest.mark.parametrize("model", [None, [], b"", {1: b""}, {"config.json": None}])
def test_what_is_no_model_is_refused(model: Any, fitted: RankOneClassifier) -> None:
    with pytest.raises(ModelError):
        RankOneClassifier().__setstate__({**fitted.__getstate__(), "model_": model})


def test_a_pickle_writes_nowhere_else(
    fitted: RankOneClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    state = fitted.__getstate__()
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    state["model_"] |= {f"../../{outside.name}": b"", str(outside): b"", "other": b""}
    found = RankOneClassifier()
    found.__setstate__(state)
    assert_equal(found, fitted)
    assert not outside.exists()
    assert not list(tmp_path.iterdir())  # and leaves nothing behind
