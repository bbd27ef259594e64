"""rankone compare, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from answers import Run
from rankone.construct.constructions import CONSTRUCTIONS

KEYS = set(
    "construction layers heads width parameters nonzero bits digits contexts wrong unavoidable "
    "outcome seconds reason".split()
)


def test_the_toy_is_the_default_and_every_construction_is_a_row(run: Run) -> None:
    answer = run("compare", "--json", "--cap", "1000")
    assert answer.code == 0
    document = json.loads(answer.out)
    assert (document["source"], document["positions"]) == ("toy", False)
    assert {row["construction"] for row in document["rows"]} == {*CONSTRUCTIONS}
    for row in document["rows"]:
        assert row.keys() >= KEYS
        if row["variant"] == "paper":
            assert row["outcome"] is None
            assert "1,000" in row["reason"]
        else:
            assert (row["outcome"], row["wrong"], row["contexts"]) == ("certified", 0, 30)


def test_the_table(run: Run) -> None:
    answer = run("compare", "toy", "--constructions", "line, kajitsuka2024", "--cap", "1000")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0] == "toy: 10 sentences, 30 tokens, without positions"
    rows = {line[:30].strip(): line for line in lines}
    assert rows["line"].split()[1:4] == ["1", "1", "1"]
    assert "certified" in rows["kajitsuka2024 tight"]
    assert "not built" in rows["kajitsuka2024 paper"]
    assert any(
        line.startswith("kajitsuka2024 paper: needs 33,") and "1,000" in line for line in lines
    )


def test_what_is_written(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    names = "line,kajitsuka2024-deep"
    answer = run("compare", "toy", "--constructions", names, "--out", out, "--json")
    assert answer.code == 0
    files = json.loads(answer.out)["files"]
    assert all(Path(file).is_file() for file in files)
    assert {Path(file).suffix for file in files} >= {".json", ".csv", ".png", ".svg"}
    answer = run("certify", out / "kajitsuka2024-deep", "toy", "--json")
    assert answer.code == 0
    document = json.loads(answer.out)
    assert (document["outcome"], document["dtype"]) == ("certified", "exact")
    check = ("--check", out / "kajitsuka2024-deep" / "certificate.json")
    assert run("certify", out / "kajitsuka2024-deep", "toy", *check).code == 0
    answer = run("predict", out / "kajitsuka2024-deep-float64", "toy", "--json")
    assert json.loads(answer.out)["accuracy"] == 1


def test_growth(run: Run, tmp_path: Path) -> None:
    given = ("--constructions", "kajitsuka2024-deep", "--sentences", "8")
    answer = run("compare", "--growth", *given, "--out", tmp_path / "out")
    assert answer.code == 0
    assert answer.out.startswith("made up: contexts reached, and the exponent of each figure")
    assert "kajitsuka2024-deep ends after all 8 sentences" in answer.out
    assert (tmp_path / "out" / "growth.png").is_file()
    answer = run("compare", "toy", "--growth", *given, "--json")
    document = json.loads(answer.out)
    assert document["source"] == "toy"
    assert document["curves"][0]["contexts"] == [3, 6, 12, 24]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["toy", "--constructions", "lines"], "constructions cannot be 'lines'"),
        (["toy", "--constructions", ""], "constructions cannot be ''"),
        (["nowhere.conll"], "nowhere.conll"),
        (["toy", "--out", __file__], "is a file"),
    ],
)
def test_bad_input_is_refused(run: Run, arguments: list[Any], told: str) -> None:
    answer = run("compare", *arguments)
    assert answer.code == 2
    assert told in answer.err
    assert "remedy" in answer.err


def test_a_file_that_fits_none(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "repeats.tsv"
    path.write_text("a\tX\na\tY\n\nb\tX\n\n")
    names = "kim2023,kajitsuka2024-deep"
    answer = run(
        "compare", path, "--no-positions", "--constructions", names, "--out", tmp_path / "o"
    )
    assert answer.code == 2
    assert "kim2023: 1 sentence repeats a token" in answer.err
    assert "kajitsuka2024-deep: 1 sentence repeats a token" in answer.err
    assert not (tmp_path / "o").exists()
    unlabelled = tmp_path / "none.tsv"
    unlabelled.write_text("a\t_\nb\t_\n")
    assert run("compare", unlabelled).code == 2


def test_ctrl_c_keeps_the_rows_that_are_done(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    variants: Any = CONSTRUCTIONS["kajitsuka2025"].variants
    monkeypatch.setitem(variants, "", stop)
    monkeypatch.setattr("rankone.cli._explain", lambda _: (_ for _ in ()).throw(SystemExit(130)))
    names = "kim2023,kajitsuka2025,line"
    answer = run("compare", "toy", "--constructions", names, "--out", tmp_path / "o", "--json")
    assert answer.code == 130
    document = json.loads(answer.out)
    assert document["interrupted"] is True
    assert [row["construction"] for row in document["rows"]] == ["kim2023"]
    assert (tmp_path / "o" / "kim2023" / "certificate.json").is_file()


@pytest.mark.parametrize("growth", [[], ["--growth"]])
def test_ctrl_c_before_anything_is_done(
    run: Run, monkeypatch: pytest.MonkeyPatch, growth: list[str]
) -> None:
    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    variants: Any = CONSTRUCTIONS["kim2023"].variants
    monkeypatch.setitem(variants, "", stop)
    monkeypatch.setattr("rankone.cli._explain", lambda _: (_ for _ in ()).throw(SystemExit(130)))
    answer = run("compare", "toy", "--constructions", "kim2023,line", *growth)
    assert answer.code == 130
    assert answer.out.startswith("Stopped before the first")


def test_a_network_that_is_wrong_is_exit_status_1(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rankone import Corpus
    from rankone.comparison.compare import posed
    from rankone.construct.kajitsuka2024 import build_deep
    from rankone.corpus.builtin import toy_corpus

    toy = toy_corpus()
    other = Corpus.from_sentences((s.tokens, s.labels[::-1]) for s in toy.sentences)
    variants: Any = CONSTRUCTIONS["kajitsuka2024-deep"].variants
    monkeypatch.setitem(variants, "", lambda _, seed: build_deep(posed(other, False), seed))
    answer = run("compare", "toy", "--constructions", "kajitsuka2024-deep")
    assert answer.code == 1
    assert "refuted" in answer.out
