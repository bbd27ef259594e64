"""Documents with one label each: lines, JSON lines, directories, and Python objects."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from datasets import ClassLabel, Dataset, Features, Value

import rankone
from rankone import Corpus, read_corpus
from rankone.errors import CorpusError, RankOneError, SettingError

PAIRS = [("A rose is a rose.", "pos"), ("The roof leaked,\nand it rained.", "neg"), ("No.", "neg")]


def found(corpus: Corpus) -> list[tuple[str, str]]:
    """The texts and labels of a corpus; no other token than the last is asked."""
    assert corpus.task == "class"
    asked = np.zeros(corpus.n_tokens, bool)
    asked[corpus.offsets[1:] - 1] = True
    assert ((corpus.label_ids >= 0) == (asked & corpus.labelled)).all()
    return [("".join(s.tokens), s.labels[-1] if corpus.labelled else "") for s in corpus.sentences]


def from_file(path: Path, data: str | bytes, **how: Any) -> Corpus:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_corpus(path, task="class", **how)


LINES = {
    "as they are": ("pos\tA rose.\nneg\tNo.\n", {}),
    "without a last newline": ("pos\tA rose.\nneg\tNo.", {}),
    "windows": ("\ufeffpos\tA rose.\r\nneg\tNo.\r\n", {}),
    "blank lines": ("\npos\tA rose.\n  \n\nneg\tNo.\n\n", {}),
    "a header": ("label\ttext\npos\tA rose.\nneg\tNo.\n", {}),
    "another header": ("id\t Text\tLabel\n1\tA rose.\tpos\n2\tNo.\tneg\n", {}),
    "by number": ("1\tA rose.\tx\tpos\n2\tNo.\ty\tneg\n", {"token_column": 2, "label_column": -1}),
    "by name": (
        "sentence\tpolarity\nA rose.\tpos\nNo.\tneg\n",
        {"token_column": "sentence", "label_column": "polarity"},
    ),
}


@pytest.mark.parametrize(("data", "how"), LINES.values(), ids=LINES)
def test_lines(data: str, how: dict[str, Any], tmp_path: Path) -> None:
    wanted = [("A rose.", "pos"), ("No.", "neg")]
    for name in ("a.tsv", "a.txt", "a"):
        corpus = from_file(tmp_path / name, data, **how)
        assert found(corpus) == wanted
        assert corpus.format == "tsv"
        first = next(i for i, line in enumerate(data.split("\n"), 1) if "rose" in line)
        assert corpus.lines[0] == first
    packed = from_file(tmp_path / "a.tsv.gz", gzip.compress(data.encode()), **how)
    assert found(packed) == wanted
    bare = read_corpus(tmp_path / "a.tsv", task="class", labelled=False, **how)
    assert found(bare) == [(text, "") for text, _ in wanted]
    again = rankone.memorize(corpus).model
    for name in ("a.tsv", "a.tsv.gz", "a"):
        assert found(again.read(tmp_path / name)) == wanted


def test_a_file_without_labels_has_a_text_per_line(tmp_path: Path) -> None:
    model = rankone.memorize(Corpus.from_texts(PAIRS, task="class")).model
    path = tmp_path / "a"
    path.write_text("A rose.\n\nNo.\n")
    corpus = model.read(path)
    assert (corpus.labelled, corpus.lines.tolist()) == (False, [1, 1, 1, 3, 3])
    assert found(corpus) == [("A rose.", ""), ("No.", "")]
    whole = model.read(path, format="text")
    assert found(whole) == [("A rose.\n\nNo.\n", "")]
    with pytest.raises(CorpusError, match="line 1: no label and text, separated by a TAB"):
        model.read(path, labelled=True)


CHOSEN: dict[str, tuple[dict[str, Any], str]] = {
    "by name": ({"token_column": "sentence", "label_column": "polarity"}, "sentence\tpolarity\n"),
    "by number": ({"token_column": 2, "label_column": 1}, ""),
}
BARE = ["A rose.\nNo.\n", "sentence\nA rose.\nNo.\n", "id\tsentence\n1\tA rose.\n2\tNo.\n"]


@pytest.mark.parametrize(("how", "header"), CHOSEN.values(), ids=CHOSEN)
def test_columns_of_a_model_may_be_missing_without_labels(
    how: dict[str, Any], header: str, tmp_path: Path
) -> None:
    lines = "A rose.\tpos\nNo.\tneg\n" if header else "pos\tA rose.\nneg\tNo.\n"
    model = rankone.memorize(from_file(tmp_path / "a", header + lines, **how)).model
    wanted = [("A rose.", ""), ("No.", "")]
    for data in BARE if header else BARE[:1]:
        (tmp_path / "b").write_text(data)
        assert found(model.read(tmp_path / "b")) == wanted
    (tmp_path / "c.jsonl").write_text('{"sentence": "A rose."}\n{"sentence": "No."}\n')
    assert found(model.read(tmp_path / "c.jsonl", token_column="sentence")) == wanted
    for given, message in ((["A"], "without a label"), ([{"text": "A"}], "no key 'polarity'")):
        with pytest.raises(CorpusError, match=message):
            Corpus.from_texts(given, task="class", label_column="polarity")


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "json"])
def test_json_lines(suffix: str, tmp_path: Path) -> None:
    data = "\n".join(json.dumps({"text": text, "label": label}) for text, label in PAIRS)
    corpus = from_file(tmp_path / f"a.{suffix}", data)
    assert found(corpus) == PAIRS
    # A text of two lines stands on one line of the file.
    assert [corpus.place(end - 1)[-6:] for end in corpus.offsets[1:].tolist()] == [
        "line 1",
        "line 2",
        "line 3",
    ]
    renamed = data.replace('"text"', '"review"').replace('"label"', '"stars"')
    how = {"token_column": "review", "label_column": "stars"}
    assert found(from_file(tmp_path / f"b.{suffix}", renamed, **how)) == PAIRS
    numbers = '{"text": "A", "label": 1}\n{"text": "B", "label": 0}\n'
    assert found(from_file(tmp_path / f"c.{suffix}", numbers)) == [("A", "1"), ("B", "0")]


def test_directories(tmp_path: Path) -> None:
    """A subdirectory for each label, or files of labelled documents."""
    for name, text in (("pos/a.txt", "A rose.\n"), ("neg/b", "No.\nNo.\n"), (".x/c", "hidden")):
        path = tmp_path / "folders" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    corpus = read_corpus(tmp_path / "folders", task="class")
    assert found(corpus) == [("No.\nNo.\n", "neg"), ("A rose.\n", "pos")]
    assert corpus.place(2).endswith("b, line 1")
    assert corpus.place(3).endswith("b, line 2")
    (tmp_path / "folders" / "loose").write_text("Yes.")
    with pytest.raises(CorpusError, match="loose: a document without a label"):
        read_corpus(tmp_path / "folders", task="class")
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.tsv").write_text("pos\tA rose.\n")
    (files / "b.jsonl").write_text('{"text": "No.", "label": "neg"}\n')
    assert found(read_corpus(files, task="class")) == [("A rose.", "pos"), ("No.", "neg")]
    bare = read_corpus(tmp_path / "folders", task="class", labelled=False)
    assert not bare.labelled
    assert bare.n_sentences == 3


FEATURES = Features({"text": Value("string"), "label": ClassLabel(names=["neg", "pos"])})
OBJECTS = {
    "pairs": PAIRS,
    "generator": (pair for pair in PAIRS),
    "mappings": [{"text": text, "label": label} for text, label in PAIRS],
    "columns": {"text": [t for t, _ in PAIRS], "label": [n for _, n in PAIRS]},
    "frame": pd.DataFrame(PAIRS, columns=["text", "label"]),
    "dataset": Dataset.from_list([{"text": text, "label": label} for text, label in PAIRS]),
    "class labels": Dataset.from_dict(
        {"text": [t for t, _ in PAIRS], "label": [int(n == "pos") for _, n in PAIRS]},
        features=FEATURES,
    ),
    "a stream": Dataset.from_list(
        [{"text": text, "label": label} for text, label in PAIRS]
    ).to_iterable_dataset(),
}


@pytest.mark.parametrize("given", OBJECTS.values(), ids=OBJECTS)
def test_objects(given: Any) -> None:
    corpus = Corpus.from_texts(given, task="class")
    assert found(corpus) == PAIRS
    assert corpus.lines[corpus.offsets[:-1]].tolist() == [1, 2, 3]
    assert corpus.lines[-3] == 2  # the end of a text that has a newline in it


def test_documents_without_labels() -> None:
    texts = [text for text, _ in PAIRS]
    hidden = Dataset.from_dict({"text": texts, "label": [-1, -1, -1]}, features=FEATURES)
    unknown = [{"text": text, "label": None} for text in texts]
    for given in (texts, hidden, unknown, [{"text": text} for text in texts], pd.Series(texts)):
        corpus = Corpus.from_texts(given, task="class")
        assert found(corpus) == [(text, "") for text in texts]
        with pytest.raises(CorpusError, match="no labels"):
            rankone.memorize(corpus)


def test_lower_case_comes_before_splitting() -> None:
    """Only then does a tokenizer of Hugging Face, which works in this order, find the same."""
    given = [("İl A", "x"), ("ROSE", "x")]
    corpus = Corpus.from_texts(given, task="class", lower=True)
    assert corpus.vocabulary == ("i", "\u0307", "l", " a", "rose")
    assert corpus.reading["lower"] is True
    model = rankone.memorize(corpus).model
    assert model.classify(["Rose", "rose", "RoSe"]) == ["x"] * 3
    with pytest.raises(SettingError, match="bytes have no lower case"):
        Corpus.from_texts(given, task="class", tokenizer="bytes", lower=True)


def test_labels_are_text_even_where_texts_are_bytes(tmp_path: Path) -> None:
    corpus = from_file(tmp_path / "a.tsv", "gr\u00fcn\tz\u00e9\n", tokenizer="bytes")
    assert corpus.label_names == ("gr\u00fcn",)
    assert corpus.vocabulary == ("7a", "c3", "a9")
    assert found(from_file(tmp_path / "b.tsv", b"x\t\xff\xfe\n", tokenizer="bytes")) == [
        ("fffe", "x")
    ]
    with pytest.raises(CorpusError, match="line 2: a label that is not valid UTF-8"):
        from_file(tmp_path / "c.tsv", b"x\ta\n\xff\ta\n", tokenizer="bytes")


MISTAKES = {
    "no label": ("pos\tA\nB\n", "line 2: no label and text, separated by a TAB"),
    "an empty label": ("pos\tA\n\tB\n", "line 2: an empty label"),
    "an empty document": ("pos\tA\nneg\t\n", "line 2: an empty document"),
    "three columns": ("pos\tA\nneg\tB\tC\n", "line 2: 3 columns, but label and text are two"),
    "nothing": ("\n\n", "no document in it"),
    "not text": (b"pos\t\xff\n", "line 1: byte 0xff is not valid UTF-8"),
    "a NUL": (b"pos\tA\0\n", "line 1: a NUL byte"),
}


@pytest.mark.parametrize(("data", "message"), MISTAKES.values(), ids=MISTAKES)
def test_lines_that_mean_nothing(data: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=message) as caught:
        from_file(tmp_path / "a.tsv", data)
    assert caught.value.remedy


JSON_MISTAKES = {
    "no label": ('{"text": "A", "label": 1}\n{"text": "B"}', "line 2: no key 'label'"),
    "none of them": ('{"text": "A"}', "line 1: no key 'label'"),
    "null": ('{"text": "A", "label": null}', "line 1: None is not a label"),
    "empty": ('{"text": "A", "label": ""}', "line 1: '' is not a label"),
    "a number with a point": ('{"text": "A", "label": 0.5}', "line 1: 0.5 is not a label"),
    "no text": ('{"label": "x"}', "line 1: no key 'text'"),
    "an empty text": ('{"text": "", "label": "x"}', "line 1: an empty document"),
    "a list": ('{"text": ["a"], "label": "x"}', r"line 1: \['a'\] is not a text"),
    "not JSON": ("pos\tA", "line 1: "),
}


@pytest.mark.parametrize(("data", "message"), JSON_MISTAKES.values(), ids=JSON_MISTAKES)
def test_json_that_means_nothing(data: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=message) as caught:
        from_file(tmp_path / "a.jsonl", data)
    assert caught.value.remedy


MIXED: dict[str, Any] = {
    "a string": [("A", "x"), "B"],
    "a mapping": [{"text": "A"}, {"text": "B", "label": "x"}],
    "a null": [{"text": "A", "label": "x"}, {"text": "B", "label": None}],
    "a hidden one": Dataset.from_dict({"text": ["A", "B"], "label": [0, -1]}, features=FEATURES),
}


@pytest.mark.parametrize("given", MIXED.values(), ids=MIXED)
def test_either_all_have_a_label_or_none(given: Any) -> None:
    with pytest.raises(CorpusError, match="a document without a label, and others have one"):
        Corpus.from_texts(given, task="class")


def test_files_to_predict_are_not_mixed_either(tmp_path: Path) -> None:
    model = rankone.memorize(Corpus.from_texts(PAIRS, task="class")).model
    (path := tmp_path / "a").write_text("pos\tA rose.\nNo.\n")
    with pytest.raises(CorpusError, match="line 2: a document without a label, and others"):
        model.read(path)


SETTINGS = {
    "an unknown column": ({"label_column": "x", "token_column": "a"}, "line 1: no column 'x'"),
    "one column for both": ({"label_column": 2}, "one column is taken as text and as label"),
    "the same by name": (
        {"label_column": "b", "token_column": "b"},
        "one column is taken as text and as label",
    ),
    "the column 0": ({"label_column": 0}, "no column 0"),
    "a column that is not there": ({"label_column": 3}, "no label and text"),
    "a scheme": ({"scheme": "iob2"}, "texts have no entity tags"),
    "a window": ({"window": 3}, "the task 'class' has no window"),
    "an unknown tokenizer": ({"tokenizer": "/x/y"}, "no tokenizer '/x/y'"),
}


@pytest.mark.parametrize(("how", "message"), SETTINGS.values(), ids=SETTINGS)
def test_settings_that_mean_nothing(how: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(RankOneError, match=message) as caught:
        from_file(tmp_path / "a.tsv", "a\tb\nc\td\n", **how)
    assert caught.value.remedy


@pytest.mark.parametrize("number", [-2, 2, True, 0.5])
def test_a_number_of_a_label_is_one_of_its_names(number: Any) -> None:
    class Rows(list[Any]):
        features = FEATURES

    assert Corpus.from_texts(Rows([{"text": "A", "label": 1}]), task="class").label_names == (
        "pos",
    )
    with pytest.raises(CorpusError, match=r"is not (the number of )?a label"):
        Corpus.from_texts(Rows([{"text": "A", "label": number}]), task="class")
