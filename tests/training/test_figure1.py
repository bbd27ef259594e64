"""Figure 1: which runs there are, what is written, and when it shows what the paper shows."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankone
from rankone import Corpus, Settings
from rankone.corpus import Ceiling
from rankone.errors import OutputError, TrainingError
from rankone.training import figure1 as module
from rankone.training.curves import PAPER, Curve
from rankone.training.figure1 import KINDS, Figure1, figure1, plan
from rankone.training.train import Trained, train

SETTINGS = Settings(epochs=2, dim=4)
CORPUS = rankone.read_corpus("toy")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs one after the other in this process, which is quicker; their names as they begin."""
    begun: list[str] = []

    def train_all(
        corpus: Corpus, runs: Mapping[str, Settings], home: Path, *_: Any, **__: Any
    ) -> tuple[dict[str, Trained], dict[str, Any]]:
        begun.extend(runs)
        return {
            name: train(corpus, run, out=home / name, resume=True) for name, run in runs.items()
        }, {}

    monkeypatch.setattr(module, "train_all", train_all)
    return begun


def rows(home: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((home / "figure1.csv").read_text().splitlines()))


# Which runs there are.


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=5),
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    st.integers(1, 500),
)
def test_a_run_per_depth_and_one_per_other_attention(
    depths: list[int], kinds: list[Any], epochs: int
) -> None:
    runs = plan(replace(SETTINGS, epochs=epochs), depths, kinds)
    least = min(depths)
    wanted = {(d, "rank1") for d in depths if "rank1" in kinds}
    wanted |= {(least, kind) for kind in kinds if kind != "rank1"}
    assert {(run.depth, run.attention) for run in runs.values()} == wanted
    assert len(runs) == len(wanted)
    for name, run in runs.items():
        assert name == f"depth-{run.depth}-{run.attention}"
        twice = run.depth == least and run.attention == "rank1"
        assert run.epochs == epochs * (2 if twice else 1)
        assert replace(run, depth=1, attention="rank1", epochs=2) == SETTINGS


def test_the_runs_of_the_paper() -> None:
    runs = plan(Settings(), module.DEPTHS, ["rank1"])
    assert [(run.depth, run.epochs) for run in runs.values()] == [(1, 800), (3, 400), (6, 400)]


# When it shows what the paper shows.


def shown(*curves: Curve) -> Figure1:
    ceilings = {"token": Ceiling(0.5, 1), "input": Ceiling(1.0, 0)}
    return Figure1("x", curves, (), ceilings, None, {}, {})


def curve(depth: int, *accuracy: float, attention: str = "rank1") -> Curve:
    return Curve(depth, attention, [1.0] * len(accuracy), list(accuracy))


accuracies = st.lists(st.sampled_from([0.0, 0.5, 0.9, 0.98, 0.99, 1.0]), min_size=1, max_size=6)


@given(st.lists(accuracies, min_size=1, max_size=4), st.randoms())
def test_it_holds_if_no_deeper_network_is_later(lists: list[list[float]], random: Any) -> None:
    """The goal is the paper's number, or what the least depth ends with if that is lower."""
    curves = [curve(depth, *accuracy) for depth, accuracy in enumerate(lists, start=1)]
    last = lists[0][-1]

    def epoch(accuracy: list[float]) -> float:
        at = [
            i for i, a in enumerate(accuracy) if (a >= last if last <= PAPER[1] else a > PAPER[1])
        ]
        return at[0] if at else float("inf")

    wanted = all(epoch(accuracy) <= epoch(lists[0]) for accuracy in lists)
    random.shuffle(curves)
    assert shown(*curves).ok == wanted


@given(accuracies, accuracies, st.sampled_from(KINDS[1:]))
def test_other_kinds_of_attention_do_not_matter(
    own: list[float], other: list[float], kind: str
) -> None:
    deep = curve(3, *own)
    assert (
        shown(curve(1, 0.5), deep, curve(1, *other, attention=kind)).ok
        == shown(curve(1, 0.5), deep).ok
    )


def test_some_figures() -> None:
    slow, fast = curve(1, 0.5, 0.9, 0.99), curve(3, 0.9, 0.99)
    assert shown(slow, fast).ok
    assert not shown(curve(1, 0.9, 0.99), curve(3, 0.5, 0.9, 0.99)).ok
    assert not shown(slow, curve(3, 0.5, 0.6)).ok
    assert not shown(curve(1, 0.5, attention="theorem2")).ok
    assert not shown().ok


# What is written.


