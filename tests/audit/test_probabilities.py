"""Probabilities from files: every layout gives the same numbers; what does not fit is refused."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
import rankone
from rankone import Corpus
from rankone.audit import read_probabilities
from rankone.corpus.distributions import fit_distributions
from rankone.errors import CorpusError, ProbabilityError, RankOneError, SizeError

Written = Callable[..., Path]
CORPUS = Corpus.from_sentences(corpora.spelled("ab xy", "c z", "aab xxy"))
NAMES = ["y", "z", "x"]
SENTENCES = [(0, 2), (2, 3), (3, 6)]


def rows_for(corpus: Corpus, labels: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).dirichlet(np.ones(labels), corpus.n_tokens)


ROWS = rows_for(CORPUS, 3)
EXPECTED = ROWS[:, [2, 0, 1]]  # x, y, z


@pytest.fixture
def npz(tmp_path: Path) -> Written:
    def write(rows: Any = ROWS, labels: Any = NAMES, **more: Any) -> Path:
        arrays = {"probabilities": rows, "labels": labels, **more}
        np.savez(
            tmp_path / "p.npz", **{k: np.asarray(v) for k, v in arrays.items() if v is not None}
        )
        return tmp_path / "p.npz"

    return write


@pytest.fixture
def jsonl(tmp_path: Path) -> Written:
    def write(*lines: Any, name: str = "p.jsonl") -> Path:
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
        return path

    return write


def lines_of(rows: Any = ROWS, **first: Any) -> list[dict[str, Any]]:
    lines = [{"probabilities": rows[a:b].tolist()} for a, b in SENTENCES]
    return [{**lines[0], "labels": NAMES, **first}, *lines[1:]]


def refused(path: Path, corpus: Corpus = CORPUS) -> str:
    with pytest.raises(RankOneError) as caught:
        read_probabilities(path, corpus)
    assert caught.value.remedy
    assert caught.value.where
    return str(caught.value)


# What is read.


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_float(npz: Written, dtype: str, order: Any) -> None:
    path = npz(np.asarray(ROWS.astype(dtype), order=order))
    found = read_probabilities(path, CORPUS)
    assert found.dtype == np.float64
    assert found.sum(1) == pytest.approx(1)
    np.testing.assert_allclose(found, EXPECTED, atol=1e-3 if dtype == "f2" else 1e-7)


@pytest.mark.parametrize("name", ["p.jsonl", "p.ndjson", "p.json", "p.JSONL.gz"])
def test_lines_of_lists(jsonl: Written, name: str) -> None:
    np.testing.assert_allclose(read_probabilities(jsonl(*lines_of(), name=name), CORPUS), EXPECTED)


def test_lines_of_mappings_may_leave_out_what_is_0(jsonl: Written) -> None:
    rows = ROWS.copy()
    rows[4] = [0, 0, 1]
    tokens = [{n: p for n, p in zip(NAMES, row, strict=True) if p} for row in rows.tolist()]
    path = jsonl(*({"probabilities": tokens[a:b]} for a, b in SENTENCES))
    np.testing.assert_allclose(read_probabilities(path, CORPUS), rows[:, [2, 0, 1]])


def test_lines_may_repeat_labels_and_tokens_and_hold_blank_ones(jsonl: Written) -> None:
    words = [list("ab"), ["c"], list("aab")]
    lines = [
        {**line, "labels": NAMES, "tokens": word, "other": 1}
        for line, word in zip(lines_of(), words, strict=True)
    ]
    start = {"labels": NAMES, "tokens": ["-DOCSTART-"], "probabilities": [[1, 0, 0]]}
    nothing = {"tokens": [], "probabilities": []}
    path = jsonl(start, lines[0], "", nothing, *lines[1:], "")
    np.testing.assert_allclose(read_probabilities(path, CORPUS), EXPECTED)


def test_words_are_compared_as_the_corpus_was_read(jsonl: Written, tmp_path: Path) -> None:
    (tmp_path / "c.conll").write_text("Ab x\n")
    corpus = rankone.read_corpus(tmp_path / "c.conll", lower=True)
    path = jsonl({"labels": ["x"], "tokens": ["AB"], "probabilities": [[1]]})
    assert read_probabilities(path, corpus).tolist() == [[1]]


@given(corpora.corpora, st.integers(0, 3), st.integers(0, 99))
def test_columns_are_found_by_name_and_others_left_out(
    corpus: Corpus, more: int, seed: int
) -> None:
    labels = [*corpus.label_names, *(f"other{i}" for i in range(more))]
    order = np.random.default_rng(seed).permutation(len(labels))
    rows, said = rows_for(corpus, len(labels), seed), list[str]()
    names = [labels[j] for j in order]
    found = fit_distributions(rows[:, order], names, corpus, "rows", said.append)
    own = rows[:, : len(corpus.label_names)]
    np.testing.assert_allclose(found, own / own.sum(1, keepdims=True))
    share = f"{1 - own.sum(1).mean():.2%} of the probability"
    assert len(said) == bool(more)
    assert all(share in text and "'other0'" in text for text in said)


# Sizes.


def test_arrays_of_another_size_are_refused(npz: Written) -> None:
    said = refused(npz(ROWS[:5]))
    assert "probabilities for 5 tokens, but <python> has 6" in said
    assert "shape (6, 2) for 3 labels" in refused(npz(ROWS[:, :2]))
    assert "shape (18,) for 3 labels" in refused(npz(ROWS.ravel()))


def test_lines_of_another_size_say_where_they_differ_first(jsonl: Written) -> None:
    lines = lines_of()
    said = refused(jsonl(*lines[:2]))
    assert "2 sentences, but <python> has 3" in said
    assert "first without probabilities is that of <python>, sentence 3" in said
    assert "p.jsonl, line 4: one more sentence than the 3 of" in refused(jsonl(*lines, lines[1]))
    said = refused(jsonl(lines[0], lines[2], lines[1]))
    assert "line 2: probabilities for 3 tokens, but the sentence of <python>, sentence 2" in said
    assert "0 sentences" in refused(jsonl(""))


@pytest.mark.parametrize(
    ("tokens", "what"),
    [
        (["a", "c"], "token 2 is 'c', but 'b' in the sentence of <python>, sentence 1"),
        (["a"], "token 2 is no more tokens, but 'b'"),
        (["a", "b", "c"], "token 3 is 'c', but no more tokens"),
        (["A", "b"], "token 1 is 'A', but 'a'"),
    ],
)
def test_other_words_are_refused(jsonl: Written, tokens: list[str], what: str) -> None:
    assert what in refused(jsonl(*lines_of(tokens=tokens)))


# Numbers.


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ([0.5, np.nan, 0.5], "a number that is not finite (1 such row)"),
        ([0.5, np.inf, 0.5], "a number that is not finite"),
        ([-0.5, 1, 0.5], "a negative number: these are logits or logarithms"),
        ([3, 4, 5], "sums to 12, not to 1: these look like logits"),
        ([0.3, 0.3, 0.3], "sums to 0.9, not to 1 ("),
        ([0, 0, 0], "sums to 0, not to 1"),
        ([0.5, 0.5, 0.0011], "sums to 1.0011"),
    ],
)
def test_numbers_that_are_no_probabilities(npz: Written, row: list[float], what: str) -> None:
    rows = ROWS.copy()
    rows[2] = row
    said = refused(npz(rows))
    assert "p.npz, token 3 (<python>, sentence 2): " in said
    assert what in said
    assert "softmax" in said


def test_sums_are_checked_as_coarsely_as_float16_needs(npz: Written) -> None:
    rows = ROWS.copy()
    rows[2] = [0.5, 0.5, 0.0009]
    assert read_probabilities(npz(rows), CORPUS).sum(1) == pytest.approx(1, abs=1e-15)


def test_a_row_without_a_label_of_the_corpus(npz: Written) -> None:
    rows = np.column_stack([ROWS, np.zeros(6)])
    rows[3] = [0, 0, 0, 1]
    said = refused(npz(rows, [*NAMES, "q"]))
    assert "token 4 (<python>, sentence 3): no probability for any label of the corpus" in said


# Labels.


def test_labels_that_are_lacking_or_there_twice(npz: Written, jsonl: Written) -> None:
    said = refused(npz(ROWS, ["y", "Z", "x"]))
    assert "p.npz: no column for 'z', which the corpus has" in said
    assert "this one has 'y', 'Z', 'x'" in said
    assert "two columns for 'y'" in refused(npz(ROWS, ["y", "y", "x"]))
    assert "two columns for 'y'" in refused(jsonl(*lines_of(labels=["y", "y", "x"])))
    sure = [[{"x": 1}] * (b - a) for a, b in SENTENCES]
    assert "no column for 'y', 'z'" in refused(jsonl(*({"probabilities": p} for p in sure)))


def test_labels_of_lines(jsonl: Written) -> None:
    first, *others = lines_of()
    bare = {"probabilities": first["probabilities"]}
    assert "line 1, token 1: numbers without labels" in refused(jsonl(bare, *others))
    said = refused(jsonl(first, {**others[0], "labels": ["x", "y", "z"]}))
    assert "line 2: other labels than the first line" in said
    assert "2 numbers for 3 labels" in refused(jsonl({**first, "probabilities": [[0, 1]] * 2}))
    mapped = {**first, "probabilities": [{"x": 1}, {"q": 1}]}
    assert "line 1, token 2: 'q' is not among the labels" in refused(jsonl(mapped))
    said = refused(jsonl({"probabilities": [{"x": 1}] * 2}, {**others[0], "labels": NAMES}))
    assert "other labels than the first line" in said


def test_more_labels_than_any_model_of_the_corpus_has(npz: Written, jsonl: Written) -> None:
    many = [f"l{i}" for i in range(1004)]
    assert "shape (1004,), too large" in refused(npz(np.zeros((6, 1004)), many))
    line = {"probabilities": [dict.fromkeys(many, 1e-3)]}
    assert "1,005 labels for a corpus that has 3" in refused(
        jsonl({"probabilities": [{"x": 1}] * 2}, line)
    )
    assert "1,004 labels for" in refused(jsonl(*lines_of(labels=many)))
    assert "too large" in refused(npz(ROWS, ["y", "z", "x" * 1001]))


# Schemes.

IOB2 = ["O", "B-P", "I-P", "B-L", "I-L"]


def tagged(*sentences: str) -> Corpus:
    rows = [text.split() for text in sentences]
    return Corpus.from_sentences([([f"w{i}" for i in range(len(r))], r) for r in rows])


def one_hot(labels: list[str], *tags: str) -> Any:
    return np.eye(len(labels))[[labels.index(tag) for tag in tags]]


def test_iob2_becomes_iob1_where_the_corpus_has_no_touching_entities() -> None:
    corpus = tagged("I-P I-P O", "I-L O I-P")
    rows, said = rows_for(corpus, 5), list[str]()
    found = fit_distributions(rows, IOB2, corpus, "rows", said.append)
    assert corpus.label_names == ("I-P", "O", "I-L")
    np.testing.assert_allclose(
        found, np.stack([rows[:, 1:3].sum(1), rows[:, 0], rows[:, 3:].sum(1)], axis=1)
    )
    assert said == ["rows: counted 'B-P', 'B-L' as I-, since the corpus is in IOB1"]


def test_iob2_is_refused_where_iob1_has_touching_entities() -> None:
    corpus = tagged("I-P B-P O", "I-L O I-P")
    assert corpus.scheme == "IOB1"
    two = one_hot(IOB2, "B-P", "B-P", "O", "B-L", "O", "B-P")
    with pytest.raises(ProbabilityError, match=r"begin with B-: .*IOB2(.|\n)*--scheme iob2$"):
        fit_distributions(two, IOB2, corpus, "rows")
    one = one_hot(IOB2, "I-P", "B-P", "O", "I-L", "O", "I-P")
    found = fit_distributions(one, IOB2, corpus, "rows")
    assert [corpus.label_names[i] for i in found.argmax(1)] == "I-P B-P O I-L O I-P".split()
    fit_distributions(np.full((6, 5), 0.2), IOB2, corpus, "rows")  # tells nothing


def test_iob1_is_refused_where_the_corpus_is_in_iob2() -> None:
    corpus = tagged("B-P B-P O", "B-L I-L B-P")
    one = one_hot(IOB2, "I-P", "B-P", "O", "I-L", "I-L", "I-P")
    with pytest.raises(ProbabilityError, match=r"begin with I-: .*IOB1(.|\n)*--scheme keep"):
        fit_distributions(one, IOB2, corpus, "rows")
    lacking = ["O", "I-P", "B-L", "I-L"]
    with pytest.raises(ProbabilityError, match=r"no column for 'B-P': .*IOB1 and .*IOB2"):
        fit_distributions(rows_for(corpus, 4), lacking, corpus, "rows")
    two = one_hot(IOB2, "B-P", "B-P", "O", "B-L", "I-L", "B-P")
    assert fit_distributions(two, IOB2, corpus, "rows").max(1).tolist() == [1] * 6


def test_a_type_that_is_lacking_is_no_matter_of_schemes() -> None:
    corpus = tagged("B-P I-P O", "B-L O O")
    with pytest.raises(ProbabilityError, match="no column for 'B-L', which the corpus has"):
        fit_distributions(rows_for(corpus, 3), IOB2[:3], corpus, "rows")


def test_bioes_is_refused() -> None:
    corpus = tagged("B-P I-P O", "B-L I-L O")
    with pytest.raises(ProbabilityError, match=r"'E-P', 'S-L': another scheme .* IOB2"):
        fit_distributions(rows_for(corpus, 7), [*IOB2, "E-P", "S-L"], corpus, "rows")


# Files.


def test_files_that_are_not_there_or_something_else(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "no.npz")
    assert "no such file" in refused(tmp_path / "no.jsonl")
    assert "neither .npz nor .jsonl" in refused(tmp_path / "p.npy")
    assert "neither .npz nor .jsonl" in refused(tmp_path / "p.npz.gz")
    assert "is a directory" in refused(tmp_path)
    assert "model_probabilities(directory, corpus)" in refused(tmp_path)
    os.mkfifo(tmp_path / "pipe.npz")
    assert "not a file" in refused(tmp_path / "pipe.npz")


def test_an_unlabelled_corpus_is_refused(npz: Written, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a\nb\n")
    corpus = rankone.read_corpus(tmp_path / "words.txt", labelled=False)
    with pytest.raises(CorpusError, match="no labels"):
        read_probabilities(npz(), corpus)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("[1]", "line 1: expected a mapping, got a list"),
        ("{}", "no required field probabilities"),
        ('{"probabilities": [[NaN]]}', "line 1: cannot be read"),
        ('{"probabilities": [["1"]]}', "expected a number, got text"),
        ('{"probabilities": [[true]]}', "expected a number"),
        ('{"probabilities": [1]}', "[0]: expected a mapping or a list"),
        ('{"probabilities": [[1e999]]}', "line 1: "),
        ('{"labels": [1], "probabilities": []}', "labels[0]: expected text"),
        ('{"probabilities": ' + "[" * 9999, "line 1: "),
    ],
)
def test_lines_that_are_something_else(jsonl: Written, line: str, what: str) -> None:
    assert what in refused(jsonl(line))


def test_arrays_that_are_lacking_or_of_another_type(npz: Written) -> None:
    assert "no array named 'labels'" in refused(npz(labels=None))
    assert "no array named 'probabilities'" in refused(npz(rows=None))
    assert "labels: an array of int64, shape (3,) instead of" in refused(npz(labels=[0, 1, 2]))
    assert "labels: an array of bytes8" in refused(npz(labels=[b"y", b"z", b"x"]))
    assert "labels: an array of str32, shape (3, 1)" in refused(npz(labels=[["y"], ["z"], ["x"]]))
    assert "of int64, shape (6, 3) instead of floating" in refused(npz(rows=ROWS.astype(int)))
    assert "of longdouble" in refused(npz(ROWS.astype(np.longdouble))).replace(
        "float128", "longdouble"
    )


class Runs:
    """What runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return os._exit, (7,)


