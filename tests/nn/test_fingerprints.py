"""Fingerprints of contexts: what they know, and the file that holds them."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

import rankone
from rankone import Corpus
from rankone.corpus.parts import cut, numbered
from rankone.errors import ModelError
from rankone.nn import store
from rankone.nn.fingerprints import HEADER, PRIME, Fingerprints

TEXTS = ["a b a c a b", "b a c"]


def corpus(window: int = 2) -> Corpus:
    return Corpus.from_texts(TEXTS, window=window)


@pytest.mark.parametrize("window", [0, 2])
def test_they_know_every_context_and_no_other(window: int) -> None:
    given = corpus(window)
    found = Fingerprints.of([given])
    assert found.know(given.token_ids, given.offsets)[given.asked].all()
    assert (np.diff(found.hashes.astype(object)) > 0).all()
    contexts = {
        tuple(given.token_ids[max(a, i + 1 - window) if window else a : i + 1].tolist())
        for a, b in zip(given.offsets[:-1].tolist(), given.offsets[1:].tolist(), strict=True)
        for i in range(a, b)
        if given.label_ids[i] >= 0
    }
    assert len(found.hashes) == len(contexts)
    backwards = given.token_ids[::-1][: len(given.token_ids) // 2]
    for i, known in enumerate(found.know(backwards).tolist()):
        own = backwards[max(0, i + 1 - window) if window else 0 : i + 1]
        assert known == (tuple(own.tolist()) in contexts)


def test_another_corpus_has_another_base() -> None:
    one, other = Fingerprints.of([corpus()]), Fingerprints.of([Corpus.from_texts(["a b"])])
    assert one.base != other.base
    assert 2 <= one.base < PRIME


def test_it_makes_no_difference_where_a_corpus_is_cut() -> None:
    given = Corpus.from_texts([*TEXTS, "c c a"])
    parts = numbered(cut(given, [1, 2]))
    assert len(parts) == 3
    one, other = Fingerprints.of([given]), Fingerprints.of(parts)
    assert (one.base, one.hashes.tolist()) == (other.base, other.hashes.tolist())


def test_models_of_the_next_token_keep_them(tmp_path: Path) -> None:
    made = rankone.memorize(corpus()).model
    made.save(tmp_path / "model")
    data = (tmp_path / "model" / store.CONTEXTS).read_bytes()
    loaded = rankone.load(tmp_path / "model")
    assert loaded.contexts is not None
    assert made.contexts is not None
    assert loaded.contexts.to_bytes() == data == made.contexts.to_bytes()
    assert struct.unpack("<8sIIQQ", data[:32])[:3] == (b"contexts", 1, 2)
    assert np.array_equal(np.frombuffer(data[32:], "<u8"), made.contexts.hashes)
    copied = pickle.loads(pickle.dumps(loaded))
    assert copied.contexts.to_bytes() == data
    rankone.memorize("toy").save(tmp_path / "model")
    assert not (tmp_path / "model" / store.CONTEXTS).exists()
    (tmp_path / "model" / store.CONTEXTS).write_bytes(b"not looked at")
    assert rankone.load(tmp_path / "model").contexts is None  # a model of another task
    store.save_into(tmp_path / "model", rankone.memorize("toy").model.files())
    assert not (tmp_path / "model" / store.CONTEXTS).exists()


def test_changed_models_have_those_of_the_changed_corpus() -> None:
    given = Corpus.from_texts(TEXTS)
    made = rankone.memorize(given, editable=True).model
    changed = rankone.learn(made, ["c a b"]).model
    anew = rankone.memorize(Corpus.from_texts([*TEXTS, "c a b"])).model
    assert changed.contexts is not None
    assert anew.contexts is not None
    assert changed.contexts.to_bytes() == anew.contexts.to_bytes() != made.contexts.to_bytes()


def packed(*values: int, magic: bytes = b"contexts", version: int = 1, window: int = 2) -> bytes:
    head = HEADER.pack(magic, version, window, 12345, len(values))
    return head + np.array(values, "<u8").tobytes()


GOOD = packed(3, 5, 9)
BAD = {
    "empty": (b"", "not the fingerprints"),
    "another file": (packed(3, magic=b"CONTEXTS"), "not the fingerprints"),
    "cut short": (GOOD[:20], "not the fingerprints"),
    "a later version": (packed(3, version=2), "written in version 2 of the format, this reads 1"),
    "less than it says": (GOOD[:-1], "55 bytes where 3 fingerprints should be"),
    "more than it says": (GOOD + b"\0" * 8, "64 bytes where 3 fingerprints should be"),
    "a count beyond all": (
        HEADER.pack(b"contexts", 1, 2, 12345, (1 << 64) - 1),
        "32 bytes where 18,446,744,073,709,551,615 fingerprints should be",
    ),
    "none": (packed(), "not in order, or out of range"),
    "not in order": (packed(5, 3), "not in order, or out of range"),
    "twice": (packed(3, 3), "not in order, or out of range"),
    "too large": (packed(3, PRIME), "not in order, or out of range"),
    "base 0": (HEADER.pack(b"contexts", 1, 2, 0, 1) + bytes(8), "not in order, or out of range"),
    "base p": (HEADER.pack(b"contexts", 1, 2, PRIME, 1) + bytes(8), "not in order, or out of"),
    "another window": (packed(3, window=7), "contexts of 7 tokens, for a model with a window of 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_files_that_are_refused(name: str, tmp_path: Path) -> None:
    path, (data, message) = tmp_path / "contexts.bin", BAD[name]
    path.write_bytes(GOOD)
    assert Fingerprints.read(path, 2).hashes.tolist() == [3, 5, 9]
    path.write_bytes(data)
    with pytest.raises(ModelError) as refused:
        Fingerprints.read(path, 2)
    assert message in str(refused.value)
    assert str(path) in str(refused.value)
    assert "remove this file" in str(refused.value)


def test_they_are_read_when_they_are_needed(tmp_path: Path) -> None:
    rankone.memorize(corpus()).save(tmp_path / "model")
    path = tmp_path / "model" / store.CONTEXTS
    path.write_bytes(b"damaged")
    loaded = rankone.load(tmp_path / "model")
    assert loaded.predict([["<|begin|>", "a"]])[0][1] == " b"
    with pytest.raises(ModelError, match="not the fingerprints"):
        rankone.recite(loaded, "a b")
    path.unlink()
    assert rankone.recite(rankone.load(tmp_path / "model"), "b a", 1).text == " c"
