"""Directories for Hugging Face from strangers: a change is refused in one message, or harmless."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForTokenClassification, AutoTokenizer

import rankone
from rankone.documents import read_document
from rankone.errors import ModelError, RankOneError
from rankone.interop.huggingface import (
    RankOneForTokenClassification,
    RankOneModel,
    RankOneTokenizer,
    export,
    export_hf,
)

CORPUS = rankone.Corpus.from_sentences(
    [(["a", "b c", "a"], ["x", "y", "x"]), (["b c", "d"], ["x", "z"])]
)
AUTO = "AutoModelForTokenClassification"
WORDS = [["a", "b c", "new"], [], ["a"]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("tampered") / "hf"
    made = rankone.memorize(CORPUS)
    certificate = rankone.certify(made.model, CORPUS)
    export_hf(made.model, home, report=made.to_json(), certificate=certificate)
    return home


@pytest.fixture
def copied(home: Path, tmp_path: Path) -> Path:
    target = tmp_path / "hf"
    target.mkdir()
    for path in home.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


# Every node of every document.

RAW = ["null", "true", "-1", "1.5", "1e400", "1" + "0" * 400, "NaN", '"a"']
RAW += ['"\\ud800"', "[[1]]", '{"a": 1}', "[" * 2000 + "]" * 2000]
HOLE = "a hole in the document"


def nodes(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(document, dict | list):
        for key in document if isinstance(document, dict) else range(len(document)):
            yield from nodes(document[key], (*path, key))


def variants(text: str) -> Iterator[str]:
    """The document with one node replaced, or left out."""
    document = json.loads(text)
    for path in nodes(document):
        if len(path) > 1 and path[0] in ("normalizer", "pre_tokenizer", "added_tokens", "settings"):
            continue  # not read, like the whole that they are part of
        changed = copy.deepcopy({"": document})
        place: Any = changed
        *way, last = ("", *path)
        for key in way:
            place = place[key]
        place[last] = HOLE
        holed = json.dumps(changed[""])
        yield from (holed.replace(json.dumps(HOLE), raw) for raw in RAW)
        if isinstance(place, dict):
            del place[last]
            yield json.dumps(changed.get(""))


def refusal(action: Callable[[], object]) -> RankOneError | None:
    try:
        action()
    except RankOneError as error:
        return error
    return None


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_changed_document_is_refused_or_harmless(copied: Path, name: str) -> None:
    def use() -> None:
        lengths = [len(row) for row in rankone.load(copied).predict(WORDS)]
        assert lengths == [3, 0, 1]

    count = {True: 0, False: 0}
    for text in variants((copied / name).read_text()):
        (copied / name).write_text(text)
        error = refusal(use)
        if error is not None:
            assert error.where in {str(copied / n) for n in (name, "model.safetensors")}, text
            assert error.remedy
        count[error is None] += 1
    assert min(count.values()) > 50


def test_a_changed_report_is_refused_or_harmless(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `rankone export` reads it; what transformers writes is not written again each time."""
    model, report, out = rankone.load(copied), copied / "report.json", tmp_path / "out"
    monkeypatch.setattr(export, "_written", lambda *_: {})
    count = {True: 0, False: 0}
    for text in variants(report.read_text()):
        report.write_text(text)
        error = refusal(lambda: export_hf(model, out, report=read_document(report, dict[str, Any])))
        if error is not None:
            assert str(error.where).endswith("report.json"), text
            assert error.remedy
        assert out.exists() == (error is None)
        shutil.rmtree(out, ignore_errors=True)
        count[error is None] += 1
    assert min(count.values()) > 50


# Weights.

Tensors = dict[str, torch.Tensor]


def swap(tensors: Tensors, one: str, other: str) -> None:
    tensors[one], tensors[other] = tensors[other], tensors[one]


FF = "blocks.0.feedforward"
WEIGHTS: dict[str, tuple[Callable[[Tensors], object], str]] = {
    "one missing": (lambda t: t.pop("head.bias"), "head.bias is missing"),
    "one more": (lambda t: t.update(extra=torch.zeros(1)), "extra is"),
    "all missing": (lambda t: t.clear(), "too few tensors"),
    "swapped": (lambda t: swap(t, "table", "head.weight"), "is"),
    "transposed": (lambda t: t.update(table=t["table"].T.contiguous()), "table is"),
    "of one more dimension": (lambda t: t.update(table=t["table"][None].clone()), "table is"),
    "of none": (lambda t: t.update({"head.bias": torch.tensor(0.0)}), "head.bias is"),
    "empty": (lambda t: t.update(table=t["table"][:0].clone()), "table is"),
    "half": (lambda t: t.update(table=t["table"].half()), "table is float16"),
    "whole numbers": (lambda t: t.update(table=t["table"].long()), "table is int64"),
    "bits": (lambda t: t.update(table=t["table"] > 0), "table is bool"),
    "not numbers": (lambda t: t["table"].fill_(torch.nan), "not finite"),
    "infinite": (lambda t: t[f"{FF}.gain"].fill_(torch.inf), "not finite"),
    "two precisions": (lambda t: t.update(table=t["table"].float()), "float32"),
}


