"""Ray: the same tables and errors as anywhere, whatever happens to a worker.

One cluster of its own for all tests: it takes seconds to start.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankone
from rankone.corpus.contexts import by_sequence
from rankone.corpus.parted import parted
from rankone.corpus.shuffle import errors_of
from rankone.corpus.tallies import best_targets
from rankone.engines import Engine, Table, open_engine
from rankone.engines.engine import exchanged
from rankone.errors import ClusterError, SettingError

if importlib.util.find_spec("ray") is None:  # not imported: who imports it first, sets it up
    pytest.skip("Ray is not installed", allow_module_level=True)


def halved(table: Table, _: dict[str, int]) -> list[Table]:
    return [{"x": table["x"][::2]}, {"x": table["x"][1::2]}]


def added(tables: list[Table], extra: dict[str, int]) -> Table:
    return {"x": np.array([sum(int(t["x"].sum()) for t in tables) + extra["more"]])}


def refused(number: int) -> Table:
    """The later, the quicker."""
    if number:
        time.sleep(0.5 / number)
        raise SettingError("no", where=f"call {number}", remedy="yes")
    return {}


def ended(table: Table, mark: str) -> Table:
    """Kills its own worker the first time."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return {"x": table["x"] + 1}
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    scratch = tmp_path_factory.mktemp("r")
    with open_engine("ray", workers=2, memory=2.0, scratch=scratch) as opened:
        assert list(scratch.iterdir())
        yield opened
    assert not list(scratch.iterdir())


def test_functions_get_tables_and_their_errors_come_back(engine: Engine) -> None:
    shared, told = engine.share({"more": 1000}), list[float]()
    refs = [engine.put({"x": np.arange(4) + 10 * i}) for i in range(3)]
    pieces = exchanged(engine.split(halved, [(ref, shared) for ref in refs], 2, told.append))
    found = [
        engine.take(ref)["x"].tolist() for ref in engine.each(added, [(p, shared) for p in pieces])
    ]
    assert found == [[1000 + 2 + 22 + 42], [1000 + 4 + 24 + 44]]
    assert told[-1] == 1.0
    with pytest.raises(SettingError, match="call 1: no") as caught:
        engine.each(refused, [(0,), (1,), (2,), (20,)])
    assert caught.value.remedy == "yes"


def test_a_worker_that_is_killed_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    corpus = rankone.builtin_corpus(200)
    wanted = rankone.memorize(corpus, construction="gated").model.files()
    refs = [engine.put({"x": np.full(3, i)}) for i in range(4)]
    calls = [(ref, str(tmp_path / f"dead{i % 2}")) for i, ref in enumerate(refs)]
    found = [engine.take(ref)["x"].tolist() for ref in engine.each(ended, calls)]
    assert found == [[i + 1] * 3 for i in range(4)]
    assert len(list(tmp_path.iterdir())) == 2
    parts = parted(corpus, engine, 600)
    assert len(parts.parts) > 2
    assert rankone.memorize(parts, construction="gated").model.files() == wanted
    assert (
        errors_of(parts, by_sequence) == best_targets(by_sequence(corpus), corpus.label_ids).errors
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"address": "127.0.0.1:1"}, "127.0.0.1:1: no Ray cluster answers"),
        ({"address": "cluster"}, "address cannot be 'cluster'"),
        ({"address": "http://x:1"}, "address cannot be"),
        ({"address": "127.0.0.1:99999"}, "no Ray cluster answers"),
        ({"address": "127.0.0.1:1", "workers": 2}, "was not started here.* workers"),
        ({"address": "127.0.0.1:1", "scratch": "."}, "was not started here.* scratch"),
        ({"memory": 0.1}, "memory cannot be 0.1"),
    ],
)
def test_what_cannot_be_used_is_one_message(given: dict[str, Any], said: str) -> None:
    with pytest.raises((ClusterError, SettingError), match=said):
        open_engine("ray", **given)


@pytest.mark.usefixtures("engine")
def test_one_ray_at_a_time() -> None:
    with pytest.raises(SettingError, match="runs in this process already"):
        open_engine("ray")


@pytest.mark.slow
def test_an_audit_is_that_of_the_whole(engine: Engine) -> None:
    corpus = rankone.read_corpus("builtin")
    whole = rankone.inspect(corpus, suspects=3).to_json()
    parts = rankone.inspect(parted(corpus, engine, 9000), suspects=3).to_json()
    del whole["seconds"], parts["seconds"]
    assert parts == whole
