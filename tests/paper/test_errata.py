"""docs/paper.md names every test of the errata, and only files and functions that exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text()


def named(pattern: str) -> list[str]:
    return sorted(set(re.findall(f"`({pattern})`", PAGE)))


def test_the_page_lists_every_test_of_the_errata() -> None:
    files = (ROOT / "tests" / "paper").glob("test_errata_*.py")
    defined = {name for f in files for name in re.findall(r"^def (test_\w+)", f.read_text(), re.M)}
    assert set(named(r"test_\w+")) == defined


@pytest.mark.parametrize("path", named(r"tests/[\w/]+\.py"))
def test_a_file_that_the_page_names_exists(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("name", named(r"rankone(?:\.\w+)+"))
def test_a_function_that_the_page_names_exists(name: str) -> None:
    home, _, last = name.rpartition(".")
    module = importlib.import_module(home)
    assert hasattr(module, last) or importlib.util.find_spec(name)
