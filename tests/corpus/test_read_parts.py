"""Files read into parts are what they are when they are read as a whole."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone import read_corpus
from rankone.corpus import read_parts as reading
from rankone.corpus.part_numbers import TREE
from rankone.corpus.read import read_like
from rankone.corpus.read_parts import read_parts, read_parts_like
from rankone.engines import Engine, open_engine
from rankone.errors import CorpusError, RankOneError, SettingError

WHOLE = ("source", "vocabulary", "label_names", "files", "format", "scheme", "task", "columns")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Pieces of a few bytes, parts of a few tokens."""
    monkeypatch.setattr(reading, "LEAST", 1)
    with open_engine("disk") as opened:
        opened.room = 2000
        yield opened


def same(source: Any, engine: Engine, **how: Any) -> int:
    """Returns the number of parts."""
    whole, found = read_corpus(source, **how), read_parts(source, engine, **how)
    for name in (*WHOLE, "remarks", "reading"):
        assert getattr(found.heading, name) == getattr(whole, name), name
    parts = [found.part(number) for number in range(len(found.parts))]
    for name in ("token_ids", "label_ids", "lines", "file_ids"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert joined.tolist() == getattr(whole, name).tolist(), name
    assert found.sha256 == whole.sha256
    sizes = [(p.n_tokens, p.n_sentences, len(p.asked), p.longest) for p in parts]
    assert sizes == [(p.tokens, p.sentences, p.asked, p.longest) for p in found.parts]
    starts = np.cumsum([0, *(part.n_tokens for part in parts)])[:-1]
    assert [part.start for part in found.parts] == starts.tolist()
    found.drop()
    return len(parts)


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


TAGS = st.sampled_from(["O", "I-X", "B-X", "I-Y", "B-Y"])
ROWS = st.lists(st.lists(st.tuples(st.sampled_from("abcdefg"), TAGS), min_size=1), min_size=1)


def refusal(read: Callable[[], object]) -> str | None:
    try:
        read()
    except RankOneError as error:
        return str(error)
    return None


def written(sentences: list[list[tuple[str, str]]]) -> str:
    return "\n".join("".join(f"{w} {c}\n" for w, c in rows) for rows in sentences)


@given(st.lists(ROWS, min_size=1, max_size=3), st.sampled_from(["keep", "auto", "iob2"]))
def test_files_of_tags(
    tmp_path_factory: pytest.TempPathFactory, files: list[Any], scheme: str
) -> None:
    """The scheme of a file is known when all of it is: one I- in the last piece decides."""
    folder = tmp_path_factory.mktemp("files")
    paths = [put(folder, f"{i}.conll", written(rows)) for i, rows in enumerate(files)]
    least, reading.LEAST = reading.LEAST, 1
    try:
        with open_engine("here") as engine:
            engine.room = 1200
            said = refusal(lambda: read_corpus(paths, scheme=scheme))  # type: ignore[arg-type]
            if said is None:
                same(paths, engine, scheme=scheme)
            else:
                assert refusal(lambda: read_parts(paths, engine, scheme=scheme)) == said  # type: ignore[arg-type]
    finally:
        reading.LEAST = least


def test_many_pieces_many_files_many_words(tmp_path: Path, engine: Engine) -> None:
    """More lists of words than a tree joins at a time, twice over."""
    texts = ["".join(f"w{i * j % 97}\tL{j % 3}\n\n" for j in range(1, 60)) for i in range(1, 12)]
    names = [f"{i:02}.tsv" + ".gz" * (i % 4 == 1) for i in range(11)]
    paths = [put(tmp_path, name, text) for name, text in zip(names, texts, strict=True)]
    assert same(paths, engine) > 2 * TREE
    assert same(tmp_path, engine, lower=True) > 2 * TREE
    assert same(f"{tmp_path}/0[2-4]*", engine, format="conll") > 3
    same([paths[0], paths[0]], engine)


def test_small_files_share_a_part(tmp_path: Path, engine: Engine) -> None:
    paths = [put(tmp_path, f"{i}.conll", f"w{i} X\nv Y\n") for i in range(10)]
    assert same(paths, engine) < 10


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("a X\n\nb Y\n\nc _\n", {}),
        ("a _\n\nb _\n", {"labelled": None}),
        ("a X\n\nb Y\n", {"labelled": False}),
        ('{"tokens": ["a", "b"], "labels": ["x", "y"]}\n' * 9, {}),
        ("\ufeffA X\r\n\r\nb Y\r\n", {"lower": True}),
        ("a b\nc d e\n", {"format": "text", "labelled": False}),
    ],
)
def test_other_layouts(tmp_path: Path, engine: Engine, text: str, how: dict[str, Any]) -> None:
    same(put(tmp_path, "file", text), engine, **how)


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("a X\n\n" * 40 + "b\n", {}),
        ("a X\n\n" * 40 + "b  Z Z\n" + "c X\n\n" * 40 + "d\n", {}),
        ("a _\n\nb _\n", {}),
        ("\n\n", {}),
        ("a B-X\n\n" * 20 + "b X\n\nc Y\n", {"scheme": "iob2"}),
        ("a X\n", {"token_column": 3}),
        ("a X\n", {"scheme": "bilou"}),
        ("a X\n", {"format": "xml"}),
        ("a X\n", {"window": 3}),
    ],
)
def test_what_is_wrong_has_the_same_message(
    tmp_path: Path, engine: Engine, text: str, how: dict[str, Any]
) -> None:
    path = put(tmp_path, "file", text)
    with pytest.raises(RankOneError) as wanted:
        read_corpus(path, **how)
    with pytest.raises(RankOneError) as found:
        read_parts(path, engine, **how)
    assert str(found.value) == str(wanted.value)


