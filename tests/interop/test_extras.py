"""Every extra is optional: without it one line says which to install."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rankone
from rankone.errors import ExtraError

# One process imports what all cases share and forks for each, for starting takes seconds.
CASES = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
import rankone.certification, rankone.construct, rankone.training
from rankone.cli import main

def run(missing, arguments):
    sys.modules.update(dict.fromkeys(missing))  # as if they were not installed
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            if isinstance(arguments, str):
                exec(arguments, {})
            else:
                sys.argv = ["rankone", *arguments]
                main()
        except SystemExit as left:
            code = left.code
        except ImportError as error:
            print(type(error).__name__, error)
    return [code, out.getvalue(), err.getvalue()]

for case in json.load(sys.stdin):
    sys.stdout.flush()
    if not os.fork():
        print(json.dumps(run(*case)))
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""
NEEDS = {
    "hf": ("transformers", "tokenizers"),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "sklearn": ("sklearn",),
}
NAMES = {
    "RankOneClassifier": "sklearn",
    "RankOneForTokenClassification": "hf",
    "RankOneConfig": "hf",
    "export_hf": "hf",
    "export_onnx": "onnx",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("extras")
    rankone.memorize([(["a"], ["x"]), (["b"], ["y"])]).save(home / "model")
    return home


@pytest.fixture(scope="module")
def answers(home: Path) -> dict[str, list[Any]]:
    """What each case says: exit code, output, errors."""
    new = str(home / "new")
    cases: dict[str, tuple[tuple[str, ...], Any]] = {
        missing: ((missing,), ["export", str(home / "model"), f"--{name}", new])
        for name in ("hf", "onnx")
        for missing in NEEDS[name]
    }
    cases["memorize"] = NEEDS["hf"], ["memorize", "toy", "--hf", new]
    board = ["train", "toy", "--epochs", "1", "--tensorboard", new]
    cases["lens"] = ("transformer_lens",), "import rankone.interop.transformer_lens"
    cases["train"] = ("torch.utils.tensorboard",), board
    for name, extra in NAMES.items():
        cases[name] = NEEDS[extra], f"from rankone import {name}"
    done = subprocess.run(
        [sys.executable, "-c", CASES],
        input=json.dumps(list(cases.values())),
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(cases, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize(
    ("case", "extra"),
    [
        *((missing, name) for name in ("hf", "onnx") for missing in NEEDS[name]),
        ("memorize", "hf"),
        ("train", "tensorboard"),
    ],
)
def test_commands_say_which_extra_to_install(
    answers: dict[str, list[Any]], home: Path, case: str, extra: str
) -> None:
    code, out, err = answers[case]
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith("rankone: ")
    assert f"pip install 'rankone[{extra}]'" in line
    assert [path.name for path in home.iterdir()] == ["model"]


def test_transformer_lens_is_an_extra(answers: dict[str, list[Any]]) -> None:
    (said,) = answers["lens"][1].splitlines()
    assert said.startswith("ExtraError ")
    assert "pip install 'rankone[lens]'" in said


@pytest.mark.parametrize(("name", "extra"), NAMES.items())
def test_names_that_need_extras(answers: dict[str, list[Any]], name: str, extra: str) -> None:
    assert getattr(rankone, name).__doc__
    assert name not in dir(rankone)  # `from rankone import *` needs no extra
    (said,) = answers[name][1].splitlines()
    assert said.startswith("ExtraError ")
    assert f"pip install 'rankone[{extra}]'" in said
    assert issubclass(ExtraError, ImportError)
