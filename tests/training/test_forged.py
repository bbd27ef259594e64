"""Checkpoints that somebody has edited are noticed; with a forged seal they still do no harm."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save

import runs
from rankone import Settings, train
from rankone.errors import RankOneError, TrainingError
from rankone.training import checkpoint

CORPUS = runs.corpus(6)
SETTINGS = Settings(epochs=3, batch_size=2, dim=3, patience=2)
VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        7,
        1 << 31,
        1 << 53,
        1 << 64,
        -0.5,
        0.5,
        1e308,
        1e400,
        1e-320,
    ),
    *("", "1", "rank1", "é\ud800", "\x00", [], [1], {}, {"a": 1}, [[]], float("nan")),
]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in the midst of its second epoch, with the checkpoint before."""
    home = tmp_path_factory.mktemp("begun") / "run"
    stop = 5

    def progress(*_: object) -> None:
        nonlocal stop
        stop -= 1
        if not stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(
            CORPUS,
            SETTINGS,
            out=home,
            evaluate=[CORPUS],
            checkpoint_seconds=0,
            threads=1,
            progress=progress,
        )
    assert len(newest_first(home)) == 2
    return home


def newest_first(home: Path) -> list[Path]:
    return sorted(home.glob("checkpoint-*"), reverse=True)


def parts(path: Path) -> tuple[dict[str, torch.Tensor], Any]:
    contents = path.read_bytes()
    header = json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])
    return load(contents), json.loads(header["__metadata__"]["rankone"].partition(" ")[2])


def replaced(
    home: Path, tensors: dict[str, torch.Tensor], document: Any, *, seal: Callable[..., str]
) -> Path:
    """The newest checkpoint with other contents, renamed to their hash."""
    path = newest_first(home)[0]
    stated = document if isinstance(document, str) else json.dumps(document)
    contents = save(tensors, metadata={"rankone": f"{seal(stated, tensors)} {stated}"})
    path.unlink()
    other = home / f"{path.name[:21]}{sha256(contents).hexdigest()[:16]}.safetensors"
    other.write_bytes(contents)
    return other


def resume(home: Path) -> Any:
    return train(CORPUS, out=home, evaluate=[CORPUS], resume=True, checkpoint_seconds=60)


