"""Every command, with good and bad input, as a user meets it."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rankone
from answers import CORPUS, Run


def test_inspect_tells_ceilings_and_conflicts(run: Run, corpus: Path) -> None:
    answer = run("inspect", corpus)
    assert answer.code == 0
    for part in (
        "sentences",
        "the token alone",
        "Ceilings",
        "Entity tags are IOB2",
        "Conflicts: 1",
    ):
        assert part in answer.out
    assert "'the' (token 1): O on line 1; B-X on line 8" in answer.out


def test_inspect_json_is_one_object_with_what_was_promised(run: Run, corpus: Path) -> None:
    answer = run("inspect", corpus, "--json")
    assert answer.err == ""
    audit = answer.json
    assert {"sentences", "tokens", "vocabulary", "labels", "longest", "conflicts"} <= set(audit)
    assert audit["labels"] == {"O": 4, "B-X": 3}
    for name in ("majority", "token", "set", "sequence", "prefix"):
        assert set(audit["ceilings"][name]) == {"accuracy", "errors"}
    assert audit["ceilings"]["sequence"]["errors"] == 1
    assert audit["conflicts"][0]["labels"] == {"O": [1], "B-X": [8]}


def test_inspect_other_columns_and_lower_case(run: Run, corpus: Path) -> None:
    audit = run("inspect", corpus, "--label-column", 2, "--lower", "--json").json
    assert set(audit["labels"]) == {"DT", "NN", "MD", "VB"}


def test_scheme_is_said(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "iob1"
    path.write_text("a I-X\nb O\n")
    kept, converted = run("inspect", path), run("inspect", path, "--scheme", "iob2")
    assert "Entity tags are IOB1 and kept as stored; --scheme iob2 converts them." in kept.out
    assert "read as IOB2" in converted.out


def test_memorize_writes_a_model_that_predict_reads(run: Run, corpus: Path, tmp_path: Path) -> None:
    home = tmp_path / "deep" / "model"
    answer = run("memorize", corpus, "--out", home)
    assert answer.code == 0
    assert "7 of 8" not in answer.out
    assert "6 of 7" in answer.out
    for name in ("model.safetensors", "config.json", "vocabulary.json", "labels.json"):
        assert str(home / name) in answer.out.replace("\n", "")
        assert (home / name).exists()
    found = run("predict", home, corpus)
    assert found.out.startswith("the\tO\nwill\tB-X\n\nthe\tO\nwill\tO\nrun\tO\n\n")
    assert "6 as labelled in the file" in found.err


def test_memorize_json_has_what_was_promised(run: Run, corpus: Path, tmp_path: Path) -> None:
    answer = run("memorize", corpus, "--out", tmp_path / "m", "--json")
    assert answer.err == ""
    report = answer.json
    assert (report["tokens"], report["sentences"]) == (7, 3)
    assert report["wrong"] == report["unavoidable"] == 1
    assert report["hidden_units"] > 0
    assert report["parameters"] > 0
    assert report["max_error"] + report["margin"] == pytest.approx(0.5)
    assert report["min_gap"] > 0
    assert {"read", "construct", "verify"} <= set(report["seconds"])
    assert len(report["files"]) == 5
    assert json.loads((tmp_path / "m" / "report.json").read_text())["wrong"] == 1


@pytest.mark.parametrize(
    "options",
    [
        ("--no-positions",),
        ("--causal",),
        ("--head-size", "3"),
        ("--readout", "paper"),
        ("--verify", "dense"),
        ("--seed", "7", "--max-length", "19"),
    ],
)
def test_memorize_options(run: Run, options: tuple[str, ...]) -> None:
    report = run("memorize", "builtin", *options, "--json").json
    assert report["ok"]
    assert report["files"] == []


def test_memorize_with_vectors(run: Run, corpus: Path, tmp_path: Path) -> None:
    glove = tmp_path / "glove.txt"
    glove.write_text("the 1 2\nwill 3 -1\nrun 0.5 0.25\n")
    assert run("memorize", corpus, "--vectors", glove, "--json").json["settings"]["dim"] == 2
    glove.write_text("the 1 2\nwill 0 0\nrun 0.5 0.25\n")
    answer = run("memorize", corpus, "--vectors", glove)
    assert answer.code == 2
    assert "'will' is zero" in answer.err


def test_strict(run: Run, corpus: Path, tmp_path: Path) -> None:
    answer = run("memorize", corpus, "--strict", "--out", tmp_path / "m")
    assert answer.code == 2
    assert "'the' (token 1): O on line 1; B-X on line 8" in answer.err
    assert not (tmp_path / "m").exists()


def test_predict_unlabelled_text_and_unknown_words(run: Run, model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("the\nwill\n\nzebra\n")
    answer = run("predict", model, text, "--json").json
    assert (answer["tokens"], answer["unknown"], answer["right"]) == (3, 1, None)
    assert answer["sentences"][0] == {"tokens": ["the", "will"], "labels": ["O", "B-X"], "line": 1}
    assert answer["sentences"][1]["labels"] == ["O"]
    out = tmp_path / "found"
    assert run("predict", model, text, "--out", out, "--quiet").out == ""
    assert out.read_text() == "the\tO\nwill\tB-X\n\nzebra\tO\n"
    assert run("predict", model, text, "--out", tmp_path / "no" / "where").code == 2


def test_predict_reads_text_as_the_model_did(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "iob1"
    path.write_text("A I-X\nb O\n\nc I-X\nA I-X\n")
    run("memorize", path, "--scheme", "iob2", "--lower", "--out", tmp_path / "m", "--quiet")
    assert run("predict", tmp_path / "m", path, "--json").json["accuracy"] == 1.0


def test_predict_reads_the_columns_the_model_was_made_from(
    run: Run, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("memorize", corpus, "--label-column", 2, "--out", tmp_path / "m", "--quiet")
    assert run("predict", tmp_path / "m", corpus, "--json").json["accuracy"] == 1.0
    bare = tmp_path / "bare"
    bare.write_text("the\nwill\n")
    assert run("predict", tmp_path / "m", bare, "--json").json["accuracy"] is None
    iob1 = tmp_path / "iob1"
    iob1.write_text("A I-X\nb O\n")
    run("memorize", iob1, "--scheme", "iob2", "--out", tmp_path / "n", "--quiet")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(iob1.read_bytes())))
    assert run("predict", tmp_path / "n", "-", "--json").json["accuracy"] == 1.0


def test_predict_writes_through_a_pipe_and_keeps_modes(
    run: Run, model: Path, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "found"
    out.write_text("old")
    out.chmod(0o600)
    run("predict", model, corpus, "--out", out, "--quiet")
    assert out.stat().st_mode & 0o777 == 0o600
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        run("predict", model, corpus, "--out", pipe, "--quiet")
        assert reader.communicate(timeout=20)[0] == out.read_text()
    assert pipe.is_fifo()


def test_predict_refuses_rows_that_a_token_would_break(
    run: Run, model: Path, tmp_path: Path
) -> None:
    text = tmp_path / "t.jsonl"
    text.write_text('{"tokens": ["the"]}\n{"tokens": ["a\\tb"]}\n')
    answer = run("predict", model, text)
    assert (answer.code, answer.out) == (2, "")
    assert "line 2: the token 'a\\tb' does not fit into a row" in answer.err
    assert run("predict", model, text, "--json").json["tokens"] == 2


def test_words_are_shown_as_they_are(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.tsv"
    path.write_text("a\t:car:\nb\t[red]x\nc\t\x1b[31mz\n", encoding="utf-8")
    out = run("inspect", path).out
    for shown in (":car:", "[red]x", "\\x1b[31mz"):
        assert shown in out


def test_no_message_steers_the_terminal(run: Run, model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    config["network"]["attention"] = "\x1b[2J"
    (model / "config.json").write_text(json.dumps(config))
    answer = run("predict", model, "builtin")
    assert answer.code == 2
    assert "unknown word '\\x1b[2J'" in answer.err


BAD = [
    (b"a X\nb\n", "line 2: 1 column where the rows before have 2"),
    (b"", "no sentence"),
    (b"a X\nb\xff Y\n", "line 2: byte 0xff"),
    (b"a X\n\0 Y\n", "line 2: a NUL byte"),
    (b'{"tokens": ["a"], "labels": ["X", "Y"]}\n', "line 1: 1 token but 2 labels"),
]


@pytest.mark.parametrize("command", ["inspect", "memorize"])
@pytest.mark.parametrize(("data", "message"), BAD)
def test_bad_files_end_with_status_2_and_write_nothing(
    run: Run, tmp_path: Path, command: str, data: bytes, message: str
) -> None:
    path = tmp_path / "bad"
    path.write_bytes(data)
    out = ["--out", tmp_path / "m"] if command == "memorize" else []
    answer = run(command, path, *out, "--json")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"rankone: {path}")
    assert message in answer.err
    assert "remedy:" in answer.err
    assert len(answer.err.splitlines()) == 2
    assert {entry.name for entry in tmp_path.iterdir()} == {"bad"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inspect", "{tmp}/*.nothing"), "no file of this pattern"),
        (("inspect", "{tmp}/none"), "no such file"),
        (("inspect", "{corpus}", "--label-column", "9"), "no column 9 for the label"),
        (("memorize", "{corpus}", "--out", "{corpus}"), "is a file"),
        (("memorize", "{corpus}", "--out", "{tmp}"), "holds other files"),
        (("memorize", "{corpus}", "--max-length", "2"), "the table of positions has 2"),
        (("memorize", "{corpus}", "--vectors", "{tmp}/none"), "cannot be read"),
        (("predict", "{tmp}/none", "{corpus}"), "no such directory"),
        (("predict", "{tmp}", "{corpus}"), "config.json: no such file"),
        (("inspect", "{corpus}", "--label-column=--5"), "no label column named '--5'"),
    ],
)
def test_other_refusals(
    run: Run,
    tmp_path: Path,
    corpus: Path,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    answer = run(*(word.format(tmp=tmp_path, corpus=corpus) for word in arguments))
    assert answer.code == 2
    assert message in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("memorize", "builtin", "--head-size", "0"),
        ("memorize", "builtin", "--max-length", "0"),
        ("memorize", "builtin", "--seed", "-1"),
        ("memorize", "builtin", "--readout", "other"),
        ("inspect",),
        ("nonsense",),
    ],
)
def test_wrong_usage_ends_with_status_2(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments).code == 2


def test_quiet_says_nothing(run: Run, corpus: Path, tmp_path: Path) -> None:
    for arguments in (("inspect", corpus), ("memorize", corpus, "--out", tmp_path / "m")):
        answer = run(*arguments, "--quiet")
        assert (answer.code, answer.out, answer.err) == (0, "", "")


def test_version_and_help(run: Run) -> None:
    assert run("--version").out.strip() == f"rankone {rankone.__version__}"
    for command in ("inspect", "memorize", "predict"):
        assert "--json" in run(command, "--help").out


def fresh(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rankone", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **settings,
    )


def test_standard_input_in_a_fresh_process() -> None:
    answer = fresh("inspect", "-", "--json", input=CORPUS)
    assert answer.returncode == 0
    assert json.loads(answer.stdout)["source"] == "<stdin>"


def test_a_reader_that_stops_early_is_no_error() -> None:
    script = f"{sys.executable} -m rankone inspect builtin | head -n 1"
    answer = subprocess.run(script, shell=True, capture_output=True, text=True, timeout=60)
    assert answer.stderr == ""
    assert answer.stdout.startswith("builtin")


def test_a_standard_output_that_is_closed_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "c").write_text(CORPUS)
    script = f"{sys.executable} -m rankone inspect {tmp_path / 'c'} --json >&-"
    answer = subprocess.run(script, shell=True, capture_output=True, text=True, timeout=60)
    assert (answer.returncode, answer.stderr) == (0, "")


def test_narrow_terminals_lose_no_figure() -> None:
    answer = fresh("inspect", "builtin", env={**os.environ, "COLUMNS": "40"})
    assert answer.returncode == 0
    assert "16,525" in answer.stdout
    assert not re.search(r"\x1b\[", answer.stdout)
