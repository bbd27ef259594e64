"""What is importable, and that what the documentation shows is what happens."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from typing import get_args

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
    below = set("arrays choices deadline decimals documents drawing errors extras files".split())
    below |= set("memory pages plural progress spans".split())
    allowed = {
        "engines": set(),
        "corpus": {"engines"},
        "audit": {"corpus", "engines"},
        "kernels": set(),
        "theory": set(),
        "nn": {"kernels", "corpus"},  # a model reads text as its corpus was read
        "construct": {"nn", "kernels", "corpus", "engines", "theory"},
        "certification": {"nn", "kernels", "corpus", "engines", "theory"},
        "comparison": {"construct", "certification", "nn", "corpus", "explorer"},
        "explanation": {"construct", "certification", "nn", "corpus", "theory"},
        "explorer": {"audit", "certification", "nn", "corpus"},
        "recitation": {"nn", "kernels", "corpus"},
        "training": {"construct", "nn", "corpus"},
        "approximation": {"nn"},
        "interop": {"certification", "construct", "nn", "kernels", "corpus"},
    }
    rooms = {path.parent.name for path in (ROOT / "src" / "rankone").glob("*/__init__.py")}
    assert rooms == {*allowed, "cli"}
    for room, others in allowed.items():
        for path in (ROOT / "src" / "rankone" / room).rglob("*.py"):
            text = path.read_text()
            used = set(re.findall(r"^\s*(?:from|import) rankone\.(\w+)", text, re.M))
            for names in re.findall(r"^\s*from rankone import \(?([\w, ]+)", text, re.M):
                used |= set(re.findall(r"\w+", names)) - {"__version__"}
            assert used <= {room, *others, *below}, path


def test_other_tools_are_imported_in_one_room() -> None:
    tools = (
        "transformers|transformer_lens|tokenizers|datasets|onnx|onnxruntime|onnxscript|sklearn|ray"
    )
    allowed = {
        Path("corpus/tokenizers.py"),  # a tokenizer.json that the user names needs its library
        Path("engines/ray.py"),
    }
    for path in (ROOT / "src" / "rankone").rglob("*.py"):
        if re.search(rf"^\s*(?:from|import) (?:{tools})\b", path.read_text(), re.M):
            own = path.relative_to(ROOT / "src" / "rankone")
            assert own.parts[0] == "interop" or own in allowed, path


def test_names_to_choose_from_are_those_of_the_tables() -> None:
    from rankone import choices
    from rankone.construct.constructions import CONSTRUCTIONS
    from rankone.corpus.layouts import READERS
    from rankone.corpus.tasks import TASKS
    from rankone.nn.kinds import ATTENTIONS, FEEDFORWARDS

    assert get_args(choices.Format) == ("auto", *READERS)
    assert get_args(choices.Task) == tuple(TASKS)
    assert get_args(choices.Construction) == tuple(CONSTRUCTIONS)
    assert get_args(choices.Attention) == tuple(ATTENTIONS)
    assert get_args(choices.FeedForward) == tuple(FEEDFORWARDS)