def test_files_and_figures_fit_together(here: list[str], tmp_path: Path) -> None:
    home = tmp_path / "deep" / "figure"
    found = figure1(CORPUS, home, SETTINGS, depths=[2, 1], attentions=KINDS)
    assert here == ["depth-1-rank1", "depth-2-rank1", "depth-1-theorem2", "depth-1-softmax"]
    files = found.save(home)
    assert [path.name for path in files] == [
        "figure1.csv",
        "figure1.png",
        "figure1.svg",
        "figure1.json",
    ]
    assert all(path.stat().st_size for path in files)
    assert json.loads((home / "figure1.json").read_text()) == found.to_json()
    assert {entry.name for entry in (home / "runs").iterdir()} == set(here)
    epochs = {name: 4 if name == "depth-1-rank1" else 2 for name in here}
    read = [f"depth-{row['depth']}-{row['attention']}" for row in rows(home)]
    assert read == [name for name in here for _ in range(epochs[name])]
    for curve, final in zip(found.curves, found.finals, strict=True):
        name = f"depth-{final['depth']}-{final['attention']}"
        assert final["epochs"] == len(curve.accuracy) == epochs[name]
        given = replace(SETTINGS, depth=final["depth"], attention=final["attention"])
        assert Settings(**final["settings"]) == replace(given, epochs=epochs[name])
        log = [
            json.loads(line)
            for line in (home / "runs" / name / "log.jsonl").read_text().splitlines()
        ]
        assert curve.accuracy == [line["accuracy"] for line in log]
        assert curve.loss == [line["loss"] for line in log]
        assert final["accuracy"] == curve.accuracy[-1]
        assert final["best"] == max(curve.accuracy)
        # 12 of 30 tokens cannot be told by the token alone, all by the sentence.
        assert final["attention_share"] == pytest.approx((final["accuracy"] - 0.6) / 0.4)


def test_each_run_is_that_of_train_model(here: list[str], tmp_path: Path) -> None:
    found = figure1(CORPUS, tmp_path, SETTINGS, depths=[2], attentions=["rank1"])
    own = train(CORPUS, replace(SETTINGS, depth=2, epochs=4))
    assert here == ["depth-2-rank1"]
    assert found.curves[0].loss == [line["loss"] for line in own.curve]
    assert found.finals[0]["model_accuracy"] == own.accuracy
    assert found.ceilings == own.ceilings


@pytest.mark.usefixtures("here")
def test_the_second_time_gives_the_same_bytes_and_trains_nothing(tmp_path: Path) -> None:
    def call() -> tuple[dict[str, bytes], Figure1]:
        found = figure1(CORPUS, tmp_path, SETTINGS, depths=[1, 2])
        return {path.name: path.read_bytes() for path in found.save(tmp_path)}, found

    (first, before), (second, after) = call(), call()
    assert first == second
    assert before.finals == after.finals  # and with them the seconds they took


@pytest.mark.usefixtures("here")
def test_more_epochs_go_on(tmp_path: Path) -> None:
    figure1(CORPUS, tmp_path, SETTINGS, depths=[1, 2]).save(tmp_path)
    before = rows(tmp_path)
    figure1(CORPUS, tmp_path, replace(SETTINGS, epochs=3), depths=[1, 2]).save(tmp_path)
    after = rows(tmp_path)
    assert len(after) == 6 + 3 + 3
    assert [row for row in after if row in before] == before


@pytest.mark.usefixtures("here")
def test_other_settings_in_the_same_directory_are_refused(tmp_path: Path) -> None:
    figure1(CORPUS, tmp_path, SETTINGS, depths=[1])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(TrainingError, match=r"depth-1-rank1: this is another run: lr 0\.1, not"):
        figure1(CORPUS, tmp_path, replace(SETTINGS, lr=0.1), depths=[1])
    other = Corpus.from_sentences(CORPUS.sentences[:5])
    with pytest.raises(TrainingError, match="the corpus is another one"):
        figure1(other, tmp_path, SETTINGS, depths=[1])
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("here")
def test_no_word_of_the_corpus_is_in_the_figure_or_beside_it(tmp_path: Path) -> None:
    words = ["quetzalwort", "brimhawk", "ottsel"]
    corpus = Corpus.from_sentences([(words, ["XA", "XB", "XA"]), (words[1:], ["XA", "XB"])])
    figure1(corpus, tmp_path, SETTINGS, depths=[1, 2], attentions=KINDS).save(tmp_path)
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(found) > 10
    for path in found:
        if path.name != "vocabulary.json":  # of each model, below runs
            assert not re.search("|".join(words).encode(), path.read_bytes()), path


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        figure1(CORPUS, tmp_path / "file", SETTINGS)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "runs").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        figure1(CORPUS, tmp_path / "home", SETTINGS)
