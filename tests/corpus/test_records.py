"""Sentences as Python objects: every form gives the corpus of the file, every flaw is named."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given

import corpora
import rankone
from rankone import Corpus
from rankone.corpus.records import BATCH
from rankone.errors import CorpusError, SettingError
from rankone.nn.scores import score

os.environ["HF_HUB_OFFLINE"] = "1"  # read when datasets is imported
import datasets
from datasets import ClassLabel, Dataset, Features, IterableDataset, List, Sequence, Value

Pairs = list[tuple[list[str], list[str]]]
RAGGED: Pairs = [
    (["Ada", "Lovelace", "met", "Grace"], ["B-PER", "I-PER", "O", "B-PER"]),
    (["in", "Paris"], ["O", "B-LOC"]),
    (["Paris", "slept"], ["B-PER", "O"]),
]
EVEN: Pairs = [(["a", "b"], ["X", "Y"]), (["b", "c"], ["Y", "Z"]), (["c", "a"], ["X", "X"])]
SINGLE: Pairs = [(["a"], ["X"]), (["b"], ["Y"])]


def dataset(pairs: Pairs, **more: list[Any]) -> Dataset:
    """Labels as numbers under "ner_tags", whose names are not in the order in which they come."""
    names = sorted({label for _, labels in pairs for label in labels})
    columns = {
        "id": [str(i) for i in range(len(pairs))],
        "tokens": [tokens for tokens, _ in pairs],
        "ner_tags": [[names.index(label) for label in labels] for _, labels in pairs],
    }
    features = Features(
        {
            "id": Value("string"),
            "tokens": List(Value("string")),
            "ner_tags": List(ClassLabel(names=names)),
        }
    )
    made = Dataset.from_dict(columns, features=features)
    for name, column in more.items():
        made = made.add_column(name, column)
    return made


def mappings(pairs: Pairs, token: str = "tokens", label: str = "labels") -> list[dict[str, Any]]:
    return [{"id": i, token: words, label: tags} for i, (words, tags) in enumerate(pairs)]


def table(pairs: Pairs) -> dict[str, list[list[str]]]:
    return {"tokens": [words for words, _ in pairs], "labels": [tags for _, tags in pairs]}


def spelled(batch: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Strings where the feature promises numbers."""
    return {**batch, "ner_tags": [[names[i] for i in row] for row in batch["ner_tags"]]}


def transformed(pairs: Pairs) -> Dataset:
    names = dataset(pairs).features["ner_tags"].feature.names
    return dataset(pairs).with_transform(lambda batch: spelled(batch, names))


def forgetful(data: Dataset) -> IterableDataset:
    """A stream that does not know its features."""
    stream = data.to_iterable_dataset().map(lambda row: row)
    assert stream.features is None
    assert stream.column_names is None
    return stream


FORMS: dict[str, Callable[[Pairs], Any]] = {
    "pairs": lambda pairs: pairs,
    "lists of two": lambda pairs: [[words, tags] for words, tags in pairs],
    "tuples": lambda pairs: [(tuple(words), tuple(tags)) for words, tags in pairs],
    "iterators": lambda pairs: [(iter(words), map(str, tags)) for words, tags in pairs],
    "arrays": lambda pairs: [(np.array(words), np.array(tags)) for words, tags in pairs],
    "numpy strings": lambda pairs: [(list(np.array(w)), list(np.array(t))) for w, t in pairs],
    "sentences": lambda pairs: Corpus.from_sentences(pairs).sentences,
    "generator": lambda pairs: (pair for pair in pairs),
    "mappings": mappings,
    "words and tags": lambda pairs: mappings(pairs, "words", "tags"),
    "generator of mappings": lambda pairs: iter(mappings(pairs, "tokens", "upos")),
    "mapping of columns": table,
    "data frame": lambda pairs: dataset(pairs).to_pandas().assign(ner_tags=table(pairs)["labels"]),
    "dataset": dataset,
    "dataset of strings": lambda pairs: Dataset.from_dict(table(pairs)),
    "dataset with indices": lambda pairs: dataset(pairs[::-1]).select(range(len(pairs))[::-1]),
    "transformed dataset": transformed,
    "numpy dataset": lambda pairs: dataset(pairs).with_format("numpy"),
    "torch dataset": lambda pairs: dataset(pairs).with_format("torch"),
    "pandas dataset": lambda pairs: dataset(pairs).with_format("pandas"),
    "rows of a dataset": lambda pairs: list(transformed(pairs)),
    "stream": lambda pairs: dataset(pairs).to_iterable_dataset(),
    "numpy stream": lambda pairs: dataset(pairs).to_iterable_dataset().with_format("numpy"),
    "torch stream": lambda pairs: dataset(pairs).to_iterable_dataset().with_format("torch"),
    "stream without features": lambda pairs: forgetful(Dataset.from_dict(table(pairs))),
}


