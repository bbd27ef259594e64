"""The bytes of a file: packed or not, sound or not, and no more of them than memory allows."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import rankone
from rankone import memory
from rankone.corpus import source
from rankone.errors import CorpusError, SizeError

ROWS = b"a X\nrose Y\n\nis Z\n"
PACKED = gzip.compress(ROWS, mtime=0)


def put(tmp_path: Path, data: bytes, name: str = "c.conll.gz") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "data",
    [
        PACKED,
        b"".join(gzip.compress(part, mtime=0) for part in (ROWS[:5], b"", ROWS[5:])),
        PACKED + bytes(512),  # padded with zeros, as on tapes
    ],
)
def test_sound_gzip_data_is_unpacked(tmp_path: Path, data: bytes) -> None:
    for name in ("c.conll.gz", "c.GZ", "c.conll"):
        corpus = rankone.read_corpus(put(tmp_path, data, name))
        assert [s.tokens for s in corpus.sentences] == [["a", "rose"], ["is"]]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (ROWS, "not gzip data, although the name ends in .gz"),
        (b"", "not gzip data"),
        (PACKED[:1], "not gzip data"),
        (PACKED[:2], "damaged gzip data"),
        (PACKED[:-1], "damaged gzip data"),
        (PACKED[:-8] + bytes(8), "damaged gzip data .*CRC"),
        (PACKED[:-4] + b"\1\0\0\0", "damaged gzip data .*length"),
        (PACKED + b"garbage", "damaged gzip data"),
        (PACKED + PACKED[:-3], "damaged gzip data"),
        (PACKED[:12] + b"\xff" + PACKED[13:], "damaged gzip data"),
    ],
)
def test_what_is_not_gzip_data_is_refused(tmp_path: Path, data: bytes, what: str) -> None:
    for name in ("c.conll.gz", "c.GZ"):
        path = put(tmp_path, data, name)
        with pytest.raises(CorpusError, match=what) as caught:
            rankone.read_corpus(path)
        assert caught.value.where == str(path)
        assert caught.value.remedy


def test_a_packed_tsv_file_goes_by_the_names_of_its_columns(tmp_path: Path) -> None:
    text = "id\ttoken\tner\tpos\n1\tNew York\tB-LOC\tPROPN\n\n1\tis\tO\tAUX\n"
    path = put(tmp_path, gzip.compress(text.encode()), "c.tsv.gz")
    corpus = rankone.read_corpus(path, label_column="ner")
    assert corpus.format == "tsv"
    assert [(s.tokens, s.labels, s.line) for s in corpus.sentences] == [
        (["New York"], ["B-LOC"], 2),
        (["is"], ["O"], 4),
    ]
    assert rankone.read_corpus(path).label_names == ("PROPN", "AUX")


def limited(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(source, "most_bytes", lambda _: most)


@pytest.mark.parametrize("packed", [False, True])
def test_text_may_take_what_memory_allows_and_not_a_byte_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(source, "CHUNK", 1000)
    rows = b"a X\n" * 30_000
    path = put(tmp_path, gzip.compress(rows, mtime=0) if packed else rows, "c.conll")
    limited(monkeypatch, len(rows))
    assert rankone.read_corpus(path).n_tokens == 30_000
    limited(monkeypatch, len(rows) - 1)
    verb = "unpacks to" if packed else "holds"
    with pytest.raises(SizeError, match=rf"{verb} more than 0.1 MB of text") as caught:
        rankone.read_corpus(path)
    assert caught.value.where == str(path)


def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, gzip.compress(b"\n" * 20_000_000))
    limited(monkeypatch, 1_000_000)
    tracemalloc.start()
    with pytest.raises(SizeError):
        rankone.read_corpus(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6_000_000


def test_a_file_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 1_000_000)
    with pytest.raises(SizeError, match=r"^/dev/zero: holds more than 1\.0 MB"):
        rankone.read_corpus("/dev/zero")


def test_the_limit_is_a_share_of_the_memory_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < memory.installed() <= real
    monkeypatch.setattr(source, "installed", lambda: 2800)
    assert source.most_bytes() == 100
    assert source.most_bytes(source.TEXTS) == 53


def test_memory_is_that_of_the_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__)
    for limit, found in (("1000000\n", 1_000_000), ("5000000\n", 4_096_000), ("max\n", 4_096_000)):
        monkeypatch.setattr(Path, "read_text", lambda _, limit=limit: limit)
        assert memory.installed() == found

    def unknown(_: str) -> int:
        raise ValueError

    monkeypatch.setattr(os, "sysconf", unknown)
    assert memory.installed() == 8 * 10**9


@pytest.mark.parametrize("given", [3, None, b"c.conll", [3], {"a": 1}])
def test_what_is_not_a_path_is_refused(given: Any) -> None:
    with pytest.raises(CorpusError, match="a file cannot be named by") as caught:
        rankone.read_corpus(given)
    assert "from_sentences" in (caught.value.remedy or "")


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 5000])
def test_a_name_that_no_file_can_have_is_refused(name: str) -> None:
    with pytest.raises(CorpusError) as caught:
        rankone.read_corpus(name)
    str(caught.value).encode()  # whoever prints it can


def test_bytes_of_a_name_that_are_no_text_are_spelled_out(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/c\xff.conll")
    Path(path).write_bytes(ROWS)
    corpus = rankone.read_corpus(path)
    assert corpus.source == corpus.sentences[0].file == f"{tmp_path}/c\\udcff.conll"
    json.dumps(rankone.inspect(corpus).to_json(), ensure_ascii=False).encode()
