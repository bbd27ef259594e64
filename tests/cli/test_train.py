"""rankone train, with good and bad input, as a user meets it."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import runs
from answers import Answer, Run
from rankone.cli import running
from rankone.training.document import EpochLine

ONE_OBJECT = json.JSONDecoder(parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.fixture
def train(run: Run) -> Run:
    return partial(run, "train")


def document(answer: Answer) -> dict[str, Any]:
    """The one JSON object that is printed, and nothing else."""
    assert (answer.code, answer.err) == (0, "")
    found: dict[str, Any]
    found, end = ONE_OBJECT.raw_decode(answer.out)
    assert answer.out[end:] == "\n"
    return found


def refused(answer: Answer, message: str) -> None:
    """One message of two lines: where and what, and the remedy."""
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err
    first, second = answer.err.splitlines()
    assert first.startswith("rankone: ")
    assert second.startswith("  remedy: ")
    assert len(answer.err) < 1000


def contents(home: Path) -> dict[str, bytes]:
    return {str(p.relative_to(home)): p.read_bytes() for p in home.rglob("*") if p.is_file()}


# What a good command gives.


def test_a_trained_model_is_read_by_every_command(run: Run, tmp_path: Path) -> None:
    home = tmp_path / "deep" / "model"
    trained = document(run("train", "toy", "--epochs", 300, "--out", home, "--json"))
    assert trained["ok"]
    assert (trained["epochs"], trained["wrong"], trained["attention_share"]) == (300, 0, 1.0)
    assert {Path(path).name for path in trained["files"]} == {
        "log.jsonl",
        "model.safetensors",
        "config.json",
        "vocabulary.json",
        "labels.json",
        "report.json",
    }
    assert all(Path(path).is_file() for path in trained["files"])
    assert document(run("predict", home, "toy", "--json"))["accuracy"] == 1.0
    assert document(run("certify", home, "toy", "--json"))["outcome"] == "certified"


@pytest.mark.parametrize("how", [(), ("--depth", 2), ("--attention", "softmax")])
def test_a_model_that_is_wrong_is_refuted_not_refused(
    run: Run, tmp_path: Path, how: tuple[object, ...]
) -> None:
    trained = document(run("train", "toy", "--epochs", 2, *how, "--out", tmp_path / "m", "--json"))
    assert not trained["ok"]
    answer = run("certify", tmp_path / "m", "toy", "--json")
    assert answer.code == 1
    assert answer.json["labels"] == "refuted"
    assert answer.json["wrong"] == trained["wrong"]


def test_the_log_is_the_curve(train: Run, tmp_path: Path) -> None:
    found = document(train("toy", "--epochs", 3, "--out", tmp_path / "m", "--json"))
    lines = (tmp_path / "m" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == found["curve"]
    for epoch, line in enumerate(found["curve"], start=1):
        assert line.keys() == {"epoch", "loss", "accuracy", "tokens_per_second"}
        assert line["epoch"] == epoch


def test_the_ceilings_stand_beside_the_accuracy(train: Run, tmp_path: Path) -> None:
    answer = train("toy", "--epochs", 2)
    assert answer.code == 0
    for part in (
        "toy: depth 1, rank1 attention, 2 epochs",
        "60.0000% (12 wrong)",
        "100.0000% (0 wrong)",
        "of what attention could add",
        "Nothing written: no --out DIR.",
    ):
        assert part in answer.out
    board = train("toy", "--epochs", 2, "--tensorboard", tmp_path / "b").out
    assert board.endswith(f"No model written: no --out DIR.\nWrote\n  {tmp_path / 'b'}\n")
    written = train("toy", "--epochs", 2, "--out", tmp_path / "m").out
    assert written.splitlines()[-6:] == [
        f"  {tmp_path / 'm' / name}"
        for name in (
            "log.jsonl",
            "model.safetensors",
            "config.json",
            "vocabulary.json",
            "labels.json",
            "report.json",
        )
    ]


def test_quiet_says_nothing(train: Run, tmp_path: Path) -> None:
    answer = train("toy", "--epochs", 1, "--out", tmp_path / "m", "--quiet")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


def test_every_setting_is_an_option_and_is_told(train: Run) -> None:
    given = {
        "depth": 2,
        "epochs": 2,
        "attention": "softmax",
        "batch_size": 3,
        "dim": 6,
        "hidden": 5,
        "heads": 2,
        "head_size": 4,
        "positions": True,
        "max_length": 7,
        "optimizer": "sgd",
        "lr": 0.125,
        "momentum": 0.5,
        "schedule": "linear",
        "init_std": 0.25,
        "accuracy": "after",
        "dtype": "float64",
        "seed": 9,
        "patience": 2,
    }
    options = [
        word
        for name, value in given.items()
        if name != "positions"
        for word in (f"--{name.replace('_', '-')}", value)
    ]
    found = document(train("toy", *options, "--evaluate", "toy", "--json"))
    told = found["settings"]
    assert told == {**given, "scheme": None}


def test_columns_scheme_and_case_are_read_as_asked(train: Run, tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text("A x I-P\nb y O\n\na y I-P\n")
    home = tmp_path / "m"
    how = ("--scheme", "iob2", "--lower", "--format", "conll", "--out", home)
    answer = train(path, "--epochs", 1, *how)
    assert "Entity tags are read as IOB2 (--scheme iob2)." in answer.out
    assert json.loads((home / "vocabulary.json").read_text()) == ["a", "b"]
    assert json.loads((home / "labels.json").read_text()) == ["B-P", "O"]
    chosen = train(path, "--epochs", 1, "--label-column", 2, "--token-column", 1, "--json")
    assert document(chosen)["settings"]["scheme"] is None


@pytest.mark.parametrize("attention", ["rank1", "theorem2", "softmax"])
@pytest.mark.parametrize("text", ["x Y\n", "x Y\nx Y\n", "x Y\ny Y\n\nx Y\n", "x A\nx B\n"])
def test_tiny_files(run: Run, tmp_path: Path, text: str, attention: str) -> None:
    """One token; one word twice; one label; one word that is all there is, with two labels."""
    path, home = tmp_path / "tiny", tmp_path / "m"
    path.write_text(text)
    how = ("--attention", attention, "--out", home, "--json")
    found = document(run("train", path, "--epochs", 2, *how))
    assert found["tokens"] == text.count(" ")
    assert (found["attention_share"] is None) == ("B" not in text)
    again = document(run("predict", home, path, "--json"))
    assert again["accuracy"] == found["accuracy"]


def test_standard_input(train: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a X\nb Y\n")))
    found = document(train("-", "--epochs", 1, "--json"))
    assert (found["source"], found["tokens"]) == ("<stdin>", 2)


# Other files to measure on.


def test_evaluation_on_files_that_do_not_fit(train: Run, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("a B-X\nb I-X\nc O\n")
    other = {
        "new words": "zebra O\na B-X\n",
        "other labels": "a B-Z\nb NEW\n",
        "IOB1": "a I-X\nb I-X\nc O\n",
    }
    options: list[object] = []
    for name, text in other.items():
        (tmp_path / name).write_text(text)
        options += ["--evaluate", tmp_path / name]
    found = document(train(own, "--epochs", 60, "--lr", 0.05, *options, "--json"))
    assert found["wrong"] == 0
    new, labels, iob1 = found["evaluations"]
    assert (new["tokens"], new["unknown"]) == (2, 1)
    assert (labels["right"], labels["f1"]) == (0, None)
    assert (iob1["right"], iob1["f1"]) == (3, 1.0)  # turned into IOB2
    (remark,) = found["remarks"]
    assert "2 tokens with labels" in remark
    assert "(B-Z, NEW)" in remark
    answer = train(own, "--epochs", 1, *options)
    assert answer.err == f"rankone: {remark}\n"
    told = answer.out
    for part in ("unknown words", "1 token", "entities", "precision"):
        assert part in told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\nb\n", "other, line 1: only one column, so there are no labels"),
        ("", "other: no sentence in it"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_written(
    train: Run, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "other").write_text(text)
    how = ("--evaluate", tmp_path / "other", "--out", tmp_path / "m")
    refused(train("toy", "--epochs", 1, *how), message)
    assert not (tmp_path / "m").exists()


def test_longer_sentences_are_measured_in_pieces(train: Run, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("a odd\n" * 9)
    for how, pieces in ((("--max-length", 9), False), (("--no-positions",), False), ((), True)):
        answer = train("toy", "--epochs", 1, *how, "--evaluate", tmp_path / "other")
        assert answer.code == 0
        assert ("in pieces" in answer.out) == pieces


# What is refused.


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no sentence"),
        (b"a\nb\n", "there are no labels"),
        (b"a X\nb\n", "line 2: 1 column where the rows before have 2"),
        (b"a X\nb\xff Y\n", "line 2: byte 0xff"),
    ],
)
def test_bad_files_leave_no_directory(
    train: Run, tmp_path: Path, data: bytes, message: str
) -> None:
    (tmp_path / "bad").write_bytes(data)
    refused(train(tmp_path / "bad", "--out", tmp_path / "m", "--json"), message)
    assert {entry.name for entry in tmp_path.iterdir()} == {"bad"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do all")
def test_what_may_not_be_read_or_written(train: Run, corpus: Path, tmp_path: Path) -> None:
    corpus.chmod(0)
    refused(train(corpus, "--out", tmp_path / "m"), "permission denied")
    (tmp_path / "locked").mkdir(mode=0o500)
    refused(train("toy", "--epochs", 1, "--out", tmp_path / "locked" / "m"), "Permission denied")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lr", "0"), "a learning rate of 0 learns nothing"),
        (("--lr", "-1"), "lr cannot be -1.0"),
        (("--lr", "nan"), "lr cannot be nan"),
        (("--momentum", "1"), "momentum cannot be 1.0"),
        (("--seed", "99999999999"), "seed cannot be 99999999999"),
        (("--attention", "softmax", "--heads", "5"), "5 heads do not divide 32 dimensions"),
        (("--max-length", "2"), "3 tokens, but the table of positions has 2 rows"),
        (("--evaluate", "{tmp}/none"), "no such file"),
        (("--out", "{corpus}"), "cannot be made (File exists)"),
        (("--out", "{corpus}/m"), "cannot be made (Not a directory)"),
        (("--out", "{tmp}"), "holds other files (corpus.conll)"),
        (("--out", "{tmp}", "--resume"), "holds other files (corpus.conll)"),
        (("--tensorboard", "{corpus}"), "cannot be made (File exists)"),
        (("--device", "nonsense"), "cannot compute on 'nonsense'"),
        (("--format", "tsv"), "a built-in corpus has no layout and no columns"),
        (("--lr", "1e9", "--depth", "3", "--quiet"), "training diverged"),
        (("--resume",), "--out"),
        (("--hidden", "2147483647", "--dim", "65536"), "training would take at least "),
        (("--device", "meta"), "cannot compute on 'meta'"),
        (("--device", "mps"), "arguments from the 'MPS' backend)"),  # and no pages of torch's
    ],
)
def test_refusals(
    train: Run, tmp_path: Path, corpus: Path, options: tuple[str, ...], message: str
) -> None:
    before = contents(tmp_path)
    words = (word.format(tmp=tmp_path, corpus=corpus) for word in options)
    refused(train("toy", "--epochs", 3, *words), message)
    assert contents(tmp_path) == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there(train: Run, tmp_path: Path) -> None:
    refused(train("toy", "--device", "cuda", "--out", tmp_path / "m"), "torch sees no GPU")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--epochs", 0),
        ("--depth", 0),
        ("--batch-size", 0),
        ("--threads", 0),
        ("--lr", "x"),
        ("--momentum", "nan"),
        ("--init-std", -1),
        ("--checkpoint-seconds", -1),
        ("--attention", "other"),
        ("--optimizer", "other"),
        ("toy",),
        ("--nonsense",),
    ],
)
def test_wrong_usage_ends_with_status_2(train: Run, options: tuple[object, ...]) -> None:
    answer = train("toy", *options)
    assert (answer.code, answer.out) == (2, "")
    assert "Traceback" not in answer.err


def test_a_directory_is_never_written_over(run: Run, tmp_path: Path) -> None:
    trained, memorized = tmp_path / "trained", tmp_path / "memorized"
    run("train", "toy", "--epochs", 1, "--out", trained, "--quiet")
    run("memorize", "toy", "--out", memorized, "--quiet")
    before = contents(tmp_path)
    for message, *words in (
        ("holds a run already", "train", "toy", "--epochs", 1, "--out", trained),
        ("holds other files", "train", "toy", "--epochs", 1, "--out", memorized),
        ("holds other files", "train", "toy", "--epochs", 1, "--out", memorized, "--resume"),
        ("holds other files", "memorize", "toy", "--out", trained),
        ("dim 8, not 32", "train", "toy", "--dim", 8, "--out", trained, "--resume"),
        ("the corpus is another one", "train", "builtin", "--out", trained, "--resume"),
    ):
        refused(run(*words), message)
    assert contents(tmp_path) == before


def test_a_certificate_goes_with_the_weights_it_was_for(run: Run, tmp_path: Path) -> None:
    home = tmp_path / "m"
    run("train", "toy", "--epochs", 1, "--out", home, "--quiet")
    run("certify", home, "toy", "--quiet")
    assert (home / "certificate.json").exists()
    run("train", "toy", "--epochs", 2, "--out", home, "--resume", "--quiet")
    assert not (home / "certificate.json").exists()


# How it ends.


def test_a_variable_of_other_launchers_is_no_traceback(
    train: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    answer = train("toy", "--epochs", 1, "--json")
    assert answer.code in (0, 2)


def test_ctrl_c_says_how_to_resume_and_the_run_can_go_on(
    train: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    words = ("toy", "--epochs", 5, "--batch-size", 4, "--dim", 4)
    text = running.epoch_text

    def interrupt(line: EpochLine) -> str:
        if line["epoch"] == 3:
            signal.raise_signal(signal.SIGINT)
        return text(line)

    with monkeypatch.context() as patch:
        patch.setattr(running, "epoch_text", interrupt)
        answer = train(*words, "--checkpoint-seconds", 0, "--out", stopped, "--evaluate", "toy")
    assert answer.code == 130
    assert [line.partition(":")[0] for line in answer.out.splitlines()] == ["epoch 1", "epoch 2"]
    said, command = answer.err.splitlines()
    assert said == "rankone: stopped; continue from the last checkpoint, step 9, with"
    assert command == f"  rankone train toy --out {stopped} --resume --evaluate toy"
    assert not (stopped / "model.safetensors").exists()
    resumed = train(*command.split()[2:], "--quiet")  # with the settings it was started with
    assert (resumed.code, resumed.out, resumed.err) == (0, "", "")
    assert train(*words, "--out", whole, "--quiet", "--evaluate", "toy").code == 0
    assert runs.weights(stopped) == runs.weights(whole)
    assert runs.log(stopped) == runs.log(whole)
