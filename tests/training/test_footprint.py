"""What training would take, against what torch allocates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import rankone
import runs
from rankone import Settings
from rankone.errors import SizeError
from rankone.training import footprint
from rankone.training.initial import initial
from rankone.training.processes import Processes
from rankone.training.state import Run

CORPUS = runs.corpus(12)
SHAPES: list[dict[str, Any]] = [
    {},
    {"depth": 3, "dim": 5, "hidden": 7},
    {"attention": "softmax", "heads": 2, "head_size": 3, "positions": False},
    {"attention": "theorem2", "max_length": 50},
]


@pytest.mark.parametrize("given", SHAPES, ids=str)
@pytest.mark.parametrize("optimizer", ["adam", "sgd", "momentum"])
def test_weights_and_moments_are_counted_one_by_one(given: dict[str, Any], optimizer: str) -> None:
    how: dict[str, Any] = {"optimizer": "adam"}
    if optimizer != "adam":
        how = {"optimizer": "sgd", "momentum": 0.5 if optimizer == "momentum" else 0.0}
    for dtype in ("float32", "float64"):
        settings = Settings(**given, **how, dtype=dtype, batch_size=1)  # type: ignore[arg-type]
        run = Run(initial(CORPUS, settings), settings, Processes())
        shape = settings.network(CORPUS)
        weights = sum(x.nbytes for x in run.weights().values())
        size = run.network.table.element_size()
        assert footprint.parameters(shape) == weights // size
        slots = sum(x.nbytes for slot in run.optimizer.slots for x in slot)
        held = weights + slots + weights  # and gradients
        batch = shape.depth * (2 * shape.dim + shape.hidden) + shape.labels
        found = footprint.needed(shape, CORPUS, settings)
        if settings.attention != "theorem2":  # whose projections have no moments
            assert found == held + CORPUS.longest * batch * size
        best = footprint.needed(shape, CORPUS, replace(settings, patience=1))
        assert best == found + weights


def test_the_largest_batch_has_the_longest_sentences() -> None:
    lengths = sorted(CORPUS.lengths.tolist())
    for size in (1, 5, 12, 10**6):
        assert footprint.batch_tokens(CORPUS, Settings(batch_size=size)) == sum(lengths[-size:])


def test_what_just_fits_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    toy, settings = rankone.read_corpus("toy"), Settings()
    size = footprint.needed(settings.network(toy), toy, settings)
    monkeypatch.setattr(footprint, "installed", lambda **_: size)
    footprint.check_memory(toy, settings)
    monkeypatch.setattr(footprint, "installed", lambda **_: size - 1)
    with pytest.raises(
        SizeError, match="8,802 parameters, 30 tokens in the largest batch"
    ) as error:
        footprint.check_memory(toy, settings)
    assert error.value.where == "toy"
