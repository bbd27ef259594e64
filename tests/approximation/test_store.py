"""An approximation on disk: it comes back as it was, or not at all."""

from __future__ import annotations

import copy
import errno
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from rankone import approximate, load_approximation
from rankone.approximation import Approximation, draw_plots
from rankone.approximation import store as module
from rankone.approximation.store import Domain, Report
from rankone.documents import parse_document
from rankone.errors import ModelError, OutputError, RankOneError

REPORT, WEIGHTS = module.REPORT, module.WEIGHTS


@pytest.fixture(scope="module")
def result() -> Approximation:
    return approximate("softmax", n=3, grid=3, epsilon=None, samples=256, domain=(-0.1, 0.7))


@pytest.fixture
def home(result: Approximation, tmp_path: Path) -> Path:
    result.save(tmp_path / "home")
    return tmp_path / "home"


@pytest.mark.parametrize("readout", ["constant", "linear"])
@pytest.mark.parametrize(
    "settings",
    [{"n": 1, "grid": 1}, {"n": 3, "grid": 3, "positions": True}, {"d": 2, "epsilon": 0.1}],
    ids=str,
)
def test_what_is_loaded_is_what_was_saved(
    readout: Any, settings: dict[str, Any], tmp_path: Path
) -> None:
    """The same type, the same figures, the same network; only f itself is not on disk."""
    result = approximate("softmax", readout=readout, samples=256, **settings)
    files = result.save(tmp_path / "deep" / "here")
    again = load_approximation(tmp_path / "deep" / "here")
    assert type(again) is Approximation
    assert again.to_json() == result.to_json()
    assert (again.bound, again.measured, again.verified) == (
        result.bound,
        result.measured,
        result.verified,
    )
    assert again.target is None
    x = np.random.default_rng(0).random((5, result.grid.n, result.grid.d))
    np.testing.assert_array_equal(again(x), result(x))
    with pytest.raises(RankOneError, match="outside of the domain"):
        again(x + 1)
    with pytest.raises(RankOneError, match="takes"):
        again(np.concatenate([x, x], 1))
    assert draw_plots(tmp_path, again) == []
    copied = again.save(tmp_path / "again")
    assert [path.read_bytes() for path in copied] == [path.read_bytes() for path in files]


JUNK: list[Any] = [None, True, -1, 0, 10**400, 0.5, "x", [], [[]], {}, {"a": 1}, [1e308]]


def nodes(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    entries: Any = ()
    if isinstance(document, dict):
        entries = document.items()
    elif isinstance(document, list):
        entries = enumerate(document)
    for key, value in entries:
        yield from nodes(value, (*path, key))


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    document = copy.deepcopy(document)
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


def refused_or_loaded(home: Path) -> Approximation | None:
    message = None
    try:
        return load_approximation(home)
    except ModelError as error:
        message = str(error)
    assert str(home) in message
    assert message.count("\n  remedy: ") == message.count("\n") == 1
    return None


def test_any_node_of_the_report_that_is_replaced_is_refused_or_means_the_same(
    home: Path, result: Approximation
) -> None:
    """Never another error; and what is still accepted is a figure, not the network."""
    report = json.loads((home / REPORT).read_text())
    report["tried"] = [{"grid": 2, "error": 0.5}]
    x = np.full((3, 1), 0.25)
    wanted = result(x)
    refused = 0
    for path in nodes(report):
        for junk in JUNK:
            (home / REPORT).write_text(json.dumps(replaced(report, path, junk)))
            loaded = refused_or_loaded(home)
            refused += loaded is None
            if loaded is not None:
                np.testing.assert_array_equal(loaded(x), wanted)
                assert loaded.to_json() == json.loads((home / REPORT).read_text())
    assert refused > 400


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ok", False), ("context_ids", 19), ("hidden_units", {"f1": 4, "f2": 36, "total": 41})),
        *(("n", 2), ("d", 2), ("m", 2), ("grid", 4), ("readout", "linear"), ("positions", True)),
        *(("domain", {"low": [-0.1], "high": [0.8]}), ("domain", {"low": [0.0], "high": [0.7]})),
        *(("domain", {"low": [0.7], "high": [-0.1]}), ("domain", {"low": [], "high": []})),
        *(("p", 0.5), ("p", float("nan")), ("error", float("inf")), ("function", "\ud800")),
        ("interval", [0.1]),
    ],
)
def test_a_report_that_does_not_belong_to_the_weights(home: Path, name: str, value: Any) -> None:
    report = json.loads((home / REPORT).read_text())
    (home / REPORT).write_text(json.dumps({**report, name: value}))
    with pytest.raises(ModelError):
        load_approximation(home)