def test_files_that_do_not_belong_together(tmp_path: Path, engine: Engine) -> None:
    one = put(tmp_path, "one.conll", "a I-X\n\nb O\n")
    for name, text, said in (
        ("two.conll", "a B-X\n\nb O\n", "entity tags in IOB1, but IOB2 in"),
        ("two.conll", "a P\n\nb Q\n", "labels I-X, but P, Q in"),
        ("two.jsonl", '{"tokens": ["a"], "labels": ["I-X"]}\n', "read as conll, but"),
        ("two.conll", "a k I-X\n", "labels in column 2 of 2, but"),
    ):
        other = put(tmp_path, name, text)
        with pytest.raises(CorpusError, match=said) as found:
            read_parts([one, other], engine)
        with pytest.raises(CorpusError) as wanted:
            read_corpus([one, other])
        assert str(found.value) == str(wanted.value)


def test_built_in_corpora_and_texts(engine: Engine) -> None:
    engine.room = 1_000_000
    assert same("builtin", engine) > 4
    same(["toy", "toy"], engine)
    with pytest.raises(SettingError, match=r"texts .*are read as a whole"):
        read_parts("story", engine, task="next")


def test_files_are_read_as_the_corpus_of_a_model_was(tmp_path: Path, engine: Engine) -> None:
    train = put(tmp_path, "train.conll", "A x B-X\nb y O\n\nc z I-X\n")
    corpus = read_corpus(train, scheme="iob2", lower=True)
    plain = put(tmp_path, "plain", "A b\nC A\n")
    for path, labelled, given_ in (
        (train, True, {}),
        (train, None, {"label_column": 2, "scheme": "keep"}),
        (plain, None, {}),
    ):
        how: Any = {"labelled": labelled, **given_}
        whole = read_like(path, corpus.reading, corpus.label_names, **how)
        found = read_parts_like(path, engine, corpus.reading, corpus.label_names, **how)
        for name in (*WHOLE, "remarks", "reading"):
            assert getattr(found.heading, name) == getattr(whole, name), name
        assert found.sha256 == whole.sha256


def test_real_files(shared: Path) -> None:
    with open_engine("disk") as engine:
        engine.room = 4_000_000
        ewt = sorted((shared / "ud-english-ewt").glob("*.conllu"))
        assert same(ewt, engine) > 5
        assert same(shared / "conll2003" / "eng.testa", engine, scheme="iob2") > 2
