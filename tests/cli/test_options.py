"""An option that a message names is one that the command has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import rankone
from rankone.cli import COMMANDS
from rankone.cli.lazy import load

SOURCE = Path(rankone.__file__).parent
READS = ("inspect", "memorize", "certify", "explain", "train", "predict")
PARTED = ("inspect", "memorize", "certify", "predict")  # the commands with the bundle Engines
# The commands that print what a room says. `rankone NAME --option`, or `NAME --option`, in a
# message speaks of that command.
SPEAK: dict[str, tuple[str, ...]] = {
    "approximation": ("approximate",),
    "audit": ("inspect",),
    "certification": ("certify",),
    "construct": ("memorize", "explain"),
    "corpus": READS,
    "engines": PARTED,
    "explanation": ("explain",),
    "explorer": ("explore",),
    "interop": ("export",),
    "kernels": (),
    "nn": ("predict", "certify"),
    "comparison": ("compare",),
    "recitation": ("recite",),
    "theory": (),
    "training": ("train",),
    "construct/problem.py": ("memorize",),
    "construct/parted/steps.py": ("memorize",),
    "corpus/read_parts.py": PARTED,
    "construct/exact.py": ("compare", "memorize"),
    "construct/edit.py": ("edit",),
    "corpus/join.py": ("inspect",),
    "cli/audit_settings.py": ("inspect",),
    "cli/audit_tables.py": ("inspect",),
    "cli/text_tables.py": ("inspect",),
    "corpus/label_columns.py": ("inspect",),
    "cli/console.py": ("inspect", "memorize"),
    "cli/running.py": ("train", "reproduce"),
    "cli/options.py": (),  # the options themselves
    "cli/__init__.py": (),
    "cli/lazy.py": (),
    **{f"cli/{name}.py": (name,) for name in COMMANDS},
}
NAMED = re.compile(rf"(?:\b({'|'.join(COMMANDS)}) )?(--[a-z][a-z0-9-]*)")


def options(command: Any) -> set[str]:
    """All that a command, or one of its own commands, takes."""
    below = getattr(command, "commands", {}).values()
    own = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    return own.union({"--help"}, *map(options, below))


@cache
def options_of(name: str) -> set[str]:
    return options(load(name))


def messages(path: Path) -> Iterator[str]:
    """The texts of a module, pieces of one put together; docstrings are no messages."""
    tree = ast.parse(path.read_text())
    quiet: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            quiet.add(node.value)
        if isinstance(node, ast.JoinedStr):
            quiet.update(node.values)
            parts = [p.value if isinstance(p, ast.Constant) else "..." for p in node.values]
            yield "".join(map(str, parts))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in quiet:
            yield node.value


def speakers(path: Path) -> tuple[str, ...]:
    place = path.relative_to(SOURCE).as_posix()
    return SPEAK.get(place, SPEAK.get(place.split("/")[0], ()))


def missing(text: str, commands: tuple[str, ...]) -> list[str]:
    """Options in a text that the commands do not have."""
    return [
        f"{command} has no {option}: {text}"
        for named, option in NAMED.findall(text)
        for command in ((named,) if named else commands)
        if option not in options_of(command)
    ]


def test_every_room_has_a_voice() -> None:
    """A new room or command with messages is entered in the table."""
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).as_posix()
        if any(NAMED.search(text) for text in messages(path)):
            assert place in SPEAK or place.split("/")[0] in SPEAK, place


def modules() -> list[str]:
    return sorted(
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if "--" in path.read_text()
    )


@pytest.mark.parametrize("module", modules())
def test_options_that_messages_name(module: str) -> None:
    path = SOURCE / module
    assert [m for text in messages(path) for m in missing(text, speakers(path))] == []


def test_what_is_missing_is_found() -> None:
    assert missing("read it with --scheme", ("certify",)) == [
        "certify has no --scheme: read it with --scheme"
    ]
    assert missing("give --cap, or memorize --lower", ("certify",)) == []
    assert len(missing("certify --lower, --cap", ("memorize",))) == 2
