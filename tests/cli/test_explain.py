"""rankone explain, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rankone.certification.certify import CAP
from rankone.cli import app, options
from rankone.errors import RankOneError

run = CliRunner()


def test_json_has_one_object_per_grade_and_its_weights_can_be_certified(tmp_path: Path) -> None:
    result = run.invoke(app, ["explain", "toy", "--json", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert [g["grade"] for g in document["grades"]] == ["paper", "tight", "tight", "practical"]
    for grade in document["grades"]:
        assert {"digits", "log10_bound", "log10_gap", "outcome"} <= set(grade)
        assert grade["outcome"] == "certified"
    assert all(Path(path).is_file() for path in document["files"])
    assert {Path(path).suffix for path in document["files"]} == {".json", ".png", ".svg"}
    weights = tmp_path / "out" / "paper"
    result = run.invoke(app, ["certify", str(weights), "toy", "--json"])
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert (document["outcome"], document["labels"]) == ("certified", None)
    assert int(document["delta"].split("e-")[1]) > 10_000


def test_the_toy_is_the_default_and_the_table_says_what_it_is() -> None:
    result = run.invoke(app, ["explain"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert "|V| = 5, n = 3, d = 2; Corollary 1" in result.stdout
    assert "tight, separate query" in result.stdout


def test_bad_input_is_refused(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("a 1 0\nb 0 1\n")
    for arguments, message in (
        (["explain", "--out", str(vectors)], "is a file"),
        (["explain", str(tmp_path / "none.conll")], "none.conll"),
        (["explain", "toy", "--vectors", str(vectors)], "no vector for 3 of 5 tokens"),
        (["explain", "toy", "--format", "conll"], "a built-in corpus has no layout"),
    ):
        result = run.invoke(app, arguments)
        assert isinstance(result.exception, RankOneError)
        assert message in str(result.exception)
    assert not list(tmp_path.glob("*.png"))


def test_a_refusal_leaves_nothing_behind(tmp_path: Path) -> None:
    for arguments in (["missing"], ["toy", "--vectors", "none"], ["toy", "--seconds", "nan"]):
        place = tmp_path / "deep" / "o"
        result = run.invoke(app, ["explain", *arguments, "--out", str(place)])
        assert result.exit_code == 2 or isinstance(result.exception, RankOneError)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_ctrl_c_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def fails(*_: object) -> None:
        raise failure

    monkeypatch.setattr("rankone.explanation.plots.write_plots", fails)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    for place in (tmp_path / "new", tmp_path / "mine"):
        run.invoke(app, ["explain", "toy", "--seconds", "0", "-q", "--out", str(place)])
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine" / "notes").read_text() == "mine"


def test_the_cap_is_that_of_the_library() -> None:
    assert options.CAP == CAP


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--cap", value) for value in ("-1", "19", "1.5", "x")),
        *(("--dim", value) for value in ("-1", "0", "1e9", "4097")),
        *(("--seconds", value) for value in ("-1", "x", "-inf")),
        *(("--seed", value) for value in ("-1", "x")),
    ],
)
def test_numbers_out_of_range_are_refused(option: str, value: str) -> None:
    assert run.invoke(app, ["explain", "toy", option, value]).exit_code == 2
