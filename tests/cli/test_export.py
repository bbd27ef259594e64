"""rankone export: good and bad input, and that what it wrote is what it said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx as onnx_file
import onnxruntime
import pytest
import torch

import rankone
from answers import Run
from rankone.errors import OutputError
from rankone.interop.huggingface import export as huggingface
from rankone.interop.onnx import export as onnx
from rankone.interop.onnx.graph import Graph

CORPUS = rankone.builtin_corpus(80)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("export") / "model"
    rankone.memorize(CORPUS).save(home)
    return home


def copied(home: Path, target: Path) -> Path:
    target.mkdir()
    for path in home.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


class StandIn:
    """A session of onnxruntime that takes no seconds to make: the module that is exported."""

    off = 0.0

    def __init__(self, model: rankone.Model) -> None:
        self.graph = Graph(model.network)

    @torch.no_grad()
    def run(self, _: Any, given: dict[str, Any]) -> list[Any]:
        ids, mask = (torch.from_numpy(given[name]) for name in ("input_ids", "attention_mask"))
        return [self.graph(ids, mask).numpy() + self.off]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one test waits for torch's exporter."""
    models: list[rankone.Model] = []

    def serialize(model: rankone.Model) -> bytes:
        models.append(model)
        return b"graph"

    monkeypatch.setattr(onnx, "serialize", serialize)
    monkeypatch.setattr(onnx, "opened", lambda _: StandIn(models[-1]))


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
    words = [list(s.tokens) for s in CORPUS.sentences]
    assert rankone.load(hf).predict(words) == rankone.load(home).predict(words)
    # The directory for Hugging Face is as good a start, and an earlier export is replaced.
    answer = run("export", hf, "--hf", hf)
    assert answer.code == 0, answer.err
    assert answer.out.startswith("Wrote\n")


def test_memorize_for_hugging_face(run: Run, tmp_path: Path) -> None:
    out, file = tmp_path / "hf", tmp_path / "text"
    file.write_text("a\tx\nb\ty\n\nb\tx\na\tx\n")
    own = tmp_path / "own"
    answer = run("memorize", file, "--format", "tsv", "--hf", out, "--out", own, "--json")
    assert answer.code == 0, answer.err
    written = {*out.iterdir(), *own.iterdir()}
    assert {Path(path) for path in json.loads(answer.out)["files"]} == written
    assert rankone.load(own).predict([["a", "b"]]) == [["x", "y"]]
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


def test_a_trained_model_runs_in_onnxruntime(run: Run, tmp_path: Path) -> None:
    """In float32, as it was trained, without a float64 in it; labels are those of `predict`."""
    home, path = tmp_path / "run", tmp_path / "graph.onnx"
    settings = ("--epochs", 2, "--depth", 2, "--dim", 8, "--quiet")
    assert run("train", "builtin", "--out", home, *settings).code == 0
    answer = run("export", home, "--onnx", path, "--corpus", "builtin", "--json")
    assert answer.code == 0, answer.err
    checked = {part["source"]: part for part in answer.json["onnx"]["compared"]}
    assert checked["builtin"]["tokens"] == 16525
    assert all(part["wrong"] == part["steep"] == 0 for part in checked.values())
    assert 0 < answer.json["onnx"]["difference"] < 2e-5
    tensors = onnx_file.load(path).graph.initializer
    assert {t.data_type for t in tensors} == {
        onnx_file.TensorProto.FLOAT,
        onnx_file.TensorProto.INT64,
    }
    session, model = onnxruntime.InferenceSession(path), rankone.load(home)
    assert model.network.dtype == torch.float32
    for sentence in CORPUS.sentences:
        ids = model.rows(list(sentence.tokens))[None]
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        (logits,) = session.run(["logits"], given)
        assert logits.dtype == np.float32
        found = [model.labels[i] for i in logits[0].argmax(-1)]
        assert found == model.predict([sentence])[0]
        with torch.no_grad():
            own = model.network(torch.from_numpy(ids))[0]
        torch.testing.assert_close(torch.from_numpy(logits[0]), own, rtol=2e-5, atol=2e-5)


