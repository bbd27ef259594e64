"""Ctrl-C at any moment: no traceback, exit status 130, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Interrupts itself when a module is imported for the first time, as Ctrl-C at that moment would.
AT_IMPORT = """
import builtins, os, signal, sys
real = builtins.__import__
def interrupting(name, *arguments, **settings):
    if name == {module!r}:
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *arguments, **settings)
builtins.__import__ = interrupting
sys.argv = ["rankone", *{arguments!r}]
from rankone.__main__ import main
main()
"""
# A library that hides what happened, as numpy and torch may while their parts are loaded.
HIDDEN = """
import signal, sys, types
import rankone.cli.inspect as command
def broken(*_, **__):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise {problem}
import rankone.corpus.read
rankone.corpus.read.read_corpus = broken
sys.argv = ["rankone", "inspect", "toy"]
from rankone.__main__ import main
main()
"""


def python(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("module", ["typer", "rankone.cli.lazy", "numpy", "torch"])
def test_while_modules_are_imported(module: str, tmp_path: Path) -> None:
    arguments = ["memorize", "toy", "--out", "model"]
    ended = python(AT_IMPORT.format(module=module, arguments=arguments), tmp_path)
    assert ended.returncode in (-signal.SIGINT, 130)
    assert ended.stderr == ended.stdout == ""
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "problem", ["ImportError('half a module')", "OSError(5, 'x')", "RuntimeError('y')"]
)
def test_where_a_library_hides_it(problem: str, tmp_path: Path) -> None:
    ended = python(HIDDEN.format(problem=problem), tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_no_interpreter_with_half_of_a_library_in_it_is_taken_down(tmp_path: Path) -> None:
    """That may crash; here it would for certain."""
    code = "import atexit, os; atexit.register(os.abort)" + HIDDEN.format(problem="ImportError()")
    ended = python(code, tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_other_errors_are_still_shown(tmp_path: Path) -> None:
    code = HIDDEN.format(problem="").replace("signal.raise_signal(signal.SIGINT)", "1 / 0")
    ended = python(code, tmp_path)
    assert "ZeroDivisionError" in ended.stderr
    assert ended.returncode == 1
