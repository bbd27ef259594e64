"""README and docs: every block runs as printed, every link leads somewhere.

The blocks of a page run from top to bottom in one directory, next to a few made-up corpora: each
Python block and each line of a shell block in a process of its own (`warm.py`). A `text` block
right after a Python block is what that prints. Commands in the README's table run after its blocks,
and so do those in workflows, where they stand.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import rankone
import workflows
from rankone.cli import COMMANDS
from warm import Warm

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# What is not run here: the two commands that run this test, what needs a network, and experiments
# that take minutes, which have tests of their own with smaller settings.
ELSEWHERE = ("make ", "pip ", "rankone reproduce ", "torchrun ")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
CELL = re.compile(r"^\|.*\| `(rankone .*?)` \|", re.M)  # a command in a table


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    prints: str | None  # the `text` block that follows


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = [(match[1], match[2]) for match in BLOCK.finditer(text)]
    if page.name == "README.md":
        found.append(("sh", "\n".join(CELL.findall(text))))
    following = [*found, ("", "")][1:]
    return [
        Block(kind, text, then[1] if kind == "python" and then[0] == "text" else None)
        for (kind, text), then in zip(found, following, strict=True)
    ]


def commands(block: Block) -> list[str]:
    if block.kind == "yaml":
        return workflows.commands(block.text)
    joined = block.text.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where a reader may be: a directory with labelled files."""
    whole = rankone.builtin_corpus(90)
    parts = {"train": slice(60), "valid": slice(60, 75), "test": slice(75, 90)}
    for name, part in {**parts, "dev": parts["valid"]}.items():
        text = "\n".join(
            "".join(f"{token}\t{label}\n" for token, label in zip(s.tokens, s.labels, strict=True))
            for s in whole.sentences[part]
        )
        (tmp_path / f"{name}.conll").write_text(text)
    (tmp_path / "book.txt").write_text("A rose is a rose.\n\nA rose is red.\n")
    reviews = ("good\tA rose is a rose.", "bad\tThe roof leaked, and it rained.", "bad\tNo.")
    (tmp_path / "reviews.tsv").write_text("".join(f"{line}\n" for line in reviews))
    (tmp_path / "myf.py").write_text("def centred(x):\n    return x - x.mean(-2, keepdims=True)\n")
    return tmp_path


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    settings = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    process = Warm(tmp_path_factory.mktemp("warm"), {**os.environ, **settings})
    yield process
    process.close()


def obey(command: str, home: Path, warm: Warm) -> None:
    """Run a line of a shell block; `> FILE` at its end is all of the shell that there is."""
    command, _, target = command.partition(" > ")
    program, *arguments = shlex.split(command, comments=True)
    assert program == "rankone", "a command nobody runs"
    assert not re.search(r"[|<>&;$`*]", re.sub("'[^']*'", "", command)), "this needs a shell"
    printed = warm.rankone(arguments, home)
    if target:
        (home / target).write_text(printed)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda p: p.name)
def test_every_block_runs_as_printed(page: Path, home: Path, warm: Warm) -> None:
    for block in blocks(page):
        if block.kind == "python":
            printed = warm.python(block.text, home)
            assert block.prints in (None, printed)
        elif block.kind in ("sh", "yaml"):
            for command in commands(block):
                if not command.startswith(ELSEWHERE):
                    obey(command, home, warm)
        else:
            assert block.kind in ("text", "bibtex", "json"), "a block nobody runs"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_that_are_not_run_exist_too(page: Path, warm: Warm) -> None:
    for block in blocks(page):
        for command in commands(block) if block.kind == "sh" else []:
            words = shlex.split(command, comments=True)
            if words[0] == "make":
                assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text()
            elif command.startswith("rankone reproduce "):
                options = {word for word in words if word.startswith("--")}
                help_ = warm.rankone([*words[1:3], "--help"], ROOT)
                assert options <= set(re.findall(r"--[\w-]+", help_))


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings; of a tutorial, the labels that it sets itself."""
    if page.suffix == ".py":
        return set(re.findall(r"^# \.\. _([\w-]+):$", page.read_text(), re.M))
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" not in link:
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_readme_has_a_row_for_every_command() -> None:
    cells = CELL.findall((ROOT / "README.md").read_text())
    assert {cell.split()[1] for cell in cells} == set(COMMANDS)


def test_readme_is_short_enough_to_be_read() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 900
