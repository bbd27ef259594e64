"""Engines: tables come back as they were, functions get them, and nothing is left behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rankone.engines import Engine, Table, open_engine
from rankone.engines.disk import Disk
from rankone.engines.engine import exchanged, scattered, stacked, strings, strings_of
from rankone.errors import OutputError, SettingError


def doubled(table: Table, by: int) -> Table:
    return {"x": by * table["x"]}


def dealt(table: Table, count: int) -> list[Table]:
    return [{"x": table["x"][i::count]} for i in range(count)]


def added(tables: list[Table], extra: dict[str, int]) -> Table:
    return {"x": np.array([sum(int(t["x"].sum()) for t in tables) + extra["more"]])}


def refused(_: Table) -> Table:
    raise SettingError("no", remedy="yes")


@pytest.fixture(params=["here", "disk"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    scratch = tmp_path if request.param == "disk" else None
    with open_engine(request.param, scratch=scratch) as opened:
        yield opened
    assert not list(tmp_path.iterdir())


KINDS = st.sampled_from([np.int64, np.int32, np.uint64, np.float32, np.float64, np.bool_])
COLUMNS = KINDS.flatmap(lambda kind: arrays.arrays(kind, st.tuples(st.integers(0, 5))))


@given(st.dictionaries(st.sampled_from("abcd"), COLUMNS), st.booleans())
def test_tables_come_back_as_they_were(table: dict[str, Any], on_disk: bool) -> None:
    table["pairs"] = np.arange(6, dtype=np.uint64).reshape(3, 2)[:, ::-1]
    with open_engine("disk" if on_disk else "here") as engine:
        found = engine.take(engine.put(table))
    assert list(found) == list(table)
    for name, column in table.items():
        assert found[name].dtype == column.dtype
        np.testing.assert_array_equal(found[name], column)


def test_functions_get_tables_lists_of_tables_and_shared_values(engine: Engine) -> None:
    refs = [engine.put({"x": np.arange(4) + 10 * i}) for i in range(3)]
    told: list[float] = []
    twice = engine.each(doubled, [(ref, 2) for ref in refs], told.append)
    pieces = exchanged(engine.split(dealt, [(ref, 2) for ref in twice], 2))
    shared = engine.share({"more": 1000})
    sums = [
        engine.take(ref)["x"].tolist() for ref in engine.each(added, [(p, shared) for p in pieces])
    ]
    assert sums == [[1000 + 2 * (2 + 22 + 42)], [1000 + 2 * (4 + 24 + 44)]]
    assert told == sorted(told)
    assert all(0 <= share <= 1 for share in told)
    assert engine.call(doubled, refs[0], 3)["x"].tolist() == [0, 3, 6, 9]
    assert len(engine.split(dealt, [(refs[0], 1)], 1)[0]) == 1


def test_errors_of_functions_are_those_of_the_caller(engine: Engine) -> None:
    with pytest.raises(SettingError, match="no") as caught:
        engine.each(refused, [(engine.put({}),)])
    assert caught.value.remedy == "yes"


def test_files_go_when_they_are_dropped_and_when_the_engine_is_closed(tmp_path: Path) -> None:
    engine = open_engine("disk", scratch=tmp_path)
    kept, gone = (engine.put({"x": np.arange(3)}) for _ in range(2))
    engine.drop([gone])
    (home,) = tmp_path.iterdir()
    assert len(list(home.iterdir())) == 1
    assert engine.take(kept)["x"].tolist() == [0, 1, 2]
    engine.close()
    assert not home.exists()


def test_a_full_disk_is_one_message_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_engine("disk", scratch=tmp_path) as engine:
        whole = Path.open

        def full(path: Path, *how: Any, **more: Any) -> Any:
            file = whole(path, *how, **more)
            file.write(b"some of it")
            file.close()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(Path, "open", full)
        with pytest.raises(OutputError, match=r"no room.*No space left[\s\S]*--scratch"):
            engine.put({"x": np.arange(3)})
        (home,) = tmp_path.iterdir()
        assert not list(home.iterdir())


def test_an_interrupted_process_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time, numpy as np\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's jobs ignore it
        "from rankone.engines import open_engine\n"
        "with open_engine('disk', scratch=sys.argv[1]) as engine:\n"
        "    engine.put({'x': np.arange(3)})\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    assert list(tmp_path.iterdir())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    deadline = time.monotonic() + 5
    while list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not list(tmp_path.iterdir())


def test_memory_says_how_much_a_function_may_use() -> None:
    with Disk(memory=2.0) as two, Disk(memory=4.0) as four:
        assert 0 < two.room < 2e9 - 6e8
        assert two.room < four.room < 4e9 - 6e8
        assert four.buckets(10 * four.room) == 10
        assert four.buckets(0) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "here", "memory": 2.0}, "everything stays in memory"),
        ({"name": "here", "scratch": "."}, "everything stays in memory"),
        ({"name": "disk", "address": "localhost:1"}, "disk has no address"),
        ({"name": "here", "workers": 2}, "here has no workers"),
        ({"name": "disk", "memory": 0.2}, "memory cannot be 0.2"),
        ({"name": "cloud"}, "unknown engine 'cloud'"),
        ({"scratch": "/nowhere/at/all"}, "cannot be used for temporary files"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises((SettingError, OutputError), match=said):
        open_engine(**given)


def test_the_name_may_be_left_out() -> None:
    with open_engine() as here, open_engine(memory=1.5) as disk:
        assert (here.name, disk.name) == ("here", "disk")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_words_become_tables_and_words_again(words: list[str]) -> None:
    assert strings_of(strings(words)) == words


@given(st.lists(st.integers(0, 4)), st.integers(5, 7))
def test_rows_go_to_their_buckets_in_order(buckets: list[int], count: int) -> None:
    rows = np.arange(len(buckets))
    found = scattered(np.array(buckets, dtype=np.int64), count, {"row": rows})
    assert [table["row"].tolist() for table in found] == [
        [i for i, bucket in enumerate(buckets) if bucket == number] for number in range(count)
    ]
    assert sorted(stacked(found)["row"].tolist()) == rows.tolist()