def file_of(pairs: Pairs, path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in mappings(pairs)))
    return path


def assert_same(corpus: Corpus, other: Corpus) -> None:
    """All that a construction sees; types too, since numpy's strings equal Python's."""
    for name in ("vocabulary", "label_names", "scheme"):
        assert getattr(corpus, name) == getattr(other, name)
    assert {type(word) for word in corpus.vocabulary + corpus.label_names} == {str}
    for name in ("token_ids", "label_ids", "offsets", "lines"):
        assert getattr(corpus, name).tolist() == getattr(other, name).tolist()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pairs", [RAGGED, EVEN, SINGLE], ids=["ragged", "even", "single"])
def test_every_form_gives_the_corpus_of_the_file(tmp_path: Path, form: str, pairs: Pairs) -> None:
    read = rankone.read_corpus(file_of(pairs, tmp_path / "c.jsonl"))
    corpus = Corpus.from_sentences(FORMS[form](pairs))
    assert_same(corpus, read)
    assert (corpus.source, corpus.format) == ("<python>", "python")
    assert corpus.seconds > 0
    assert Corpus.from_sentences(FORMS[form](pairs), source="here").source == "here"


@given(corpora.sentences())
def test_datasets_give_the_corpus_of_the_pairs(sentences: corpora.Sentences) -> None:
    wanted = Corpus.from_sentences(sentences)
    for form in ("dataset", "numpy dataset", "torch dataset", "stream", "mapping of columns"):
        assert_same(Corpus.from_sentences(FORMS[form](sentences)), wanted)


@pytest.mark.parametrize("form", ["dataset", "numpy dataset", "stream", "mapping of columns"])
def test_batches_are_put_together_in_order(form: str) -> None:
    pairs = [([f"w{i}", "x"][: 1 + i % 2], [f"L{i % 3}", "x"][: 1 + i % 2]) for i in range(2500)]
    assert len(pairs) > 2 * BATCH
    assert_same(Corpus.from_sentences(FORMS[form](pairs)), Corpus.from_sentences(pairs))
    pairs[BATCH + 1] = ([""], ["L0"])
    with pytest.raises(CorpusError, match=f"^<python>, sentence {BATCH + 2}: an empty word"):
        Corpus.from_sentences(FORMS[form](pairs))


def test_a_dataset_is_memorized_to_the_bit_as_its_file(tmp_path: Path) -> None:
    path = file_of(RAGGED, tmp_path / "c.jsonl")
    results = rankone.memorize(dataset(RAGGED)), rankone.memorize(path)
    states = [result.model.network.state_dict() for result in results]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[1])
    assert results[0].model.labels == results[1].model.labels
    assert results[0].model.predict([words for words, _ in RAGGED]) == [tags for _, tags in RAGGED]
    assert results[0].seconds["read"] > 0
    assert results[0].settings["scheme"] == "IOB2"


def test_training_takes_a_dataset_too() -> None:
    trained = rankone.train(
        dataset(RAGGED), rankone.Settings(epochs=1), evaluate=[dataset(RAGGED).with_format("numpy")]
    )
    assert set(trained.model.labels) == {"O", "B-PER", "I-PER", "B-LOC"}
    assert trained.evaluations[0].tokens == 8


# Columns.

OTHERS = {
    "pos_tags": [[0, 1, 2, 3], [4, 5], [6, 7]],
    "labels": [["w", "x", "y", "z"], ["u", "v"], ["s", "t"]],
}