def nodes(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is something to replace."""
    if path:
        yield path
    if isinstance(document, dict | list):
        for key in document if isinstance(document, dict) else range(len(document)):
            yield from nodes(document[key], (*path, key))


def with_node(document: Any, path: tuple[Any, ...], change: Callable[[Any], Any] | None) -> Any:
    """A copy with one node changed, or, without `change`, left out."""
    found = at = copy.deepcopy(document)
    for key in path[:-1]:
        at = at[key]
    if change is None:
        del at[path[-1]]
    else:
        at[path[-1]] = change(at[path[-1]])
    return found


def old_seal(home: Path) -> Callable[..., str]:
    contents = newest_first(home)[0].read_bytes()
    header = json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])
    sealed = str(header["__metadata__"]["rankone"]).partition(" ")[0]
    return lambda *_: sealed


def test_any_edit_is_noticed_and_the_checkpoint_before_is_used(begun: Path, tmp_path: Path) -> None:
    """Another learning rate would be a sound document; other numbers, sound tensors."""
    home = shutil.copytree(begun, tmp_path / "run")
    tensors, document = parts(newest_first(home)[0])
    wanted = resume(shutil.copytree(begun, tmp_path / "whole"))
    for number, (changed, stated) in enumerate(
        [
            (tensors, with_node(document, ("settings", "lr"), lambda _: 0.5)),
            ({**tensors, "weight.table": tensors["weight.table"] + 1}, document),
        ]
    ):
        copied = shutil.copytree(home, tmp_path / str(number))
        other = replaced(copied, changed, stated, seal=old_seal(copied))
        result = resume(copied)
        assert result.remarks[0] == f"{other}: damaged (it was edited)"
        assert result.remarks[1].startswith("Resumed from the checkpoint before, step ")
        assert runs.weights(copied) == runs.weights(tmp_path / "whole")
        assert result.best_epoch == wanted.best_epoch
    copied = shutil.copytree(home, tmp_path / "alone")
    newest_first(copied)[1].unlink()
    replaced(copied, tensors, {**document, "threads": 2}, seal=old_seal(copied))
    with pytest.raises(TrainingError, match="no checkpoint is whole"):
        resume(copied)


def forged(begun: Path, scratch: Path, tensors: dict[str, torch.Tensor], document: Any) -> None:
    """Refused, or resumed from one of the two; a run that is trained is a run that is sound."""
    home = shutil.copytree(begun, scratch)
    replaced(home, tensors, document, seal=checkpoint.seal)
    with contextlib.suppress(RankOneError):
        result = resume(home)
        assert result.epochs == len(result.curve)
        assert all(tensor.isfinite().all() for tensor in result.model.network.parameters())
    shutil.rmtree(home)


def some(begun: Path, tmp_path: Path, count: int | None) -> None:
    """Every node replaced by something, or left out; `count` of all the ways."""
    tensors, document = parts(newest_first(begun)[0])
    ways = [(path, value) for path in nodes(document) for value in [..., *VALUES]]
    if count is not None:
        ways = random.Random(0).sample(ways, count)
    for path, value in ways:
        edit = None if value is ... else (lambda _, value=value: value)
        forged(begun, tmp_path / "run", tensors, with_node(document, path, edit))


def test_some_forged_documents(begun: Path, tmp_path: Path) -> None:
    some(begun, tmp_path, 25)


@pytest.mark.slow
def test_every_forged_document(begun: Path, tmp_path: Path) -> None:
    some(begun, tmp_path, None)


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"version": 3}', '{"version": "3"}'])
def test_documents_that_are_none(begun: Path, tmp_path: Path, text: str) -> None:
    tensors, _ = parts(newest_first(begun)[0])
    home = shutil.copytree(begun, tmp_path / "run")
    replaced(home, tensors, text, seal=checkpoint.seal)
    assert ": damaged (" in resume(home).remarks[0]


PLACES: dict[str, dict[str, Any]] = {
    "an epoch too many": {"epoch": 2},
    "more batches than there are": {"batch": 3, "step": 6},
    "no line for an epoch": {"curve": []},
    "no time": {"seconds": 0.0},
    "an epoch without a token": {"so_far": {"loss": 0.0, "right": 0, "tokens": 0, "seconds": 1.0}},
    "an epoch without time": {"so_far": {"loss": 1.0, "right": 0, "tokens": 9, "seconds": 0.0}},
    "a best epoch to come": {"best": {"epoch": 2, "figure": 0.1, "corpus": ""}},
}


@pytest.mark.parametrize("change", PLACES.values(), ids=PLACES)
def test_a_place_where_no_run_can_be(begun: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    tensors, document = parts(newest_first(begun)[0])
    home = shutil.copytree(begun, tmp_path / "run")
    other = replaced(
        home, tensors, {**document, "place": document["place"] | change}, seal=checkpoint.seal
    )
    with pytest.raises(TrainingError, match="never is where this checkpoint says") as error:
        resume(home)
    assert error.value.where == str(other)
    other.unlink()  # as the remedy says
    assert resume(home).remarks == ()


Tensors = dict[str, torch.Tensor]
TENSORS: dict[str, Callable[[Tensors], Tensors]] = {
    "one missing": lambda t: {k: v for k, v in t.items() if k != "weight.head.bias"},
    "no moments": lambda t: {k: v for k, v in t.items() if not k.startswith("moment")},
    "no best weights": lambda t: {k: v for k, v in t.items() if not k.startswith("best")},
    "one too many": lambda t: {**t, "weight.more": torch.ones(2)},
    "none": lambda _: {},
    "another shape": lambda t: {**t, "weight.head.bias": torch.ones(99)},
    "a shape that would be spread": lambda t: {**t, "weight.head.bias": torch.ones(1)},
    "no shape": lambda t: {**t, "weight.head.bias": torch.tensor(1.0)},
    "another type": lambda t: {**t, "weight.table": t["weight.table"].double()},
    "whole numbers": lambda t: {**t, "weight.table": t["weight.table"].long()},
    "half precision": lambda t: {**t, "weight.table": t["weight.table"].half()},
    "brain floats": lambda t: {**t, "weight.table": t["weight.table"].bfloat16()},
    "not finite": lambda t: {**t, "moment0.table": t["moment0.table"] / 0},
}


@pytest.mark.parametrize("change", TENSORS.values(), ids=TENSORS)
def test_tensors_that_no_such_run_has(
    begun: Path, tmp_path: Path, change: Callable[[Tensors], Tensors]
) -> None:
    """Not one of them is copied into the run: refused, or the checkpoint before is used."""
    tensors, document = parts(newest_first(begun)[0])
    home = shutil.copytree(begun, tmp_path / "run")
    other = replaced(home, change(tensors), document, seal=forging)
    if change is TENSORS["brain floats"]:  # no number that numpy has, so it cannot be sealed
        assert resume(home).remarks[0].startswith(f"{other}: damaged (")
        return
    with pytest.raises(TrainingError) as error:
        resume(home)
    assert error.value.where == str(other)
    assert error.value.remedy == "remove this checkpoint: the one before is used then"
    assert not (home / "model.safetensors").exists()


def forging(stated: str, tensors: Tensors) -> str:
    try:
        return checkpoint.seal(stated, tensors)
    except TypeError:  # of numbers that numpy does not have
        return "0" * 64
