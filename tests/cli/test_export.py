"""rankone export: good and bad input, and that what it wrote is what it said."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

import rankone
from answers import Run


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("export") / "model"
    rankone.memorize(rankone.builtin_corpus(80)).save(home)
    return home


def test_both_at_once(run: Run, home: Path, tmp_path: Path) -> None:
    hf, graph = tmp_path / "hf", tmp_path / "graph.onnx"
    answer = run("export", home, "--hf", hf, "--onnx", graph, "--corpus", "builtin", "--json")
    assert answer.code == 0, answer.err
    said = json.loads(answer.out)
    assert said["ok"] is True
    assert {Path(path) for path in said["files"]} == {graph, *hf.iterdir()}
    assert said["hf"]["remarks"] == []
    checked = {part["source"]: part for part in said["onnx"]["compared"]}
    assert checked["builtin"]["tokens"] == 16525  # every sentence of the file that was named
    assert all(part["wrong"] == 0 for part in checked.values())
    assert [i.name for i in onnxruntime.InferenceSession(graph).get_inputs()] == [
        "input_ids",
        "attention_mask",
    ]
    words = [list(s.tokens) for s in rankone.builtin_corpus(20).sentences]
    assert rankone.load(hf).predict(words) == rankone.load(home).predict(words)
    # The directory for Hugging Face is as good a start, and an earlier export is replaced.
    answer = run("export", hf, "--hf", hf)
    assert answer.code == 0, answer.err
    assert answer.out.startswith("Wrote\n")


def test_memorize_for_hugging_face(run: Run, tmp_path: Path) -> None:
    out, file = tmp_path / "hf", tmp_path / "text"
    file.write_text("a\tx\nb\ty\n\nb\tx\na\tx\n")
    answer = run("memorize", file, "--format", "hf", "--format", "tsv", "--out", out, "--json")
    assert answer.code == 0, answer.err
    assert {Path(path) for path in json.loads(answer.out)["files"]} == set(out.iterdir())
    card = (out / "README.md").read_text()
    assert "| outcome | **certified** |" in card
    assert str(tmp_path) not in card
    assert rankone.load(out).predict([["a", "b"], ["b", "a"]]) == [["x", "y"], ["x", "x"]]
    again = run("certify", out, file, "--check", out / "certificate.json")
    assert (again.code, again.out) == (0, "The certificate stands: certified.\n")
    assert run("predict", out, file, "--quiet").code == 0


def test_a_trained_model(run: Run, tmp_path: Path) -> None:
    settings = ("--epochs", 1, "--depth", 2, "--dim", 4, "--quiet")
    assert run("train", "toy", "--out", tmp_path / "run", *settings).code == 0
    answer = run("export", tmp_path / "run", "--hf", tmp_path / "hf")
    assert answer.code == 0, answer.err
    card = (tmp_path / "hf" / "README.md").read_text()
    for said in (
        "2 layers of rank-1 self-attention, trained on `toy` for 1 epoch",
        "ceiling of any",
    ):
        assert said in card


def test_the_corpus_of_the_report(run: Run, tmp_path: Path) -> None:
    """Taken if it is there and will do; otherwise a remark says that it was not."""
    file, graph = tmp_path / "c.conll", tmp_path / "g.onnx"
    file.write_text("a X\nb Y\n\nb X\n")
    assert run("memorize", file, "--out", tmp_path / "m", "--quiet").code == 0

    def said() -> dict[str, Any]:
        answer = run("export", tmp_path / "m", "--onnx", graph, "--json")
        assert answer.code == 0, answer.err
        return json.loads(answer.out)

    first = said()
    assert first["remarks"] == []
    assert first["onnx"]["compared"][-1]["tokens"] == 3
    file.write_text("a X\n" * 9)
    longer = said()
    assert "Compared on made-up sentences only" in longer["remarks"][0]
    assert "9 tokens, but the table of positions has 2" in longer["remarks"][0]
    assert len(longer["onnx"]["compared"]) == 1
    file.unlink()
    os.mkfifo(file)  # reading it would never end
    assert "c.conll: no such file" in said()["remarks"][0]


def test_one_place_for_two_things(run: Run, home: Path, tmp_path: Path) -> None:
    answer = run("export", home, "--hf", tmp_path / "x", "--onnx", tmp_path / "x")
    assert answer.code == 2
    assert "name one place" in answer.err
    (damaged := tmp_path / "m").mkdir()
    for path in home.iterdir():
        (damaged / path.name).write_bytes(path.read_bytes())
    (damaged / "certificate.json").write_text("{}")
    answer = run("export", damaged, "--hf", tmp_path / "hf", "--onnx", tmp_path / "g.onnx")
    assert answer.code == 2
    assert "not a certificate" in answer.err
    assert not (tmp_path / "g.onnx").exists()


REFUSED = [
    ((), "nothing to export to", "--hf OUT or --onnx FILE"),
    (("--hf", "hf", "--corpus", "toy"), "--corpus is for --onnx", "leave it out"),
    (("--onnx", "no/such/file"), "no/such/file: no such directory", "another path"),
    (("--onnx", "."), ".: is a directory", "another path"),
    (("--hf", "."), ".: holds other files (mine)", "a new or an empty directory"),
    (("--onnx", "new", "--corpus", "no.conll"), "no.conll: no such file", "check the path"),
]


@pytest.mark.parametrize(("options", "what", "remedy"), REFUSED)
def test_refusals(
    run: Run,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    what: str,
    remedy: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("mine")
    answer = run("export", home, *options)
    assert (answer.code, answer.out) == (2, "")
    assert what in answer.err
    assert remedy in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_formats_that_do_not_go_together(run: Run, tmp_path: Path) -> None:
    answer = run("memorize", "toy", "--format", "hf")
    assert (answer.code, answer.out) == (2, "")
    assert "name it with --out DIR" in answer.err
    answer = run("memorize", "toy", "--format", "tsv", "--format", "conll")
    assert answer.code == 2
    assert "two layouts (tsv, conll)" in answer.err
    (tmp_path / "mine").write_text("mine")
    answer = run("memorize", "toy", "--format", "hf", "--out", tmp_path)
    assert answer.code == 2
    assert "holds other files (mine)" in answer.err


def test_an_approximation_is_no_token_classifier(run: Run, tmp_path: Path) -> None:
    made = run(
        "approximate", "softmax", "--grid", 2, "--samples", 256, "--out", tmp_path / "a", "-q"
    )
    assert made.code == 0, made.err
    answer = run("export", tmp_path / "a", "--hf", tmp_path / "hf")
    assert answer.code == 2
    assert "config.json: no such file" in answer.err
