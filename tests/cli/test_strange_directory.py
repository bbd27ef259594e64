"""A model directory never makes a command open, or write to, a file that the user did not name."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rankone
from answers import CORPUS, Run
from rankone.interop.huggingface import export_hf

opened: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def _watched() -> None:
    """Hooks cannot be taken away again; this one is short."""

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(given[0], str):
            opened.append(given[0])

    sys.addaudithook(hook)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory and an export, each with its report and certificate, and a secret."""
    home = tmp_path_factory.mktemp("strange")
    (home / "corpus.conll").write_text(CORPUS)
    (home / "secret").write_text(CORPUS)
    corpus = rankone.read_corpus(home / "corpus.conll")
    made = rankone.memorize(corpus)
    certificate = rankone.certify(made.model, corpus)
    made.save(home / "model")
    certificate.save(home / "model" / "certificate.json")
    export_hf(made.model, home / "hf", report=made.to_json(), certificate=certificate)
    return home


def poisoned(document: Any, poison: str) -> Iterator[Any]:
    """The document with one of its texts replaced."""
    if isinstance(document, str):
        yield poison
    elif isinstance(document, dict):
        for key in document:
            for part in poisoned(document[key], poison):
                yield {**document, key: part}
    elif isinstance(document, list):
        for i, item in enumerate(document):
            for part in poisoned(item, poison):
                yield [*document[:i], part, *document[i + 1 :]]


FILES = {
    "model": ["config.json", "labels.json", "vocabulary.json", "report.json", "certificate.json"],
    "hf": ["config.json", "tokenizer.json", "report.json", "certificate.json"],
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in FILES for name in FILES[kind]])
def test_no_text_in_it_is_a_path(
    run: Run, places: Path, tmp_path: Path, kind: str, name: str
) -> None:
    secret, file, home = places / "secret", places / "corpus.conll", tmp_path / "m"
    home.mkdir()
    for path in (places / kind).iterdir():
        (home / path.name).write_bytes(path.read_bytes())
    commands = [
        ["predict", home, file, "--quiet"],
        ["certify", home, file, "--check", home / "certificate.json", "--quiet"],
    ]
    if name in ("report.json", "certificate.json"):
        commands = [commands[1], ["export", home, "--hf", tmp_path / "hf", "--quiet"]]
    opened.clear()
    for document in poisoned(json.loads((home / name).read_text()), str(secret)):
        (home / name).write_text(json.dumps(document))
        for command in commands:
            assert run(*command).code in (0, 1, 2)
    assert str(home / name) in opened  # so the hook is at work
    assert str(secret) not in opened


@pytest.mark.parametrize("command", ["certify", "memorize"])
def test_nothing_is_written_through_a_link(
    run: Run, places: Path, tmp_path: Path, command: str
) -> None:
    file, home, mine = places / "corpus.conll", tmp_path / "m", tmp_path / "mine"
    home.mkdir()
    mine.write_text("mine")
    for path in (places / "model").iterdir():
        (home / path.name).write_bytes(path.read_bytes())
    (home / "certificate.json").unlink()
    (home / "certificate.json").symlink_to(mine)
    arguments = [home, file] if command == "certify" else [file, "--out", home]
    assert run(command, *arguments, "--quiet").code == 0
    assert mine.read_text() == "mine"
    assert not (home / "certificate.json").is_symlink()
    assert os.path.exists(home / "certificate.json") == (command == "certify")
