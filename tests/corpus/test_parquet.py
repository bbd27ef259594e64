"""Parquet: lists as `datasets` writes them, or a row per token; the rules of other records."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import rankone
from corpora import Sentences, sentences
from rankone import Corpus
from rankone.corpus import parquet as parquet_
from rankone.corpus.pieces import plan, read_piece
from rankone.errors import CorpusError

TOKENS = [["a", "rose"], [], ["is"], ["-DOCSTART-"], ["a"]]
TAGS = [["X", "Y"], [], ["Z"], ["O"], ["X"]]
SAME = [(["a", "rose"], ["X", "Y"], 1), (["is"], ["Z"], 3), (["a"], ["X"], 5)]


def put(tmp_path: Path, columns: dict[str, Any], rows: int = 1 << 20, **types: Any) -> Path:
    path = tmp_path / "c.parquet"
    arrays = {key: pa.array(values, types.get(key)) for key, values in columns.items()}
    parquet.write_table(pa.table(arrays), path, row_group_size=rows)
    return path


def rows(corpus: Corpus) -> list[tuple[list[str], list[str], int]]:
    return [(s.tokens, s.labels, s.line) for s in corpus.sentences]


@pytest.mark.parametrize("batch", [1, 2, 100])
@pytest.mark.parametrize("kind", [None, pa.large_list(pa.large_string()), "coded"])
def test_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int, kind: Any) -> None:
    monkeypatch.setattr(parquet_, "BATCH", batch)
    kind = pa.list_(pa.dictionary(pa.int32(), pa.string())) if kind == "coded" else kind
    path = put(tmp_path, {"id": [0] * 5, "tokens": TOKENS, "ner_tags": TAGS}, 2, tokens=kind)
    corpus = rankone.read_corpus(path)
    assert rows(corpus) == SAME
    assert (corpus.format, str(corpus.columns)) == (
        "parquet",
        "tokens in 'tokens', labels in 'ner_tags'",
    )
    assert corpus.vocabulary == ("a", "rose", "is")
    assert corpus.place(2) == f"{path}, line 3"
    assert not rankone.read_corpus(path, labelled=False).labelled


def test_what_datasets_writes(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    for wrap in (datasets.Sequence, datasets.List):
        features = datasets.Features(
            tokens=wrap(datasets.Value("string")),
            ner_tags=wrap(datasets.ClassLabel(names=["O", "B-X", "I-X"])),
        )
        made = {"tokens": [["a", "b"], ["c"]], "ner_tags": [[1, 2], [0]]}
        datasets.Dataset.from_dict(made, features).to_parquet(tmp_path / "d.parquet")
        corpus = rankone.read_corpus(tmp_path / "d.parquet")
        assert rows(corpus) == [(["a", "b"], ["B-X", "I-X"], 1), (["c"], ["O"], 2)]
        assert corpus.scheme == "IOB2"


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_a_row_per_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(parquet_, "BATCH", batch)
    table = {
        "sentence_id": [1, 1, 2, None, None, 2, 2, 2],
        "token": ["a", "b", "a", "c", "d", "e", "-DOCSTART-", "f"],
        "tag": ["X", "Y", "X", "X", "Z", "X", "O", "X"],
    }
    path = put(tmp_path, table, 3)
    expected = [(["a", "b"], 1), (["a"], 3), (["c", "d"], 4), (["e"], 6), (["f"], 8)]
    assert [(tokens, line) for tokens, _, line in rows(rankone.read_corpus(path))] == expected
    assert rankone.read_corpus(path).label_names == ("X", "Y", "Z")


def test_whole_numbers_are_labels_too(tmp_path: Path) -> None:
    path = put(tmp_path, {"words": [["a", "b"]], "labels": [[3, 10]]})
    assert rankone.read_corpus(path).label_names == ("3", "10")


@given(sentences(), st.integers(1, 5), st.integers(1, 4))
def test_the_same_as_from_python(
    tmp_path_factory: pytest.TempPathFactory, made: Sentences, group: int, batch: int
) -> None:
    columns = {"tokens": [t for t, _ in made], "labels": [k for _, k in made]}
    path = put(tmp_path_factory.getbasetemp(), columns, group)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_, "BATCH", batch)
        found, expected = rankone.read_corpus(path), Corpus.from_sentences(made)
        assert found.sha256 == expected.sha256
        words, before, line = list[str](), list[int](), 0
        for piece in plan(path, size=1):
            part = read_piece(piece)
            words += [part.vocabulary[i] for i in part.token_ids]
            before += (part.lines + line).tolist()
            line += part.n_lines
    assert words == [word for tokens, _ in made for word in tokens]
    assert before == found.lines.tolist()


def test_a_sentence_over_row_groups_is_in_one_piece(tmp_path: Path) -> None:
    table = {"sent_id": ["s", "s", "s", "t", "u"], "token": list("abcde"), "tag": list("XXXXX")}
    found = [read_piece(piece) for piece in plan(put(tmp_path, table, 1), size=1)]
    assert [part.vocabulary for part in found] == [["a", "b", "c"], ["d"], ["e"]]


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = put(tmp_path, {"tokens": TOKENS, "labels": TAGS}).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert rows(rankone.read_corpus("-")) == SAME


LIST = {"tokens": [["a", "b"], ["c"]], "labels": [["X", "Y"], ["Z"]]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": None}, "no key 'tokens'\n.*it has 'labels': choose one by token_column"),
        ({"labels": None}, "no key 'labels'"),
        ({"labels": None, "ner": [["X"], ["Y"]], "pos": [["X"], ["Y"]]}, "several labels"),
        ({"labels": [["X", "Y"], ["Z", "Z"]]}, "line 2: 1 token but 2 labels"),
        ({"labels": [["X", "Y"], None]}, "line 2: 'labels' is None, not a list"),
        ({"labels": [["X", "Y"], [None]]}, "line 2: None among 'labels' is not a word"),
        ({"tokens": [["a", "b"], [""]]}, "line 2: an empty word among 'tokens'"),
        ({"tokens": [["a", "b"], ["c\0"]]}, "line 2: a NUL character"),
        ({"tokens": [["a", "b"], ["c"]], "labels": [[1.5, 1.0], [2.0]]}, "line 1: 1.5 among"),
        ({"labels": ["X", "Y"]}, "line 1: 'labels' is 'X', not a list"),
        ({"tokens": ["a", "b"], "labels": ["X", "Y"]}, "no column says which sentence"),
        ({"tokens": [[], []], "labels": [[], []]}, "no sentence in it"),
    ],
)
def test_refusals(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    table = {key: values for key, values in {**LIST, **change}.items() if values is not None}
    path = put(tmp_path, table, 1)
    with pytest.raises(CorpusError, match=message) as caught:
        rankone.read_corpus(path)
    assert caught.value.remedy
    assert str(path) in str(caught.value.where)
    if "line 2" in message:
        _, second = plan(path, size=1)
        with pytest.raises(CorpusError, match=message):
            read_piece(second)


def test_what_is_not_parquet(tmp_path: Path) -> None:
    path = put(tmp_path, LIST)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(CorpusError, match="damaged Parquet data"):
        rankone.read_corpus(path)
    path.write_text("a X\n")
    with pytest.raises(CorpusError, match="not Parquet data"):
        rankone.read_corpus(path)
    assert rankone.read_corpus(path, format="conll").n_tokens == 1
    path.write_bytes(whole)
    with pytest.raises(CorpusError, match="a NUL byte"):
        rankone.read_corpus(path, format="conll")