@pytest.mark.parametrize("column", ["ner_tags", "pos_tags", "labels", None])
def test_columns_are_chosen_by_name(column: str | None) -> None:
    data = dataset(RAGGED, **OTHERS)
    wanted = {
        "ner_tags": [tag for _, tags in RAGGED for tag in tags],
        "pos_tags": list("01234567"),
        "labels": list("wxyzuvst"),
        None: list("wxyzuvst"),
    }[column]
    for form in (data, data.to_iterable_dataset(), data.with_format("torch")):
        result = rankone.memorize(form, label_column=column)
        found = [label for words, _ in RAGGED for label in result.model.predict([words])[0]]
        assert found == wanted


def test_tokens_are_chosen_by_name() -> None:
    data = dataset(EVEN, lemmas=[["x", "y"], ["z", "x"], ["y", "z"]])
    chosen = Corpus.from_sentences(data, token_column="lemmas", label_column="tokens")
    assert chosen.vocabulary == ("x", "y", "z")
    assert chosen.label_names == ("a", "b", "c")
    both = [{"words": ["no"], "tokens": ["yes"], "labels": ["X"]}]
    assert Corpus.from_sentences(both).vocabulary == ("yes",)


def test_columns_of_a_path_go_to_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "c.conll"
    path.write_text("a DT X\nrose NN Y\n")
    assert rankone.memorize(path, label_column=2).model.labels == ("DT", "NN")
    assert rankone.memorize(path, token_column=2).model.vocabulary == ("DT", "NN")


def test_a_corpus_that_is_read_has_no_columns() -> None:
    for how in ({"label_column": "x"}, {"token_column": 1}):
        with pytest.raises(SettingError, match="read has no columns to choose from"):
            rankone.memorize(Corpus.from_sentences(EVEN), **how)


# Numbers.


def test_numbers_without_names_are_their_digits() -> None:
    rows = [{"tokens": ["a", "b"], "tags": [7, np.int8(-1)]}, {"tokens": ["c"], "tags": ["7"]}]
    assert Corpus.from_sentences(rows).label_names == ("7", "-1")
    nameless = Dataset.from_list([{"tokens": ["a", "b"], "tags": [10, 2]}])
    for data in (nameless, nameless.with_format("numpy"), nameless.with_format("torch")):
        assert Corpus.from_sentences(data).label_names == ("10", "2")
    assert Corpus.from_sentences(forgetful(dataset(EVEN))).label_names == ("0", "1", "2")
    assert Corpus.from_sentences([([1, 20], ["X", "Y"])]).vocabulary == ("1", "20")


def stub(batches: list[dict[str, Any]], **features: Any) -> SimpleNamespace:
    """As much of a dataset as is looked at."""
    return SimpleNamespace(
        features=features, column_names=list(features), iter=lambda **_: iter(batches)
    )


NAMES = ClassLabel(names=["zero", "one"])


@pytest.mark.parametrize(
    "feature",
    [
        List(NAMES),
        Sequence(NAMES),
        Sequence(NAMES, length=2),
        datasets.LargeList(NAMES),
        [NAMES],  # what versions before 4 keep as it is
        SimpleNamespace(feature=NAMES, length=-1, id=None),  # their Sequence
    ],
)
def test_names_are_found_in_every_kind_of_list(feature: Any) -> None:
    batch = {"tokens": [["a", "b"]], "tags": [[1, 0]]}
    corpus = Corpus.from_sentences(stub([batch], tags=feature))
    assert corpus.label_names == ("one", "zero")


def test_only_numbers_of_labels_get_names() -> None:
    batch = {"tokens": [[1, 0, "b"]], "tags": [[np.str_("two"), 1, "zero"]]}
    corpus = Corpus.from_sentences(stub([batch], tags=List(NAMES)))
    assert corpus.vocabulary == ("1", "0", "b")
    assert corpus.label_names == ("two", "one", "zero")
    assert {type(name) for name in corpus.label_names} == {str}


