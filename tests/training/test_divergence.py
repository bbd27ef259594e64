"""Training that diverges ends with a clear message, and leaves nothing that is not finite."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

import rankone
import runs
from rankone import Settings, train
from rankone.cli import main
from rankone.errors import RankOneError, SettingError, TrainingError
from rankone.training import checkpoint
from rankone.training.document import Document
from rankone.training.state import Run

SMALL = Settings(epochs=6, batch_size=4, dim=4)
CORPUS = runs.corpus(12)  # 3 batches
ATTENTIONS: list[Any] = ["rank1", "theorem2", "softmax"]


def finite(home: Path) -> int:
    """Every number in every checkpoint is finite; how many checkpoints there are."""
    found = list(home.glob("checkpoint-*"))
    for path in found:
        assert all(tensor.isfinite().all() for tensor in load_file(path).values())
    return len(found)


def is_told(error: RankOneError, settings: Settings) -> None:
    """Where, why, remedy."""
    where = re.fullmatch(r"epoch (\d+), step (\d+)", str(error.where))
    assert where, error.where
    epoch, step = map(int, where.groups())
    assert 1 <= epoch <= settings.epochs
    assert math.ceil(step / 3) == epoch
    assert "training diverged: " in str(error)
    assert "not finite" in str(error)
    for word in ("--lr", "--init-std", "--depth"):
        assert word in str(error.remedy)


@pytest.mark.parametrize(
    ("attention", "change"),
    [
        ("rank1", {"lr": 1e3, "depth": 6}),
        ("softmax", {"lr": 1e10, "optimizer": "sgd"}),
        ("rank1", {"lr": 1e20, "depth": 3}),
        ("softmax", {"lr": 1e38}),
        ("rank1", {"lr": 1e308, "optimizer": "sgd", "momentum": 0.9}),
        ("theorem2", {"lr": 1e200, "dtype": "float64", "depth": 2}),
        ("theorem2", {"init_std": 1e30, "depth": 3}),
    ],
    ids=str,
)
def test_a_run_that_diverges(tmp_path: Path, change: dict[str, Any], attention: Any) -> None:
    settings = replace(SMALL, attention=attention, **change)
    home = tmp_path / "run"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TrainingError) as error:
            train(CORPUS, settings, out=home, checkpoint_seconds=0)
    is_told(error.value, settings)
    assert not (home / "model.safetensors").exists()
    assert finite(home) >= 1
    found, damaged = checkpoint.newest(home, Document)
    assert found is not None
    assert damaged == []
    for line in runs.log(home):
        assert math.isfinite(line["loss"])


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("lr", [1e-30, 1e2, 1e8, 1e30, 1e300])
def test_no_learning_rate_ends_in_anything_else(attention: Any, lr: float) -> None:
    """Either it diverges, and says so, or there is a model of finite numbers."""
    settings = replace(SMALL, attention=attention, lr=lr, epochs=3)
    try:
        result = train(CORPUS, settings)
    except TrainingError as error:
        is_told(error, settings)
        return
    assert all(p.isfinite().all() for p in result.model.network.parameters())
    assert all(math.isfinite(line["loss"]) for line in result.curve)
    assert 0 <= result.accuracy <= result.ceilings["input"].accuracy + 1e-12


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("init_std", [0.0, 1e-46, 1e-39, 1e20, 1e37, 1e39])
def test_no_start_ends_in_anything_else(tmp_path: Path, attention: Any, init_std: float) -> None:
    settings = replace(SMALL, attention=attention, init_std=init_std, epochs=2)
    home = tmp_path / "run"
    told = None
    try:
        train(CORPUS, settings, out=home)
    except (SettingError, TrainingError) as error:
        told = str(error.remedy)
    if told is not None:
        assert "init" in told
        assert not (home / "model.safetensors").exists()
        finite(home)
    else:
        assert finite(home) == 2
        assert rankone.load(home).network.shape == settings.network(CORPUS)


def test_outputs_of_a_finished_model_that_are_not_finite() -> None:
    settings = replace(SMALL, lr=1e300, dtype="float64", depth=2, epochs=1, batch_size=99)
    with pytest.raises(TrainingError, match="diverged"):
        train(CORPUS, settings)


@pytest.mark.parametrize("what", ["gradient", "weight", "moment"])
def test_what_is_not_finite_is_never_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """One number spoiled in the midst of a run: the last good checkpoint stays, and goes on."""
    home, step = tmp_path / "run", Run.step

    def spoil(run: Run, batch: Any, lr: float) -> None:
        step(run, batch, lr)
        if run.place.step == 5:
            tensor = {
                "gradient": run.dense[0].detach(),  # as one would leave it
                "weight": run.network.table.detach()[-1],  # that no batch has
                "moment": run.optimizer.slots[1][0],
            }[what]
            tensor.view(-1)[0] = math.nan if what == "gradient" else math.inf

    with monkeypatch.context() as patch:
        patch.setattr(Run, "step", spoil)
        with pytest.raises(TrainingError, match="training diverged") as error:
            train(CORPUS, SMALL, out=home, checkpoint_seconds=0)
    assert error.value.where is not None
    assert error.value.where.startswith("epoch 2, step ")
    assert finite(home) == 2
    assert [line["epoch"] for line in runs.log(home)] == [1]
    train(CORPUS, SMALL, out=home, resume=True)
    train(CORPUS, SMALL, out=tmp_path / "whole")
    assert runs.weights(home) == runs.weights(tmp_path / "whole")
    assert runs.log(home) == runs.log(tmp_path / "whole")


def test_a_model_that_was_written_before_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "run"
    train(CORPUS, SMALL, out=home)
    before = runs.weights(home)
    monkeypatch.setattr(Run, "step", lambda run, *_: (_ for _ in ()).throw(run.diverged("it", 1)))
    with pytest.raises(TrainingError):
        train(CORPUS, replace(SMALL, epochs=9), out=home, resume=True)
    assert runs.weights(home) == before
    assert rankone.load(home).labels == CORPUS.label_names


def test_the_command_ends_with_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "rankone train toy --attention softmax --lr 1e30 --epochs 5 -q --out".split()
    monkeypatch.setattr("sys.argv", [*arguments, str(tmp_path / "run")])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rankone: epoch 2, step 2: training diverged: ")
    assert len(err.splitlines()) == 2
