"""rankone explain, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rankone.certify.certify import CAP
from rankone.cli import app, options
from rankone.errors import RankOneError

run = CliRunner()


def test_json_has_one_object_per_grade(tmp_path: Path) -> None:
    result = run.invoke(app, ["explain", "toy", "--json", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert [g["grade"] for g in document["grades"]] == ["paper", "tight", "tight", "practical"]
    for grade in document["grades"]:
        assert {"digits", "log10_bound", "log10_gap", "outcome"} <= set(grade)
        assert grade["outcome"] == "certified"
    assert all(Path(path).is_file() for path in document["files"])
    assert {Path(path).suffix for path in document["files"]} == {".json", ".png", ".svg"}


def test_the_toy_is_the_default_and_the_table_says_what_it_is() -> None:
    result = run.invoke(app, ["explain"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert "|V| = 5, n = 3, d = 2; Corollary 1" in result.stdout
    assert "tight, separate query" in result.stdout


def test_weights_of_a_grade_are_certified_from_the_command_line(tmp_path: Path) -> None:
    assert run.invoke(app, ["explain", "--out", str(tmp_path), "-q"]).exit_code == 0
    result = run.invoke(app, ["certify", str(tmp_path / "paper"), "toy", "--json"])
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["outcome"] == "certified"
    assert document["labels"] is None
    assert document["delta"].split("e-")[1].isdigit()
    assert int(document["delta"].split("e-")[1]) > 10_000


def test_bad_input_is_refused(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("a 1 0\nb 0 1\n")
    for arguments, message in (
        (["explain", "--out", str(vectors)], "cannot be made"),
        (["explain", str(tmp_path / "none.conll")], "none.conll"),
        (["explain", "toy", "--vectors", str(vectors)], "no vector for 3 of 5 tokens"),
        (["explain", "toy", "--format", "conll"], "read as it is"),
    ):
        result = run.invoke(app, arguments)
        assert isinstance(result.exception, RankOneError)
        assert message in str(result.exception)
    assert not list(tmp_path.glob("*.png"))


def test_the_cap_is_that_of_the_library() -> None:
    assert options.CAP == CAP


@pytest.mark.parametrize("option", ["--cap", "--dim", "--seconds"])
def test_numbers_out_of_range_are_refused(option: str) -> None:
    assert run.invoke(app, ["explain", "toy", option, "-1"]).exit_code == 2
