"""What is importable, and that what the documentation shows is what happens."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import rankone

ROOT = Path(__file__).resolve().parents[1]


def test_every_public_name_resolves_and_is_documented() -> None:
    assert dir(rankone) == sorted(rankone.__all__)
    for name in rankone.__all__:
        assert getattr(rankone, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rankone.nothing  # noqa: B018


def modules() -> list[str]:
    found = pkgutil.walk_packages(rankone.__path__, "rankone.")
    return [module.name for module in found if not module.name.endswith("__main__")]


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} does not say what it is for"
    assert doctest.testmod(module).failed == 0


def test_rooms_import_only_what_they_may() -> None:
    """A room knows nothing of what is built on it, and a checker nothing of the maker."""
    below = set("deadline decimals documents drawing errors extras files memory plural".split())
    below |= {"progress", "spans"}
    allowed = {
        "corpus": set(),
        "kernels": set(),
        "theory": set(),
        "nn": {"kernels"},
        "construct": {"nn", "kernels", "corpus", "theory"},
        "certify": {"nn", "kernels", "corpus", "theory"},
        "explain": {"construct", "certify", "nn", "corpus", "theory"},
        "train": {"construct", "nn", "corpus"},
        "approximation": {"nn"},
        "interop": {"certify", "construct", "nn", "kernels", "corpus"},
    }
    for room, others in allowed.items():
        for path in (ROOT / "src" / "rankone" / room).rglob("*.py"):
            text = path.read_text()
            used = set(re.findall(r"^\s*(?:from|import) rankone\.(\w+)", text, re.M))
            for names in re.findall(r"^\s*from rankone import \(?([\w, ]+)", text, re.M):
                used |= set(re.findall(r"\w+", names)) - {"__version__"}
            assert used <= {room, *others, *below}, path


def test_other_tools_are_imported_in_one_room() -> None:
    tools = "transformers|tokenizers|datasets|onnx|onnxruntime|onnxscript|sklearn"
    for path in (ROOT / "src" / "rankone").rglob("*.py"):
        if re.search(rf"^\s*(?:from|import) (?:{tools})\b", path.read_text(), re.M):
            assert "interop" in path.parts, path
