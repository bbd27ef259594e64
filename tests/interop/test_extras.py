"""Every extra is optional: without it one line says which to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rankone
from rankone.errors import ExtraError

WITHOUT = """
import sys
for name in {names}:
    sys.modules[name] = None  # as if it were not installed
sys.argv = ["rankone", *sys.argv[1:]]
from rankone.cli import main
main()
"""
NEEDS = {
    "hf": ("transformers", "tokenizers"),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "sklearn": ("sklearn",),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("extras") / "model"
    rankone.memorize([(["a"], ["x"]), (["b"], ["y"])]).save(home)
    return home


def refusal(missing: str, *arguments: str) -> str:
    """The one line that rankone prints where a package is missing."""
    command = [sys.executable, "-c", WITHOUT.format(names=[missing]), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("rankone: ")
    return line


@pytest.mark.parametrize("missing", [*NEEDS["hf"], *NEEDS["onnx"]])
def test_export_says_which_extra_to_install(home: Path, tmp_path: Path, missing: str) -> None:
    name = "hf" if missing in NEEDS["hf"] else "onnx"
    said = refusal(missing, "export", str(home), f"--{name}", str(tmp_path / "out"))
    assert f"pip install 'rankone[{name}]'" in said
    assert list(tmp_path.iterdir()) == []


def test_memorize_says_so_before_it_works(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    said = refusal("transformers", "memorize", "toy", "--format", "hf", "--out", out)
    assert "pip install 'rankone[hf]'" in said


def test_so_does_train(tmp_path: Path) -> None:
    board = ("--tensorboard", str(tmp_path / "board"))
    said = refusal("torch.utils.tensorboard", "train", "toy", "--epochs", "1", *board)
    assert "pip install 'rankone[tensorboard]'" in said


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("RankOneClassifier", "sklearn"),
        ("RankOneForTokenClassification", "hf"),
        ("RankOneConfig", "hf"),
        ("export_hf", "hf"),
        ("export_onnx", "onnx"),
    ],
)
def test_names_that_need_extras(name: str, extra: str) -> None:
    assert getattr(rankone, name).__doc__
    assert name not in dir(rankone)  # `from rankone import *` needs no extra
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({NEEDS[extra]}))\n"
        f"from rankone.errors import ExtraError\n"
        f"try:\n    from rankone import {name}\nexcept ExtraError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert f"pip install 'rankone[{extra}]'" in said
    assert len(said.splitlines()) == 1
    assert issubclass(ExtraError, ImportError)