@pytest.mark.parametrize(("change", "said"), WEIGHTS.values(), ids=WEIGHTS)
def test_weights_that_do_not_fit(
    copied: Path, change: Callable[[Tensors], object], said: str
) -> None:
    path = copied / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata={"format": "pt"})
    error = refusal(lambda: rankone.load(copied))
    assert isinstance(error, ModelError)
    assert said in error.what
    assert error.where == str(path)
    assert error.remedy


HEADERS = {
    "nothing": b"",
    "cut": b"\x10",
    "no header": b"\0" * 64,
    "a header of 2^63 bytes": b"\xff" * 7 + b"\x7f" + b"{}",
    "not JSON": (9).to_bytes(8, "little") + b"{{{{{{{{{",
    "a tensor beyond the end": (66).to_bytes(8, "little")
    + b'{"table":{"dtype":"F64","shape":[9999],"data_offsets":[0,79992]}}  ',
}


@pytest.mark.parametrize("data", HEADERS.values(), ids=HEADERS)
def test_files_that_are_no_weights(copied: Path, data: bytes) -> None:
    (copied / "model.safetensors").write_bytes(data)
    error = refusal(lambda: rankone.load(copied))
    assert isinstance(error, ModelError)
    assert error.what.startswith("damaged weights")


# Files that are no files, and links.

READ = ["config.json", "tokenizer.json", "model.safetensors"]


@pytest.mark.parametrize("name", READ)
def test_what_is_no_file_is_refused(copied: Path, tmp_path: Path, name: str) -> None:
    path = copied / name
    for put in (
        lambda: os.mkfifo(path),  # reading it would never end
        lambda: path.symlink_to("/dev/zero"),  # nor this, but in memory
        lambda: path.symlink_to(path),
        lambda: path.symlink_to(tmp_path / "none"),
        path.mkdir,
    ):
        path.unlink()
        put()
        error = refusal(lambda: rankone.load(copied))
        assert isinstance(error, ModelError)
        assert error.where == str(path)
        assert error.remedy


@pytest.mark.parametrize("name", READ)
def test_what_a_link_leads_to_is_not_shown(copied: Path, tmp_path: Path, name: str) -> None:
    """Links are followed, for snapshots in the cache of Hugging Face are links."""
    (tmp_path / "secret").write_text("root:x:0:0:a secret\n")
    (copied / name).unlink()
    (copied / name).symlink_to(tmp_path / "secret")
    error = refusal(lambda: rankone.load(copied))
    assert isinstance(error, ModelError)
    assert not {"root", "secret"} & set(re.findall("[a-z]+", error.what))


def test_a_directory_of_links_is_read(home: Path, tmp_path: Path) -> None:
    for path in home.iterdir():
        (tmp_path / path.name).symlink_to(path)
    assert rankone.load(tmp_path).predict(WORDS) == rankone.load(home).predict(WORDS)


def test_an_export_does_not_write_through_links(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (copied / "README.md").unlink()
    (copied / "README.md").symlink_to(tmp_path / "mine")
    export_hf(rankone.load(copied), copied)
    assert (tmp_path / "mine").read_text() == "mine"
    assert "## Use" in (copied / "README.md").read_text()


# Code.


@pytest.mark.parametrize(
    "name", ["modeling_rankone", "../modeling_rankone", "/tmp/evil", "other/repo--evil"]
)
def test_code_in_the_directory_is_not_run(copied: Path, name: str) -> None:
    """Neither by rankone nor, unless it is trusted, by transformers where rankone is imported."""
    for file in ("modeling_rankone.py", "tokenization_rankone.py"):
        (copied / file).write_text("raise SystemExit('run')")
        (copied.parent / file).write_text("raise SystemExit('run')")
    for file, keys in (
        ("config.json", {"AutoConfig": "C", "AutoModel": "M", AUTO: "T"}),
        ("tokenizer_config.json", {"AutoTokenizer": ["S", "F"]}),
    ):
        document = json.loads((copied / file).read_text())
        document["auto_map"] = {
            key: [f"{name}.{v}" for v in value] if isinstance(value, list) else f"{name}.{value}"
            for key, value in keys.items()
        }
        (copied / file).write_text(json.dumps(document))
    assert rankone.load(copied).predict(WORDS)
    assert type(AutoModelForTokenClassification.from_pretrained(copied)) is (
        RankOneForTokenClassification
    )
    assert type(AutoModel.from_pretrained(copied)) is RankOneModel
    assert type(AutoTokenizer.from_pretrained(copied)) is RankOneTokenizer
