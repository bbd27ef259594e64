"""Commands with a limit of memory: the same output, one message for what is wrong, nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from answers import Run

GATED = ("--construction", "gated")
# The command itself, once it has written the first temporary file: the process ends itself.
AT_WORK = """
import os, sys
from rankone.engines.disk import Disk
whole = Disk.put
def put(engine, table):
    whole(engine, table)
    os.kill(os.getpid(), {number})
    raise SystemExit("still alive")
Disk.put = put
sys.argv = ["rankone", *{arguments!r}]
from rankone.__main__ import main
main()
"""


def bare(document: Any) -> Any:
    """Without times and places."""
    return {name: x for name, x in document.items() if name not in ("seconds", "files")}


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """More than one part, with a contradiction and a copy."""
    rows = [f"w{i * j % 7} L{j % 3 if i % 5 else 0}\n" for i in range(60) for j in range(i % 6 + 1)]
    path = tmp_path / "large.conll"
    path.write_text("".join(row + "\n" * (i % 4 == 3) for i, row in enumerate(rows)))
    return path


def test_every_command_says_the_same(
    run: Run, large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rankone.corpus import parted, read_parts

    monkeypatch.setattr(parted, "BYTES", 10_000_000)
    monkeypatch.setattr(read_parts, "LEAST", 1)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    one, two = tmp_path / "one", tmp_path / "two"
    how = ("--memory", 1.5, "--scratch", scratch)
    other = tmp_path / "other.conll"
    other.write_text(large.read_text()[:200].rpartition("\n\n")[0].replace("L1", "L2") + "\n")
    for arguments in (
        ("inspect", large, "--against", other, "--suspects", 5),
        ("memorize", large, *GATED, "--out", "{}"),
        ("certify", "{}", large),
        ("predict", "{}", large),
    ):
        documents = []
        for place, more in ((one, ()), (two, how)):
            given = [str(place) if argument == "{}" else argument for argument in arguments]
            answer = run(*given, *more, "--json")
            assert answer.code in (0, 1), answer.err
            documents.append(bare(answer.json))
        assert documents[0] == documents[1], arguments[0]
    assert (one / "model.safetensors").read_bytes() == (two / "model.safetensors").read_bytes()
    assert (run("predict", one, large).out, 0) == (run("predict", two, large, *how).out, 0)
    certificates = [json.loads((place / "certificate.json").read_text()) for place in (one, two)]
    assert bare(certificates[0]) == bare(certificates[1])
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--address", "127.0.0.1:1"], "127.0.0.1:1: no Ray cluster answers"),
        (["--memory", "0.1"], "memory cannot be 0.1"),
        (["--engine", "here", "--memory", "2"], "everything stays in memory"),
        (["--engine", "disk", "--workers", "2"], "disk has no workers"),
        (["--memory", "2", "--scratch", "/nowhere/at/all"], "/nowhere/at/all: cannot be used"),
        (["--memory", "2", "--task", "next"], "texts"),
    ],
)
def test_what_cannot_be_done_is_one_message(
    run: Run, corpus: Path, tmp_path: Path, given: list[str], said: str
) -> None:
    for command in (["memorize", corpus, *GATED, "--out", tmp_path / "new"], ["inspect", corpus]):
        before = sorted(tmp_path.iterdir())
        answer = run(*command, *given)
        assert answer.code == 2
        assert said in answer.err
        assert answer.err.count("rankone:") == 1
        assert "remedy: " in answer.err
        assert answer.out == ""
        assert sorted(tmp_path.iterdir()) == before


def test_line_is_refused_before_anything_is_read(run: Run, tmp_path: Path) -> None:
    answer = run("memorize", tmp_path / "missing", "--memory", 2)
    assert answer.code == 2
    assert "line, the default, needs the whole corpus in memory" in answer.err
    assert "--construction gated" in answer.err


def test_wrong_files_are_named(run: Run, large: Path, tmp_path: Path) -> None:
    """And nothing is written, whatever was read before."""
    other = tmp_path / "other.conll"
    other.write_text("a b L0\n")
    broken = tmp_path / "broken.conll"
    broken.write_text(large.read_text() + "\nx\n")
    for wrong, said in ((other, "other.conll as tokens in"), (broken, "broken.conll, line ")):
        out = tmp_path / "new"
        answer = run("memorize", large, wrong, *GATED, "--memory", 2, "--out", out)
        assert answer.code == 2
        assert said in answer.err
        assert not out.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_end_in_the_middle_leaves_nothing(large: Path, tmp_path: Path, number: int) -> None:
    scratch, out = tmp_path / "scratch", tmp_path / "model"
    scratch.mkdir()
    given = ["memorize", large, *GATED, "--memory", 2, "--scratch", scratch, "--out", out]
    code = AT_WORK.format(number=int(number), arguments=list(map(str, given)))
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 128 + number, ended.stderr
    assert "Traceback" not in ended.stderr
    assert not list(scratch.iterdir())
    assert not out.exists()


@pytest.mark.slow
def test_a_killed_worker_of_ray_changes_nothing(large: Path, tmp_path: Path) -> None:
    """kill -9, from outside, as soon as there is a worker at work."""
    psutil = pytest.importorskip("psutil")
    places = [tmp_path / "one", tmp_path / "two"]
    base = [sys.executable, "-m", "rankone", "memorize", str(large), *GATED, "--quiet", "--out"]
    subprocess.run([*base, str(places[0])], check=True, timeout=120)
    process = subprocess.Popen([*base, str(places[1]), "--engine", "ray", "--workers", "2"])
    killed, deadline = 0, time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        for one in psutil.Process(process.pid).children(recursive=True) if killed < 2 else []:
            try:
                if " ".join(one.cmdline()).startswith("ray::read_table"):
                    os.kill(one.pid, signal.SIGKILL)
                    killed += 1
            except (psutil.Error, ProcessLookupError):
                continue
        time.sleep(0.01)
    assert process.wait(timeout=1) == 0
    assert killed
    one, two = ((place / "model.safetensors").read_bytes() for place in places)
    assert one == two
