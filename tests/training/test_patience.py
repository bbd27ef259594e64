"""Evaluation after every epoch, and patience: when a run stops, and which epoch it keeps."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import corpora
import rankone
import runs
from rankone import Corpus, Settings, train
from rankone.errors import SettingError
from rankone.nn.scores import Scores
from rankone.training import evaluation

TOY = rankone.read_corpus("toy")
TAGGED = Corpus.from_sentences([(["a", "b", "c"], ["B-X", "I-X", "O"]), (["b", "q"], ["O", "O"])])
OTHER = Corpus.from_sentences(corpora.spelled("ab xy", "ca xx"))
SMALL = Settings(epochs=9, batch_size=4, dim=4)
FIGURES = [0.2, 0.5, 0.4, 0.5, 0.3, 0.6, 0.1, 0.1, 0.1]  # of epochs 1, 2, ...


def script(monkeypatch: pytest.MonkeyPatch, figures: list[float], f1: list[float] | None) -> None:
    """Evaluations that come out as they are told to, whatever the weights."""

    def measure(run: Any, _: Any, others: Any) -> list[Scores]:
        at = run.place.epoch - 1
        return [Scores(x.source, 9, 0, 0, figures[at], f1=f1[at] if f1 else None) for x in others]

    monkeypatch.setattr(evaluation, "measure", measure)


def weights(result: Any) -> dict[str, torch.Tensor]:
    return dict(result.model.network.state_dict())


def same(one: Any, two: Any) -> bool:
    """But for the row of unknown words, which is made at the end, all that was trained."""
    first, second = weights(one), weights(two)
    return all(tensor.equal(second[name]) for name, tensor in first.items())


def test_every_epoch_is_evaluated_as_the_finished_model_is(tmp_path: Path) -> None:
    """The last line of the log is the result, and so is each other one of a run that ends there."""
    result = train(TOY, SMALL, evaluate=[TAGGED, TOY], out=tmp_path / "run")
    log = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert log == list(result.curve)
    for epoch in (1, 4, 9):
        until = train(TOY, replace(SMALL, epochs=epoch), evaluate=[TAGGED, TOY])
        assert log[epoch - 1]["evaluations"] == [
            {"source": s.source, "accuracy": s.accuracy, "f1": s.f1} for s in until.evaluations
        ]
    assert result.best_epoch is None
    assert same(result, train(TOY, SMALL))  # being watched changes nothing


def test_tensorboard_shows_every_evaluation(tmp_path: Path) -> None:
    others = [replace(TAGGED, source=name) for name in ("a/dev", "b/dev", "test")]
    result = train(TOY, SMALL, evaluate=others, tensorboard=tmp_path)
    shown = runs.board(tmp_path)
    assert shown.keys() == {
        *("loss", "accuracy", "tokens_per_second"),
        *(f"evaluate/dev ({i})/{figure}" for i in (1, 2) for figure in ("accuracy", "f1")),
        *("evaluate/test/accuracy", "evaluate/test/f1"),
    }
    for i, tag in enumerate(("dev (1)", "dev (2)", "test")):
        for figure in ("accuracy", "f1"):
            lines = [{"epoch": x["epoch"], **x["evaluations"][i]} for x in result.curve]  # type: ignore[misc]
            assert shown[f"evaluate/{tag}/{figure}"] == runs.as_shown(lines, figure)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("patience", "epochs", "best"),
    [(1, 3, 2), (3, 5, 2), (4, 9, 6), (0, 9, None)],
    ids=["soon", "equal is no better", "just in time", "none"],
)
@pytest.mark.parametrize("tagged", [False, True])
def test_it_stops_when_nothing_is_better_and_keeps_the_best(
    monkeypatch: pytest.MonkeyPatch, patience: int, epochs: int, best: int | None, tagged: bool
) -> None:
    """By F1 where there are entity tags; accuracy then does not count."""
    if tagged:
        script(monkeypatch, FIGURES[::-1], FIGURES)
    else:
        script(monkeypatch, FIGURES, None)
    result = train(TOY, replace(SMALL, patience=patience), evaluate=[OTHER])
    assert (result.epochs, result.best_epoch) == (epochs, best)
    assert len(result.curve) == epochs
    assert result.loss == result.curve[(best or epochs) - 1]["loss"]
    kept = train(TOY, replace(SMALL, epochs=best or epochs))
    assert same(result, kept)
    assert result.wrong == kept.wrong


def test_the_first_corpus_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(run: Any, _: Any, others: Any) -> list[Scores]:
        epoch = run.place.epoch
        return [Scores(x.source, 9, 0, 0, [0.9 / epoch, epoch / 9][x is TOY]) for x in others]

    monkeypatch.setattr(evaluation, "measure", measure)
    settings = replace(SMALL, patience=2)
    assert train(TOY, settings, evaluate=[OTHER, TOY]).epochs == 3
    assert train(TOY, settings, evaluate=[TOY, OTHER]).epochs == 9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills are those of POSIX")
def test_killed_at_any_moment_it_stops_and_keeps_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script(monkeypatch, FIGURES, None)
    settings = replace(SMALL, patience=3, batch_size=9)
    whole = train(TOY, settings, evaluate=[OTHER], out=tmp_path / "whole")
    more: dict[str, Any] = {"evaluate": [OTHER], "checkpoint_seconds": 0, "resume": True}
    home, lives = tmp_path / "run", 1
    while runs.train_and_die(9 + 5 * lives, TOY, settings, out=home, **more):
        lives += 1
    assert lives > 3
    result = train(TOY, out=home, evaluate=[OTHER], resume=True)
    assert (result.epochs, result.best_epoch) == (whole.epochs, whole.best_epoch) == (5, 2)
    assert runs.weights(home) == runs.weights(tmp_path / "whole")
    assert runs.log(home) == runs.log(tmp_path / "whole")


def test_a_run_that_has_stopped_goes_on_with_more_patience(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From where it stopped, not from its best epoch."""
    script(monkeypatch, FIGURES, None)
    home = tmp_path / "run"
    train(TOY, replace(SMALL, patience=1), evaluate=[OTHER], out=home)
    result = train(TOY, {"patience": 4}, evaluate=[OTHER], out=home, resume=True)
    assert (result.epochs, result.best_epoch) == (9, 6)
    assert same(result, train(TOY, replace(SMALL, epochs=6)))
    last = train(TOY, {"patience": 0}, out=home, resume=True)
    assert (last.epochs, last.best_epoch) == (9, None)
    assert same(last, train(TOY, SMALL))