def header(descr: str, shape: str) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return path


@pytest.fixture
def hostile(tmp_path: Path) -> Callable[[bytes], str]:
    """What is said of a file with good labels and these probabilities."""
    labels = io.BytesIO()
    np.save(labels, np.array(NAMES))
    path = tmp_path / "p.npz"
    return lambda rows: refused(archive(path, labels=labels.getvalue(), probabilities=rows))


def test_pickles_are_not_opened(hostile: Callable[[bytes], str], npz: Written) -> None:
    said = hostile(header("'|O'", "(6, 3)") + pickle.dumps(Runs()))
    assert "probabilities: Python objects" in said
    said = refused(npz(labels=np.array([Runs(), Runs()], dtype=object)))
    assert "labels: Python objects, which are pickled" in said


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        (header("'<f8'", "(999999999999, 3)"), "probabilities for 999,999,999,999 tokens"),
        (header("'<f8'", "(6, 999999999999)"), "for 3 labels"),
        (header("'<f8'", "(-6, 3)"), "probabilities for -6 tokens"),
        (header("'<f8'", "6"), "cannot be read"),
        (header("'<f8'", "(6, 3)") + bytes(8), "more or fewer numbers than it says"),
        (header("'<f8'", "(6, 3)") + bytes(10**7), "more or fewer numbers than it says"),
        (header("'V9999999'", "(6, 3)"), "instead of floating"),
        (header("[('a', '<f8')]", "(6, 3)"), "instead of floating"),
        (header("'<f8'", "(" * 9000), "cannot be read"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(10**7), "cannot be read"),
        (b"\x93NUMPY\x03\x00" + bytes(99), "not an array"),
        (b"", "cannot be read"),
        (b"<html>", "cannot be read"),
    ],
)
def test_arrays_that_lie(hostile: Callable[[bytes], str], rows: bytes, what: str) -> None:
    assert what in hostile(rows)