def test_the_first_sentence_decides_which_columns_are_read() -> None:
    rows = [{"tokens": ["a"], "tags": [0]}, {"tokens": ["b"], "tags": [1], "labels": ["no"]}]
    batches = [{key: [value] for key, value in row.items()} for row in rows]
    assert Corpus.from_sentences(rows).label_names == ("0", "1")
    assert Corpus.from_sentences(stub(batches, tags=List(NAMES))).label_names == ("zero", "one")


# What is passed over.


def test_sentences_without_words_are_passed_over_and_counted() -> None:
    pairs = [([], []), (["-DOCSTART-"], ["O"]), *RAGGED, ([], [])]
    for form in ("pairs", "mappings", "dataset", "numpy dataset", "torch dataset"):
        corpus = Corpus.from_sentences(FORMS[form](pairs))
        assert [s.tokens for s in corpus.sentences] == [words for words, _ in RAGGED]
        assert [s.line for s in corpus.sentences] == [3, 4, 5]


# Schemes.


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["B-X", "I-X", "O"], "IOB2"),
        (["I-X", "I-X", "O"], "IOB1"),
        (["B-X", "I-X", "N"], None),
        (["O", "O", "O"], None),
    ],
)
def test_the_scheme_is_found_and_the_tags_are_kept(
    tmp_path: Path, tags: list[str], scheme: str | None
) -> None:
    corpus = Corpus.from_sentences(dataset([(["a", "b", "c"], tags)]))
    read = rankone.read_corpus(file_of([(["a", "b", "c"], tags)], tmp_path / "c.jsonl"))
    assert corpus.scheme == read.scheme == scheme
    assert corpus.sentences[0].labels == tags
    assert corpus.reading.get("scheme", "keep") == read.reading["scheme"]
    f1 = score(rankone.memorize(corpus).model, corpus).f1
    assert f1 == (None if scheme is None else 1.0)


# Refusals.


def one(tokens: Any, labels: Any) -> list[dict[str, Any]]:
    """Two sentences, the second of which is at fault."""
    return [{"tokens": ["a"], "labels": ["X"]}, {"tokens": tokens, "labels": labels}]


def numbered(*numbers: int) -> Dataset:
    """A good sentence, and one with these numbers of the labels X and Y."""
    features = Features(
        {"tokens": List(Value("string")), "tags": List(ClassLabel(names=["X", "Y"]))}
    )
    columns = {"tokens": [["a"], ["b"] * len(numbers)], "tags": [[0], list(numbers)]}
    return Dataset.from_dict(columns, features=features)


def beyond(number: int) -> Dataset:
    """A number too large, which datasets itself does not store."""
    return numbered(1).with_transform(lambda batch: {**batch, "tags": [[0], [number]]})


def splits() -> datasets.DatasetDict:
    return datasets.DatasetDict({"train": dataset(EVEN), "validation": dataset(EVEN)})


def streams() -> datasets.IterableDatasetDict:
    stream = dataset(EVEN).to_iterable_dataset()
    return datasets.IterableDatasetDict({"train": stream, "test": stream})


def arrow() -> Dataset:
    return dataset(EVEN).with_format("arrow")


