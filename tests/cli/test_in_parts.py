"""certify and predict in bounded memory: what is printed and written is the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rankone
from answers import CORPUS, Run

ROWS = CORPUS * 40
BOUNDED = ("--memory", "1")


@pytest.fixture
def gated(tmp_path: Path) -> tuple[Path, Path]:
    """A model and its corpus."""
    path = tmp_path / "long.conll"
    path.write_text(ROWS)
    rankone.memorize(path, construction="gated").save(tmp_path / "gated")
    return tmp_path / "gated", path


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of very few tokens."""
    monkeypatch.setattr("rankone.corpus.parted.BYTES", 10_000_000)
    monkeypatch.setattr("rankone.corpus.read_parts.LEAST", 200)


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("format", ["conll", "text"])
@pytest.mark.parametrize("more", [(), ("--json",), ("--quiet",)])
def test_predict(
    run: Run, gated: tuple[Path, Path], tmp_path: Path, more: tuple[str, ...], format: str
) -> None:
    model, file = gated
    if format == "text":
        file = tmp_path / "text"
        file.write_text("the will\nthe will run\n\nFoo bar baz the qux\n" * 30)
    whole = run("predict", model, file, *more)
    found = run("predict", model, file, *more, *BOUNDED, "--scratch", tmp_path)
    assert (found.out, found.err, found.code) == (whole.out, whole.err, 0)
    out, other = tmp_path / "one", tmp_path / "other"
    run("predict", model, file, "--out", out)
    run("predict", model, file, "--out", other, "--engine", "here")
    assert out.read_bytes() == other.read_bytes()
    assert not list(tmp_path.glob("rankone-*"))


@pytest.mark.usefixtures("cut")
def test_labels_that_do_not_fit_into_rows(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    rows = [{"tokens": ["a"], "labels": ["X"]}, {"tokens": ["a", "b\tc"], "labels": ["X", "Y"]}]
    path.write_text("\n".join(map(json.dumps, rows)))
    rankone.memorize(path, construction="gated").save(tmp_path / "odd")
    whole = run("predict", tmp_path / "odd", path)
    found = run("predict", tmp_path / "odd", path, *BOUNDED)
    assert (found.code, found.err, found.out) == (2, whole.err, "")


@pytest.mark.usefixtures("cut")
def test_certify_and_check(run: Run, gated: tuple[Path, Path]) -> None:
    model, file = gated
    assert run("certify", model, file).code == 0
    whole = json.loads((model / "certificate.json").read_text())
    found = run("certify", model, file, *BOUNDED, "--json").json
    assert {**found, "seconds": {}} == {**whole, "seconds": {}, "files": found["files"]}
    check = ("certify", model, file, "--check", model / "certificate.json")
    assert run(*check, *BOUNDED).code == 0
    file.write_text(ROWS.replace("MD O", "MD B-X"))
    assert run(*check, *BOUNDED).code == 1


def test_a_refusal_writes_nothing(run: Run, model: Path, corpus: Path, tmp_path: Path) -> None:
    """A network without gates needs all of the corpus."""
    answer = run("certify", model, corpus, *BOUNDED, "--scratch", tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert "only networks with gates" in answer.err
    assert "leave out memory and engine (--memory, --engine)" in answer.err
    assert not (model / "certificate.json").exists()
    assert not list(tmp_path.glob("rankone-*"))
    for command in ("certify", "predict"):
        assert run(command, model, corpus, "--memory", "0.5").code == 2
        assert run(command, model, corpus, "--engine", "disk", "--workers", "2").code == 2
