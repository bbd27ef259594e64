"""Mutation testing: change one thing in a room, run the tests of the room, see whether they notice.

    python tools/mutate.py certification --sample 120

A sample of the places that can be changed is drawn (the same for the same seed), one change for
each. First the tests that run the changed lines, by coverage, run in a fork of a process that has
imported and collected everything, with the changed function put in its place. What they do not
notice, and what cannot be put in its place, is written into a copy of the tree, imported anew, and
given to those tests and then to all others of the room.

With --needed no test stops the others: which tests noticed a mutant, which alone, which none?
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import machine_code
import pytest
from guard import guard
from mutants import SOURCE, Mutant, draw
from needed import table
from rooms import ROOMS, Room
from seen import Seen, Watch
from swap import swap

ROOT = Path.cwd()


BROKEN = 99  # exit status of a process in which something else than a test went wrong
# What tests import anyway, and what takes longest.
HEAVY = (
    "numpy torch torch._dynamo torch.export numba safetensors.torch flint mpmath msgspec "
    "matplotlib.pyplot"
).split()


class Choose:
    """A pytest plugin: these tests only, in this order. The first that fails is written down."""

    def __init__(self, tests: list[str], failed: Path) -> None:
        self.order, self.failed = {test: i for i, test in enumerate(tests)}, failed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order),
            key=lambda item: self.order[item.nodeid],
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.write_text(report.nodeid)


class InPlace:
    """A pytest plugin: instead of all tests once, for each mutant those that run its lines, in a
    fork of its own, up to the first that fails or (`all_`) to the end. The numbers of the mutants
    that were noticed are written to `out`; with the tests that failed, to `failed`."""

    def __init__(
        self, tree: Path, mutants: list[Mutant], seen: Seen, *, all_: bool = False
    ) -> None:
        self.tree, self.mutants, self.seen, self.all_ = tree, mutants, seen, all_
        self.out, self.failed, self.number = tree / "noticed", tree / "failures", -1

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        session.config.option.maxfail = 0  # else what is shared is made anew after each failure
        for file in {mutant.file for mutant in self.mutants}:  # the package imports when asked to
            importlib.import_module(".".join(("rankone", *file.with_suffix("").parts)))
        # They must pass here too, or what they notice would mean nothing.
        if run(self.tree, partial(self._fail, session, session.items), 3600)[0] != "passed":
            return True
        with self.out.open("w", buffering=1) as file:
            for i, mutant in enumerate(self.mutants):
                self.number = i
                chosen = [test for test in self.seen.tests(mutant) if test in items]
                limit = 30 + 4 * sum(self.seen.seconds[test] for test in chosen)
                work = partial(self._notice, session, mutant, [items[test] for test in chosen])
                if run(self.tree, work, limit)[0] != "passed":
                    print(i, file=file)
        return True

    def _notice(self, session: pytest.Session, mutant: Mutant, items: list[pytest.Item]) -> bool:
        path = self.tree / "src" / "rankone" / mutant.file
        return swap(path, path.read_text(), mutant.text) and self._fail(session, items)

    def _fail(self, session: pytest.Session, items: list[pytest.Item]) -> bool:
        for i, item in enumerate(items):
            following = items[i + 1] if i + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed and not self.all_:
                return True
        return session.testsfailed > 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self.failed.open("a") as file:
                print(self.number, report.nodeid, file=file)


def run(tree: Path, work: Callable[[], int], seconds: float) -> tuple[str, float]:
    """Do the work on a tree in a process of its own: "passed", "failed" or "time"."""
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        _work(tree, work)
    signal.signal(signal.SIGTERM, partial(_end, child))
    while time.monotonic() - started < seconds:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            ended, took = os.waitstatus_to_exitcode(status), time.monotonic() - started
            if ended == BROKEN:
                raise RuntimeError("no test was at fault, but this script (MUTATE_SHOW=1)")
            return ("passed" if ended == 0 else "failed"), took
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "time", seconds


def _end(child: int, *_: object) -> None:
    """Asked to end: so must the child, which is in a group of its own."""
    os.killpg(child, signal.SIGTERM)
    sys.exit(BROKEN)


def _work(tree: Path, work: Callable[[], int]) -> None:
    status = BROKEN
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setpgid(0, 0)
        guard()
        nothing = os.open(os.devnull, os.O_RDWR)
        if "MUTATE_SHOW" not in os.environ:
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree / "src")
        sys.path[:] = [p for p in sys.path if not p.endswith(("/src", "/tests"))]
        sys.path.insert(0, str(tree / "src"))
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def suite(tree: Path, tests: list[str], *plugins: Any) -> int:
    scratch = f"--basetemp={tree / 'scratch'}"
    options = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", scratch]
    return int(pytest.main([*options, *tests], plugins=list(plugins)))


def watched(tree: Path, tests: list[str], out: Path) -> int:
    watch = Watch(tree)
    watch.coverage.start()
    status = suite(tree, tests, watch)
    watch.save(out)
    return status


def chosen(tree: Path, changed: Path, tests: list[str], failed: Path) -> int:
    """The suite, of these tests in this order, where this file has been changed."""
    machine_code.forget(SOURCE, changed)
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))
    return suite(tree, files, Choose(tests, failed))


def notice(tree: Path, mutant: Mutant, seen: Seen, seconds: float) -> bool:
    """Do the tests notice what was written into the tree? A run that takes too long counts."""
    failed = tree / "failed"
    failed.unlink(missing_ok=True)
    for tests in filter(None, (seen.tests(mutant), seen.others(mutant))):
        if run(tree, partial(chosen, tree, mutant.file, tests, failed), seconds)[0] != "passed":
            if failed.exists():
                seen.remember(mutant, failed.read_text())
            return True
    return False


def _replace(path: Path, text: str) -> None:
    """And its byte code too, which is known by size and second only."""
    path.write_text(text)
    for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        stale.unlink()


def copy_of_tree(scratch: Path) -> Path:
    tree = scratch / "tree"
    tree.mkdir()
    for part in ("src", "tests", "pyproject.toml", "docs", "README.md", "examples", "tools"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, tree / part)
    if (ROOT.parent / "shared").exists():
        (scratch / "shared").symlink_to((ROOT.parent / "shared").resolve())
    return tree


def noticed_in_place(tree: Path, room: Room, plugin: InPlace) -> set[int]:
    work = partial(suite, tree, list(room.tests), plugin)
    if run(tree, work, 36000)[0] != "passed" or not plugin.out.exists():
        sys.exit("the tests fail in a process that has imported everything (MUTATE_SHOW=1)")
    return {int(number) for number in plugin.out.read_text().split()}


def needed(plugin: InPlace) -> str:
    lines = plugin.failed.read_text().splitlines() if plugin.failed.exists() else []
    pairs = (line.split(" ", 1) for line in lines)
    return table(((int(number), test) for number, test in pairs), plugin.seen.seconds)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("room", choices=[*ROOMS])
    arguments.add_argument("--sample", type=int, default=120, help="how many mutants")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--modules", default="", help="only these files, as in a.py,b.py")
    arguments.add_argument("--seconds", type=float, default=60.0, help="least time limit of a run")
    arguments.add_argument("--needed", action="store_true", help="which tests notice, which none")
    given = arguments.parse_args()
    room = ROOMS[given.room]
    names = set(filter(None, given.modules.split(",")))
    files = [path for path in room.modules() if not names or path.name in names]
    mutants = draw(files, given.sample, given.seed)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as in tests/conftest.py
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a fork waits for ever for threads it lost
    for name in HEAVY:
        __import__(name)
    with tempfile.TemporaryDirectory(prefix="mutate-") as scratch:
        tree, out = copy_of_tree(Path(scratch)), Path(scratch, "seen.json")
        outcome, took = run(tree, lambda: watched(tree, list(room.tests), out), 3600)
        if outcome != "passed":
            sys.exit("the tests fail without any change (MUTATE_SHOW=1 shows them)")
        print(f"{len(mutants)} mutants; the tests take {took:.1f} s", flush=True)
        seen = Seen(out)
        if given.room == "kernels":  # machine code contains that of other functions: all anew
            sys.path.insert(0, str(tree / "src"))
            machine_code.compile_kernels()
            noticed = set()
        else:
            plugin = InPlace(tree, mutants, seen, all_=given.needed)
            noticed = noticed_in_place(tree, room, plugin)
            print(f"{len(noticed)} noticed at once", flush=True)
            if given.needed:
                print(needed(plugin))
                return
        for i, mutant in enumerate(mutants):
            if i in noticed:
                continue
            path = tree / "src" / "rankone" / mutant.file
            before = path.read_text()
            _replace(path, mutant.text)
            if notice(tree, mutant, seen, max(given.seconds, 4 * took)):
                noticed.add(i)
            else:
                print(f"\nSURVIVED {mutant.diff()}\n", flush=True)
            _replace(path, before)
        share = len(noticed) / len(mutants)
        print(f"{given.room}: {len(noticed)} of {len(mutants)} noticed ({share:.1%})", flush=True)


if __name__ == "__main__":
    main()
