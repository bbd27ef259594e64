"""Options that are declared once: a bundle of them is one parameter of a command."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

from rankone import Settings, read_corpus
from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.cli.lazy import load
from rankone.engines import open_engine

LOWERED = options.Reading(lower=True)


def test_the_fields_of_a_bundle_are_parameters_and_come_back_as_the_bundle() -> None:
    seen: list[object] = []

    @bundled
    def command(file: str, *, reading: options.Reading = LOWERED, output: options.Output) -> None:
        seen.append((file, reading, output))

    shown = inspect.signature(command).parameters
    bundles = (options.Reading, options.Output)
    assert list(shown) == ["file", *(field.name for kind in bundles for field in fields(kind))]
    assert (shown["lower"].default, shown["scheme"].default) == (True, "keep")
    given = {name: shown[name].default for name in list(shown)[1:]}
    command(file="a", **{**given, "scheme": "auto", "json": True})
    assert seen == [("a", options.Reading(scheme="auto", lower=True), options.Output(json=True))]


@pytest.mark.parametrize("command", ["train", "figure1", "sweep"])
def test_every_command_that_trains_has_all_training_options_in_their_panel(command: str) -> None:
    found = load("train") if command == "train" else load("reproduce").commands[command]
    panels = {option.name: getattr(option, "rich_help_panel", None) for option in found.params}
    for field in fields(options.Training):
        assert panels[field.name] == options.Training.PANEL
    assert panels["scheme"] == options.Reading.PANEL


def test_defaults_are_those_of_the_settings() -> None:
    settings = Settings().to_json()
    assert vars(options.Training()) == {name: settings[name] for name in vars(options.Training())}


def test_how_to_read_is_what_read_corpus_takes() -> None:
    """So that a new field of the bundle reaches it by its name alone."""
    given = options.Reading(token_column="2", label_column="upos").arguments()
    assert (given["token_column"], given["label_column"]) == (2, "upos")
    assert given.keys() <= inspect.signature(read_corpus).parameters.keys()
    assert vars(options.Reading()).keys() == given.keys()


def test_engines_are_opened_with_what_is_given(tmp_path: Path) -> None:
    assert not options.Engines().given
    given = options.Engines(memory=2, scratch=tmp_path)
    assert given.given
    with given.open() as engine:
        assert engine.name == "disk"
        assert [path.name[:8] for path in tmp_path.iterdir()] == ["rankone-"]
    assert not list(tmp_path.iterdir())
    names = inspect.signature(open_engine).parameters.keys() - {"name"} | {"engine"}
    assert vars(options.Engines()).keys() == names