@pytest.mark.usefixtures("quick")
def test_a_report_names_no_file_to_open(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory may be a stranger's; only --corpus says what is read."""
    monkeypatch.setattr(rankone.Model, "read", None)
    strange, secret = copied(home, tmp_path / "m"), tmp_path / "secret.conll"
    secret.write_text("a X\nb Y\n")
    report = strange / "report.json"
    report.write_text(json.dumps({**json.loads(report.read_text()), "source": str(secret)}))
    answer = run("export", strange, "--onnx", tmp_path / "g.onnx", "--json")
    assert answer.code == 0, answer.err
    assert [part["source"] for part in answer.json["onnx"]["compared"]] == ["made-up"]
    assert answer.json["remarks"] == [
        "Compared on made-up sentences only; --corpus FILE adds your own."
    ]
    assert str(secret) not in answer.out


# Both or neither.


def stale(home: Path, _: pytest.MonkeyPatch) -> None:
    other = rankone.memorize([(["a"], ["x"])])
    found = rankone.certify(other.model, rankone.Corpus.from_sentences([(["a"], ["x"])]))
    (home / "certificate.json").write_text(json.dumps(found.to_json()))


def damaged(home: Path, _: pytest.MonkeyPatch) -> None:
    (home / "certificate.json").write_text("{}")


def wrong_graph(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandIn, "off", 1.0)


def full_disk(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OutputError("cannot write (No space left on device)")

    monkeypatch.setattr(huggingface, "write_directory", fail)


def interrupted(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(huggingface, "write_directory", fail)


FAILURES = [
    (stale, 2, "certificate.json: is about another model"),
    (damaged, 2, "certificate"),
    (wrong_graph, 2, "logits that are too far off"),
    (full_disk, 2, "No space left"),
    (interrupted, 130, ""),
]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("before", [None, "from before"], ids=["new", "over another"])
@pytest.mark.parametrize(
    ("spoil", "code", "said"), FAILURES, ids=lambda v: getattr(v, "__name__", "")
)
def test_both_are_written_or_neither(
    run: Run,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[..., None],
    code: int,
    said: str,
    before: str | None,
) -> None:
    model, out = copied(home, tmp_path / "m"), tmp_path / "out"
    out.mkdir()
    if before is not None:
        (out / "g.onnx").write_text(before)
    spoil(model, monkeypatch)
    answer = run("export", model, "--hf", out / "hf", "--onnx", out / "g.onnx")
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    found = {path.name: path.read_text() for path in out.iterdir()}
    assert found == ({} if before is None else {"g.onnx": before})


REFUSED = [
    ((), "nothing to export to", "--hf OUT or --onnx FILE"),
    (("--hf", "hf", "--corpus", "toy"), "--corpus is for --onnx", "leave it out"),
    (("--onnx", "no/such/file"), "no/such/file: no such directory", "another path"),
    (("--onnx", "."), ".: is a directory", "another path"),
    (("--hf", "."), ".: holds other files (mine)", "a new or an empty directory"),
    (("--onnx", "new", "--corpus", "no.conll"), "no.conll: no such file", "check the path"),
    (("--hf", "x", "--onnx", "x"), "--onnx is inside --hf", "choose two separate places"),
    (("--hf", "x", "--onnx", "x/y/g.onnx"), "--onnx is inside --hf", "choose two separate places"),
]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("given", "what", "remedy"), REFUSED)
def test_refusals(
    run: Run,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: tuple[str, ...],
    what: str,
    remedy: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("mine")
    answer = run("export", home, *given)
    assert (answer.code, answer.out) == (2, "")
    assert what in answer.err
    assert remedy in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("hf", "out", "what"),
    [
        ("hf", "hf", "--out and --hf are the same directory"),
        ("hf/deep", "hf", "--out and --hf are the same directory, or one is inside"),
        ("other", "new", "other: holds other files (file)"),
        ("new", "other", "other: holds other files (file)"),
        ("new", "mine", "mine: is a file"),
    ],
)
def test_memorize_writes_nothing_unless_both_places_will_do(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hf: str, out: str, what: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("mine")
    Path("other").mkdir()
    Path("other/file").write_text("theirs")
    answer = run("memorize", "toy", "--hf", hf, "--out", out)
    assert (answer.code, answer.out) == (2, "")
    assert what in answer.err
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "other"}


def test_a_format_is_the_layout_of_the_file(run: Run) -> None:
    answer = run("memorize", "toy", "--format", "hf")
    assert (answer.code, answer.out) == (2, "")
    assert "'hf'" in answer.err