HAS = "it has 'id', 'tokens', 'ner_tags', 'upos': choose one by label_column"
SEVERAL = dataset(EVEN, upos=[["X", "Y"]] * 3)
REFUSED: list[tuple[Callable[[], Any], dict[str, Any], str, str]] = [
    # numbers
    (lambda: numbered(0, -100), {}, "sentence 2: -100 among 'tags' is not the number", "0 to 1"),
    (lambda: numbered(-1), {}, "sentence 2: -1 among 'tags' is not the number", "0 to 1"),
    (lambda: beyond(2), {}, "sentence 2: 2 among 'tags' is not the number of a", "take it out"),
    (lambda: numbered(-1).with_format("numpy"), {}, "sentence 2: -1 among 'tags'", "0 to 1"),
    (lambda: numbered(-1).with_format("torch"), {}, "sentence 2: -1 among 'tags'", "0 to 1"),
    # choice of columns
    (lambda: SEVERAL, {}, "several labels: 'ner_tags', 'upos'", HAS),
    (lambda: SEVERAL.to_iterable_dataset(), {}, "several labels: 'ner_tags', 'upos'", HAS),
    (lambda: list(SEVERAL), {}, "sentence 1: several labels: 'ner_tags', 'upos'", HAS),
    (lambda: SEVERAL, {"label_column": "ner"}, "no key 'ner'", HAS),
    (lambda: SEVERAL, {"label_column": 3}, "no key 3", HAS),
    (lambda: SEVERAL, {"token_column": "words"}, "no key 'words'", "by token_column"),
    (lambda: [{"tokens": ["a"], "x": 1}], {}, "sentence 1: no key 'labels'", "has 'tokens', 'x':"),
    (lambda: [{"text": ["a"]}], {}, "sentence 1: no key 'tokens'", "'text': choose one by token_"),
    (lambda: [{}], {}, "sentence 1: no key 'tokens'", "it has no keys"),
    (lambda: dict.fromkeys(range(99)), {}, "no key 'tokens'", r"has 0, 1, .*, 19, \.\.\.: choose"),
    (lambda: dict.fromkeys(range(20)), {}, "no key 'tokens'", "has 0, 1, .*, 18, 19: choose"),
    (lambda: [*mappings(EVEN), {"tokens": []}], {}, "sentence 4: no key 'labels'", "of the first"),
    (lambda: EVEN, {"label_column": "x"}, "sentence 1: not a mapping, so there are no", "leave"),
    (lambda: EVEN, {"token_column": 1}, "sentence 1: not a mapping, so there are no", "leave"),
    # things as a whole
    (splits, {}, "several data sets: 'train', 'validation'", r"dataset\['train'\]"),
    (streams, {}, "several data sets: 'train', 'test'", r"dataset\['train'\]"),
    (arrow, {}, "a dataset that gives objects of type Table", r"with_format\(None\)"),
    (lambda: {"tokens": [["a"]], "labels": []}, {}, "1 lists of tokens but 0 of labels", "equal"),
    (lambda: {"tokens": 3, "labels": []}, {}, "'tokens' is 3, not a list", "lists of strings"),
    (lambda: one(1, 1)[0], {}, "sentence 1: 'tokens' is 'a', not a list", "lists of strings"),
    (lambda: 3, {}, "no sentences in 3", r"\(tokens, labels\)"),
    (lambda: None, {}, "no sentences in None", r"\(tokens, labels\)"),
    (lambda: [], {}, "no sentence in it", "generator"),
    (lambda: dataset(EVEN).select([]), {}, "no sentence in it", "at least one"),
    (lambda: [([], [])], {}, "no sentence in it", "at least one"),
    # sentences
    (lambda: [3], {}, "sentence 1: not a sentence", r"\(tokens, labels\)"),
    (lambda: [*EVEN, "abc"], {}, "sentence 4: not a sentence", r"\(tokens, labels\)"),
    (lambda: [(["a"], ["X"], 1)], {}, "sentence 1: not a sentence", "mapping"),
    (lambda: dataset(EVEN)["tokens"], {}, "sentence 1: 'tokens' is 'a', not a list", "lists"),
    (lambda: one(["a", "b"], ["X"]), {}, "sentence 2: 2 tokens but 1 label", "one label per"),
    (lambda: one(["a"], []), {}, "sentence 2: 1 token but 0 labels", "one label per token"),
    (lambda: Dataset.from_list(one(["a"], [])), {}, "sentence 2: 1 token but 0 labels", "exactly"),
    # fields
    (lambda: one(None, ["X"]), {}, "sentence 2: 'tokens' is None, not a list", "lists of strings"),
    (lambda: one(["a"], None), {}, "sentence 2: 'labels' is None, not a list", "lists of strings"),
    (lambda: Dataset.from_list(one(["a"], None)), {}, "sentence 2: 'labels' is None", "lists"),
    (lambda: one("ab", ["X", "Y"]), {}, "sentence 2: 'tokens' is 'ab', not a list", "lists"),
    (lambda: one(["a"], "X"), {}, "sentence 2: 'labels' is 'X', not a list", "lists"),
    (lambda: one(["a"], b"X"), {}, "sentence 2: 'labels' is b'X', not a list", "lists"),
    (lambda: one({"a"}, ["X"]), {}, "sentence 2: 'tokens' is {'a'}, not a list", "lists"),
    (lambda: one(["a"], {"a": "X"}), {}, "sentence 2: 'labels' is {'a': 'X'}, not a list", "lists"),
    (lambda: one(["a"], np.array("X")), {}, "sentence 2: 'labels' is 'X', not a list", "lists"),
    (lambda: one(["a"], np.array(3)), {}, "sentence 2: 'labels' is 3, not a list", "lists"),
    # words
    (lambda: one(["a", None], ["X", "Y"]), {}, "sentence 2: None among 'tokens' is not", "strings"),
    (lambda: one(["a"], [None]), {}, "sentence 2: None among 'labels' is not a word", "strings"),
    (lambda: one(["a"], [["X"]]), {}, r"sentence 2: \['X'\] among 'labels' is not", "strings"),
    (lambda: one([["a"]], ["X"]), {}, r"sentence 2: \['a'\] among 'tokens' is not", "strings"),
    (lambda: one(["a"], np.array([[1]])), {}, r"sentence 2: \[1\] among 'labels' is not", "whole"),
    (lambda: one(["a"], [True]), {}, "sentence 2: True among 'labels' is not a word", "whole"),
    (lambda: one(["a"], [np.True_]), {}, "sentence 2: .*True_? among 'labels' is not", "whole"),
    (lambda: one(["a"], np.array([True])), {}, "sentence 2: True among 'labels' is not", "whole"),
    (lambda: one(["a"], [1.0]), {}, r"sentence 2: 1\.0 among 'labels' is not a word", "whole"),
    (lambda: one(["a"], torch.tensor([1.0])), {}, r"sentence 2: 1\.0 among 'labels'", "whole"),
    (lambda: one(["a"], [b"X"]), {}, "sentence 2: b'X' among 'labels' is not a word", "whole"),
    (lambda: one([10**5000], ["X"]), {}, "sentence 2: a number of thousands of digits", "smaller"),
    (lambda: one([""], ["X"]), {}, "sentence 2: an empty word", "out"),
    (lambda: one(["a"], [""]), {}, "sentence 2: an empty word", "out"),
    (lambda: one(["a\0"], ["X"]), {}, "sentence 2: a NUL character in a word", "out"),
    (lambda: one(["a"], ["\ud800"]), {}, "sentence 2: half of a surrogate pair", "out"),
]


