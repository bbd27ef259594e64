"""Constructed weights say so, warn before they are trained, and no longer say so afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForTokenClassification, AutoTokenizer

import networks
import rankone
from rankone.interop.huggingface import RankOneConfig, as_pretrained, export_hf
from rankone.interop.huggingface.card import is_constructed
from rankone.interop.huggingface.configuration_rankone import CHANGED, CONSTRUCTED
from rankone.interop.huggingface.pretrained_rankone import logger

CORPUS = [(["a", "b", "a"], ["x", "y", "x"]), (["b", "a"], ["x", "z"])]
WARNING = "These weights were constructed, not learned, and training destroys what they know"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("made") / "hf"
    export_hf(rankone.memorize(CORPUS).model, home)
    return home


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Another test may have been warned already."""
    type(logger).warning_once.cache_clear()
    yield
    type(logger).warning_once.cache_clear()


def made_by(home: Path) -> str | None:
    found: str | None = AutoConfig.from_pretrained(home).made_by
    return found


@pytest.mark.parametrize("kind", [AutoModel, AutoModelForTokenClassification])
@pytest.mark.parametrize("dtype", ["auto", torch.float32])
def test_training_mode_warns_once(
    kind: type, dtype: torch.dtype | str, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = kind.from_pretrained(home, dtype=dtype)
    model.eval()
    model.train(False)
    assert not caplog.records
    for _ in range(3):  # as Trainer does before every step
        assert model.train() is model
        assert model.training
    assert [record.message[: len(WARNING)] for record in caplog.records] == [WARNING]


def test_what_was_not_constructed_does_not_warn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    models = [networks.model(shape, 0) for shape in networks.SHAPES[:8]]
    for model in models:
        found = as_pretrained(model)
        assert (found.config.made_by, found.config.made_sha256) == (None, None)
        found.train()
    found.save_pretrained(tmp_path)
    AutoModelForTokenClassification.from_pretrained(tmp_path).train()
    assert made_by(tmp_path) is None
    assert not caplog.records


def test_the_flag_goes_along_with_the_weights(home: Path, tmp_path: Path) -> None:
    assert made_by(home) == CONSTRUCTED
    model = AutoModelForTokenClassification.from_pretrained(home)
    model.train()  # warned, but nothing was trained
    model.eval().save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(home).save_pretrained(tmp_path)
    assert made_by(tmp_path) == CONSTRUCTED
    again = as_pretrained(rankone.load(tmp_path))  # through a model of ours, too
    assert again.config.made_by == CONSTRUCTED
    assert again.config.made_sha256 == model.config.made_sha256


CHANGES = {
    "a step": lambda model: torch.optim.SGD(model.parameters(), lr=1e-3).step(),
    "a step of the table alone": lambda model: model.table.data[0].add_(1e-12),
    "other numbers": lambda model: model.float(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_weights_are_not_called_constructed(
    change: object, home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = AutoModelForTokenClassification.from_pretrained(home)
    model(torch.tensor([[0, 1]]), labels=torch.tensor([[0, 1]])).loss.backward()
    change(model)  # type: ignore[operator]
    model.save_pretrained(tmp_path)
    assert made_by(tmp_path) == CHANGED
    caplog.clear()
    AutoModelForTokenClassification.from_pretrained(tmp_path).train()
    assert not caplog.records


def test_tensors_that_are_given_are_those_that_count(home: Path, tmp_path: Path) -> None:
    """Trainer hands over a state of its own where several processes train."""
    model = AutoModelForTokenClassification.from_pretrained(home)
    state = {name: tensor + 1 for name, tensor in model.state_dict().items()}
    model.save_pretrained(tmp_path, state_dict=state)
    assert made_by(tmp_path) == CHANGED


def test_every_construction_is_known() -> None:
    for settings in (
        {},
        {"positions": False},
        {"causal": True},
        {"head_size": 2},
        {"readout": "paper"},
    ):
        assert is_constructed(rankone.memorize(CORPUS, **settings).model.network)
    one = rankone.memorize([(["a"], ["x"])]).model.network
    assert is_constructed(one)
    for name in ("head.weight", "head.bias"):
        changed = rankone.memorize(CORPUS).model.network
        with torch.no_grad():
            changed.get_parameter(name)[-1].mul_(1 + 1e-15)
        assert not is_constructed(changed)


def test_the_card_says_what_the_weights_are_for(home: Path, tmp_path: Path) -> None:
    card = (home / "README.md").read_text()
    for said in ("constructed, not trained", "Do not fine-tune them", "Do not expect right labels"):
        assert said in card
    export_hf(networks.model(networks.SHAPES[0], 0), tmp_path / "hf")
    other = (tmp_path / "hf" / "README.md").read_text()
    assert "Do not" not in other
    assert "## What it is for" in other


def test_other_words_are_refused() -> None:
    with pytest.raises(ValueError, match="`made_by` must be one of"):
        RankOneConfig(made_by="magic")
