"""Directories that may not be written to or read, for a user who is not root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import rankone

# The commands are run once as they are, so that all is imported; then as nobody, if root runs this.
SCRIPT = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
from rankone.cli import main

def run(arguments):
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["rankone", *arguments]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as left:
            return [left.code or 0, out.getvalue(), err.getvalue()]

first, cases = json.load(sys.stdin)
for arguments in first:
    found = run(arguments)
    assert found[0] == 0, found
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    os.environ["HOME"] = "/nonexistent"
answers = [run(arguments) for arguments in cases]
print(json.dumps(answers))
"""
TEXT = "a X\nb Y\n\nb X\n"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A place that everybody may enter, which pytest's are not."""
    with TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o777)
        yield place
        for path in place.iterdir():
            path.chmod(0o755)


Case = tuple[list[str], int, str]


@pytest.fixture(scope="module")
def cases(place: Path) -> dict[str, Case]:
    """What is asked for, the exit code, and what is said."""
    (text := place / "text.conll").write_text(TEXT)
    made = rankone.memorize(text)
    made.save(place / "model")
    rankone.certify(made.model, rankone.read_corpus(text)).save(
        place / "model" / "certificate.json"
    )
    made.save(place / "secret")
    (place / "secret" / "labels.json").chmod(0)
    made.save(place / "sealed")
    (place / "sealed" / "model.safetensors").chmod(0)
    made.save(place / "closed")
    (place / "full").mkdir()
    (place / "full" / "mine").write_text("mine")
    (place / "new").mkdir(mode=0o777)
    for name, mode in (("model", 0o555), ("full", 0o555), ("closed", 0), ("new", 0o777)):
        (place / name).chmod(mode)
    model, denied, kept = str(place / "model"), "Permission denied", "cannot be written to"
    hf, new = "--hf", place / "new"
    return {
        "predict": (["predict", model, str(text), "-q"], 0, ""),
        "export to a new place": (["export", model, hf, str(new / "hf"), "-q"], 0, ""),
        "export": (["export", model, hf, str(place / "full" / "hf")], 2, kept),
        "export into the model": (["export", model, hf, str(place / "model" / "hf")], 2, kept),
        "memorize": (["memorize", str(text), "--out", str(place / "full" / "m")], 2, kept),
        "certify": (
            ["certify", model, str(text)],
            2,
            f"{kept}\n  remedy: choose another path with --out",
        ),
        "predict to there": (
            ["predict", model, str(text), "--out", str(place / "full" / "p")],
            2,
            kept,
        ),
        "secret weights": (["predict", str(place / "sealed"), str(text)], 2, denied),
        "a secret file": (["predict", str(place / "secret"), str(text)], 2, denied),
        "a closed directory": (["predict", str(place / "closed"), str(text)], 2, denied),
        "export from there": (["export", str(place / "closed"), hf, str(new / "x")], 2, denied),
        "export to there": (["export", model, hf, str(place / "closed")], 2, denied),
    }


@pytest.fixture(scope="module")
def answers(place: Path, cases: dict[str, Case], tmp_path_factory: Any) -> dict[str, list[Any]]:
    warm = tmp_path_factory.mktemp("warm")
    (text := warm / "text.conll").write_text(TEXT)
    first = [
        ["memorize", str(text), "--out", str(warm / "m")],
        ["predict", str(warm / "m"), str(text)],
        ["certify", str(warm / "m"), str(text)],
        ["export", str(warm / "m"), "--hf", str(warm / "hf")],
    ]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps([first, [arguments for arguments, _, _ in cases.values()]]),
        capture_output=True,
        text=True,
        cwd=place,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(cases, json.loads(done.stdout), strict=True))


def test_one_message_and_nothing_left(
    answers: dict[str, list[Any]], cases: dict[str, Case], place: Path
) -> None:
    for name, (_, code, said) in cases.items():
        found, out, err = answers[name]
        assert (found, out if code else "") == (code, ""), (name, err)
        assert said in err, (name, err)
        if code:
            assert err.startswith("rankone: ")
            assert "\n  remedy: " in err
            assert len(err.splitlines()) == 2, name
    (place / "closed").chmod(0o755)
    assert [path.name for path in (place / "new").iterdir()] == ["hf"]
    assert [path.name for path in (place / "full").iterdir()] == ["mine"]
    assert rankone.load(place / "new" / "hf").predict([["a", "b"]])