def test_another_file_to_evaluate_on_starts_patience_anew_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Figures of two files cannot be compared."""
    script(monkeypatch, FIGURES, None)
    home = tmp_path / "run"
    settings = replace(SMALL, epochs=3, patience=3)
    train(TOY, settings, evaluate=[OTHER], out=home)
    result = train(TOY, {"epochs": 5}, evaluate=[TAGGED], out=home, resume=True)
    assert result.best_epoch == 4  # 2 was as good, but on the other file
    assert any("patience starts again" in remark for remark in result.remarks)


def test_patience_without_an_evaluation_is_refused(tmp_path: Path) -> None:
    """Files are named again by whoever resumes: a run directory opens none."""
    with pytest.raises(SettingError, match="nothing to evaluate on") as error:
        train(TOY, replace(SMALL, patience=2), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    train(TOY, replace(SMALL, patience=2), evaluate=["toy"], out=tmp_path / "run")
    with pytest.raises(SettingError, match="nothing to evaluate on") as error:
        train(TOY, out=tmp_path / "run", resume=True)
    assert "--evaluate (it was toy)" in str(error.value.remedy)
    assert train(TOY, out=tmp_path / "run", evaluate=["toy"], resume=True).best_epoch


def test_labels_that_the_model_cannot_give_are_reported_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="rankone")
    other = Corpus.from_sentences([(["a", "b", "c"], ["Z", "B-X", "Z"])])
    result = train(TAGGED, replace(SMALL, epochs=1), evaluate=[TAGGED, other])
    said = [remark for remark in result.remarks if "does not have" in remark]
    assert [remark.split(": ", 1)[1].split(" that ")[0] for remark in said] == [
        "2 tokens with labels"
    ]
    assert "(Z)" in said[0]
    assert said[0] in caplog.messages


def test_files_to_evaluate_on_are_turned_into_iob2_if_the_corpus_is(tmp_path: Path) -> None:
    (tmp_path / "two").write_text("a B-X\nb I-X\nc B-X\nd O\n")
    (tmp_path / "one").write_text("a I-X\nb I-X\nc B-X\nd O\n")
    settings = replace(SMALL, epochs=60, lr=0.05)
    result = train(tmp_path / "two", settings, evaluate=[tmp_path / "two", tmp_path / "one"])
    assert [scores.accuracy for scores in result.evaluations] == [1.0, 1.0]