def test_no_more_is_unpacked_than_the_corpus_needs(
    hostile: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, read = [0], zipfile.ZipExtFile.read

    def counted(self: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        data = read(self, n)
        taken[0] += len(data)
        return data

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    hostile(header("'<f8'", "(6, 3)") + bytes(3 * 10**7))
    assert taken[0] < 10**5


def test_archives_that_are_damaged(npz: Written) -> None:
    path = npz()
    data = path.read_bytes()
    path.write_bytes(data[:-30])
    assert "p.npz: cannot be read (" in refused(path)
    path.write_bytes(b"no archive")
    assert "numpy.savez" in refused(path)
    place = data.find(ROWS.tobytes())
    path.write_bytes(data[:place] + bytes(8) + data[place + 8 :])
    assert "CRC" in refused(path)
    encrypted = bytearray(data)
    for flags in (data.find(b"PK\x03\x04") + 6, data.find(b"PK\x01\x02") + 8):
        encrypted[flags] |= 1
    path.write_bytes(bytes(encrypted))
    assert "cannot be read" in refused(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("labels.npy", b"")
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("labels.npy", b"")
    assert "two arrays named 'labels'" in refused(path)


@given(st.integers(0, 10**6), st.binary(max_size=8), st.booleans())
def test_files_with_bytes_put_in_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: int, data: bytes, deflated: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.npz"
    (np.savez_compressed if deflated else np.savez)(path, probabilities=ROWS, labels=NAMES)
    good = path.read_bytes()
    place %= len(good)
    path.write_bytes(good[:place] + data + good[place + len(data) :])
    with contextlib.suppress(RankOneError):
        assert read_probabilities(path, CORPUS).shape == (6, 3)


def test_what_does_not_fit_in_memory(npz: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankone.corpus.distributions.installed", lambda: 1000)
    with pytest.raises(SizeError, match="more than half of the memory"):
        read_probabilities(npz(), CORPUS)