def test_the_first_figure_that_does_not_match_is_named(home: Path) -> None:
    document = json.loads((home / REPORT).read_text())
    document["context_ids"] += 1
    document["ok"] = not document["ok"]
    (home / REPORT).write_text(json.dumps(document))
    with pytest.raises(ModelError, match="ok does not match the weights and the other figures"):
        load_approximation(home)


def test_what_is_missing_is_refused(home: Path) -> None:
    report = json.loads((home / REPORT).read_text())
    for name in report:
        left = {key: value for key, value in report.items() if key != name}
        (home / REPORT).write_text(json.dumps(left))
        with pytest.raises(ModelError, match=name):
            load_approximation(home)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_a_report_that_is_none(home: Path, content: bytes) -> None:
    (home / REPORT).write_bytes(content)
    with pytest.raises(ModelError):
        load_approximation(home)


@pytest.mark.parametrize("content", [b"", b"weights", bytes(999)], ids=["empty", "text", "zeros"])
def test_weights_that_are_none(home: Path, content: bytes) -> None:
    for data in ((home / WEIGHTS).read_bytes()[:-9], content):
        (home / WEIGHTS).write_bytes(data)
        with pytest.raises(ModelError, match=WEIGHTS):
            load_approximation(home)


def test_weights_that_do_not_fit(home: Path) -> None:
    """A tensor left out, one too many, of another type, not finite, or of another shape."""
    path = home / WEIGHTS
    good = load_file(path)
    bad = [{k: v for k, v in good.items() if k != name} for name in good]
    bad += [good | {name: torch.zeros(1, dtype=torch.float64)} for name in ("f3.x", "f1.x", "x")]
    for name, tensor in good.items():
        spoilt = tensor.clone()
        spoilt.view(-1)[-1] = torch.nan
        shapes = [tensor[..., :-1], torch.cat([tensor, tensor])]
        bad += [good | {name: other.contiguous()} for other in (tensor.float(), spoilt, *shapes)]
    for tensors in bad:
        save_file(tensors, path)
        with pytest.raises(ModelError, match=WEIGHTS):
            load_approximation(home)


def test_places_without_an_approximation(tmp_path: Path, home: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file", tmp_path / "none"):
        with pytest.raises(ModelError, match=REPORT):
            load_approximation(place)
    (home / WEIGHTS).unlink()
    with pytest.raises(ModelError, match=WEIGHTS):
        load_approximation(home)


def test_nothing_is_left_where_saving_fails(
    result: Approximation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError):
        result.save(tmp_path / "file")

    def full(path: Path, _content: bytes) -> Path:
        if path.name == REPORT:
            raise OSError(errno.ENOSPC, "No space left on device")
        path.write_bytes(b"")
        return path

    monkeypatch.setattr(module, "write_file", full)
    (tmp_path / "there").mkdir()
    for place in (tmp_path / "new" / "one", tmp_path / "there"):
        with pytest.raises(OSError, match="No space"):
            result.save(place)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "there"]
    shutil.rmtree(tmp_path / "there")


def test_sizes_of_a_report_must_match(home: Path) -> None:
    """Every list that has one entry too few, and a domain without an inside."""
    report = parse_document((home / REPORT).read_bytes(), Report, "report")
    assert report.sound
    assert (report.n, report.d, report.m) == (3, 1, 1)
    worst, steepest, domain = report.worst, report.steepest, report.domain
    odd = [[0.5], [0.5], [0.5, 0.5]]
    for wrong in (
        {"d": 2},
        {"n": 4},
        {"m": 2},
        {"domain": replace(domain, low=[0.0, 0.0])},
        {"domain": replace(domain, high=[1.0, 1.0])},
        {"domain": Domain([0.0, 0.0], [1.0, 1.0])},
        {"domain": replace(domain, low=domain.high)},
        *({"worst": replace(worst, **{name: odd[:2]})} for name in ("point", "f", "network")),
        *({"worst": replace(worst, **{name: odd})} for name in ("point", "f", "network")),
        {"steepest": replace(steepest, point=odd[:2])},
        {"steepest": replace(steepest, point=odd)},
    ):
        assert not replace(report, **wrong).sound, wrong
