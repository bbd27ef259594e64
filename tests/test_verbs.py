"""Every public verb: named as its command, and its result is frozen, complete and says how it went.

A new command joins the table `VERBS` below, or the first test fails.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pytest

import rankone
from rankone.cli import COMMANDS
from rankone.nn.scores import predict
from rankone.training.figure1 import figure1

SMALL = {"epochs": 2, "dim": 4}
TEXT = rankone.Corpus.from_texts(["A rose is a rose."])
WORKED_ON = ("corpus", "model", "settings", "prompt", "tokens")


def exported(home: Path) -> Any:
    return rankone.export_hf(rankone.memorize("toy").model, home / "exported")


def predicted(_: Path) -> Any:
    return predict(rankone.memorize("toy").model, rankone.read_corpus("toy"))


def checked(_: Path) -> Any:
    model = rankone.memorize("toy").model
    return rankone.check_certificate(rankone.certify(model, "toy"), model, "toy")


# What the command of this name returns in Python.
VERBS: dict[str, Callable[[Path], Any]] = {
    "inspect": lambda _: rankone.inspect("toy"),
    "memorize": lambda _: rankone.memorize("toy"),
    "edit": lambda _: rankone.edit(
        rankone.memorize("toy", construction="gated", editable=True).model,
        learn=[(["a"], [rankone.read_corpus("toy").label_names[0]])],
    ),
    "certify": lambda _: rankone.certify(rankone.memorize("toy").model, "toy"),
    "compare": lambda _: rankone.compare("toy", constructions=["line", "kajitsuka2024-deep"]),
    "explain": lambda _: rankone.explain(rankone.read_corpus("toy"), seconds=0),
    "explore": lambda _: rankone.explore(rankone.memorize("toy").model, "toy"),
    "recite": lambda _: rankone.recite(rankone.memorize(TEXT).model, "A rose", 2),
    "train": lambda _: rankone.train("toy", SMALL),
    "predict": predicted,
    "approximate": lambda _: rankone.approximate("nearest", n=2, grid=2),
    "export": exported,
    "reproduce": lambda home: figure1(
        rankone.read_corpus("toy"),
        home,
        rankone.Settings(**SMALL),
        depths=[1],
        attentions=["rank1"],
    ),
}
MORE = {
    "check_certificate": checked,
    "check_recitation": lambda _: rankone.check_recitation(rankone.memorize(TEXT).model, TEXT),
    "grow": lambda _: rankone.grow(constructions=["kajitsuka2024-deep"], most=4),
}


def test_every_command_is_here() -> None:
    assert VERBS.keys() == COMMANDS.keys()
    functions = VERBS.keys() - {
        "predict",
        "export",
        "reproduce",
    }  # methods, and groups of functions
    assert functions <= set(rankone.__all__)


@pytest.mark.parametrize("verb", [name for name in [*VERBS, *MORE] if name in rankone.__all__])
def test_settings_go_by_name(verb: str) -> None:
    """Only what a verb works on may stand without its name."""
    first, *others = signature(getattr(rankone, verb)).parameters.values()
    assert first.kind is Parameter.POSITIONAL_OR_KEYWORD
    for other in others:
        by_name = other.kind is Parameter.KEYWORD_ONLY
        assert by_name or other.name in WORKED_ON, other


@pytest.mark.parametrize("verb", [*VERBS, *MORE])
def test_results(verb: str, tmp_path: Path) -> None:
    result = {**VERBS, **MORE}[verb](tmp_path)
    assert isinstance(result.ok, bool)
    first = dataclasses.fields(result)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(result, first, None)
    for field in dataclasses.fields(result):
        assert not isinstance(getattr(result, field.name), list | set), field.name
    document = result.to_json()
    assert document["ok"] is result.ok
    json.dumps(document, allow_nan=False)
    if "seconds" in document:
        assert isinstance(document["seconds"], dict)
    assert "\n" not in repr(result)
    if hasattr(result, "save") and verb not in ("certify", "predict"):  # which write one file
        files = result.save(tmp_path / "saved")
        assert files
        assert all(Path(file).is_file() for file in files)