@pytest.mark.parametrize(
    ("make", "how", "message", "remedy"), REFUSED, ids=[row[2] for row in REFUSED]
)
def test_refusals_say_where_what_and_the_remedy(
    make: Callable[[], Any], how: dict[str, Any], message: str, remedy: str
) -> None:
    with pytest.raises(CorpusError, match=f"^<python>(: |, ){message}") as caught:
        rankone.memorize(make(), **how)
    assert re.search(remedy, caught.value.remedy or "")
    assert len(str(caught.value)) < 300


def test_what_only_looks_odd_is_read() -> None:
    odd = ["\u00a0", " ", "a\u200db", "\ue000", "\x01"]
    assert Corpus.from_sentences([(odd, odd)]).vocabulary == tuple(odd)


def test_a_generator_is_read_once_and_only_as_far_as_it_is_good() -> None:
    def rows() -> Iterator[Any]:
        yield EVEN[0]
        yield 3
        raise AssertionError("read on after a fault")

    with pytest.raises(CorpusError, match="sentence 2"):
        Corpus.from_sentences(rows())
    once = iter(EVEN)
    assert Corpus.from_sentences(once).n_sentences == 3
    with pytest.raises(CorpusError, match="no sentence in it"):
        Corpus.from_sentences(once)


def test_sentences_of_a_corpus_keep_their_lines() -> None:
    corpus = Corpus.from_sentences(EVEN)
    later = [dataclasses.replace(s, line=10 * s.line) for s in corpus.sentences[1:]]
    assert [s.line for s in Corpus.from_sentences(later).sentences] == [20, 30]


def test_the_package_never_imports_datasets() -> None:
    imports = re.compile(r"^\s*(import|from) datasets\b", re.MULTILINE)
    files = list(Path(rankone.__file__).parent.rglob("*.py"))
    assert len(files) > 100
    assert not [file for file in files if imports.search(file.read_text())]
