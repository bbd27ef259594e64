"""Several files, directories and patterns as one corpus; files that are packed."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rankone
from rankone import Corpus
from rankone.corpus import join
from rankone.errors import CorpusError

TEXT = "a X\nrose Y\n\nis X\n"


def zstd(text: str) -> bytes:
    return pa.compress(text.encode(), codec="zstd", asbytes=True)  # type: ignore[no-any-return]


def folder(tmp_path: Path, **files: str | bytes) -> Path:
    for name, data in files.items():
        path = tmp_path / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return tmp_path


def places(corpus: Corpus, tmp_path: Path) -> list[str]:
    found = (corpus.place(i) for i in range(corpus.n_tokens))
    return [place.removeprefix(f"{tmp_path}/") for place in found]


def test_a_directory_is_all_of_its_corpora(tmp_path: Path) -> None:
    files = {"b_conll": "b X\n", "a_conll_gz": gzip.compress(b"\na X\n"), "sub__c_iob": "c X\n"}
    others = {"readme_txt": "no corpus", "_hidden_conll": "no X\n", "_git__x_conll": "no X\n"}
    corpus = rankone.read_corpus(folder(tmp_path, **files, **others))
    assert places(corpus, tmp_path) == [
        "a.conll.gz, line 2",
        "b.conll, line 1",
        "sub/c.iob, line 1",
    ]
    assert corpus.vocabulary == ("a", "b", "c")
    assert (
        rankone.as_corpus(tmp_path).sha256 == corpus.sha256 if hasattr(rankone, "as_corpus") else 1
    )


def test_a_list_and_a_pattern(tmp_path: Path) -> None:
    folder(tmp_path, b_conll="b X\n", a_conll="a X\n", c_tsv="c\tX\n", d_conll_zst=zstd("d X\n"))
    names = [tmp_path / name for name in ("b.conll", "a.conll")]
    assert rankone.read_corpus(names).vocabulary == ("b", "a")
    assert rankone.read_corpus(f"{tmp_path}/*.conll").vocabulary == ("a", "b")
    assert rankone.read_corpus([f"{tmp_path}/[ab].*", tmp_path / "d.conll.zst"]).n_sentences == 3
    assert rankone.read_corpus(["builtin", "builtin"]).n_sentences == 4000
    folder(tmp_path, **{"*_conll": "star X\n"})
    assert rankone.read_corpus(f"{tmp_path}/*.conll").vocabulary == ("star",)


def test_what_is_no_file_at_all(tmp_path: Path) -> None:
    for given, what in (
        (f"{tmp_path}/*.conll", "no file of this pattern"),
        (tmp_path, "is a directory with 0 files"),
        ([], "no file"),
        ([tmp_path / "nothing.conll"], "no such file"),
    ):
        with pytest.raises(CorpusError, match=what) as caught:
            rankone.read_corpus(given)
        assert caught.value.remedy
    with pytest.raises(CorpusError, match=r"is a directory with 1 file, none of which ends in"):
        rankone.read_corpus(folder(tmp_path, x_md="a X\n"))


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    folder(tmp_path, a_conll="a I-X\nb I-X\n", b_conll="a B-X\nb I-X\n", c_tsv="a\tI-X\n")
    with pytest.raises(CorpusError, match=r"a\.conll: entity tags in IOB1, but IOB2 in .*b.conll"):
        rankone.read_corpus(f"{tmp_path}/*.conll")
    assert rankone.read_corpus(f"{tmp_path}/*.conll", scheme="iob2").label_names == ("B-X", "I-X")
    with pytest.raises(CorpusError, match=r"a.conll: read as conll, but .*c.tsv as tsv"):
        rankone.read_corpus([tmp_path / "a.conll", tmp_path / "c.tsv"])


def test_a_file_may_lack_what_another_lacks_too(tmp_path: Path) -> None:
    folder(tmp_path, a_conll="a X\n", b_conll="a Y\n", c_conll="a X\nb Y\n")
    assert rankone.read_corpus(tmp_path).n_sentences == 3
    folder(tmp_path, b_conll="a Z\n")
    with pytest.raises(CorpusError, match=r"a\.conll: labels X, Y, but Z in .*b\.conll"):
        rankone.read_corpus(tmp_path)


def test_a_directory_of_texts_is_documents(tmp_path: Path) -> None:
    folder(tmp_path, a_txt="a b\n", b_conll="c d\n")
    assert rankone.read_corpus(tmp_path, task="next").n_sentences == 2


def test_a_model_reads_several_files_too(tmp_path: Path) -> None:
    folder(tmp_path, a_conll="a X\n", b_conll="b Y\n\na X\n")
    corpus = rankone.read_corpus(tmp_path)
    model = rankone.memorize(corpus).model
    for given in (tmp_path, f"{tmp_path}/*", [tmp_path / "a.conll", tmp_path / "b.conll"]):
        assert model.read(given, labelled=True).sha256 == corpus.sha256


def test_joining_takes_time_in_proportion_to_the_files() -> None:
    def seconds(files: int) -> float:
        parts = [
            Corpus.from_sentences([([f"w{i}", "the"], ["X", f"Y{i % 2}"])], source=f"f{i}")
            for i in range(files)
        ]
        spent = []
        for _ in range(3):
            started = time.process_time()
            whole = join(parts)
            spent.append(time.process_time() - started)
        assert whole.n_sentences == files
        return min(spent)

    assert seconds(3200) < 10 * seconds(800) + 0.01


@pytest.mark.parametrize("name", ["c.conll.zst", "c.ZST", "c.conll"])
def test_zstd(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for data in (zstd(TEXT), zstd(TEXT[:5]) + zstd(TEXT[5:])):
        path.write_bytes(data)
        corpus = rankone.read_corpus(path)
        assert [s.tokens for s in corpus.sentences] == [["a", "rose"], ["is"]]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (TEXT.encode(), "not zstd data, although the name ends in .zst"),
        (gzip.compress(TEXT.encode(), mtime=0), "not zstd data"),
        (b"", "not zstd data"),
        (zstd(TEXT)[:-3], "damaged zstd data"),
        (zstd(TEXT)[:4], "damaged zstd data"),
        (zstd(TEXT) + b"garbage", "damaged zstd data"),
        (zstd(TEXT)[:4] + b"\xff\xff" + zstd(TEXT)[6:], "damaged zstd data"),
    ],
)
def test_what_is_not_zstd_data(tmp_path: Path, data: bytes, what: str) -> None:
    path = tmp_path / "c.conll.zst"
    path.write_bytes(data)
    with pytest.raises(CorpusError, match=what) as caught:
        rankone.read_corpus(path)
    assert caught.value.remedy


def test_a_zstd_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: Any) -> None:
    from rankone.corpus import source

    monkeypatch.setattr(source, "most_bytes", lambda _: 3_000_000)
    path = tmp_path / "c.zst"
    path.write_bytes(zstd("\n" * 50_000_000))
    with pytest.raises(rankone.RankOneError, match=r"unpacks to more than 3\.0 MB"):
        rankone.read_corpus(path)
