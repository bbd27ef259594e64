"""Mutation testing: change one thing in a room, run the tests of the room, see whether they notice.

    python tools/mutate.py certify --sample 120

A sample of the places that can be changed is drawn (the same for the same seed), one change for
each. Tests run in forked processes that have imported the heavy libraries already, on a copy of the
tree: first those that run the changed lines, by coverage; whatever they do not notice is given to
the other tests of the room. Tests that noticed a change of the file before come first, then the
quickest. With --quick, lines that some tests run are given to these only: no line is noticed by
other tests but those of functions whose results are cached.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import coverage
import pytest
import warm
from mutants import SOURCE, Mutant, draw

ROOT = Path.cwd()


@dataclass(frozen=True)
class Room:
    """Files to change, and the tests that should notice."""

    files: tuple[str, ...]
    tests: tuple[str, ...]

    def modules(self) -> list[Path]:
        paths = [path for pattern in self.files for path in sorted(SOURCE.glob(pattern))]
        return [path.relative_to(SOURCE) for path in paths]


ROOMS = {
    "certify": Room(("certify/*.py",), ("tests/certify",)),
    "verification": Room(
        ("construct/verify.py", "nn/evaluate.py"),
        ("tests/construct", "tests/nn/test_evaluate.py"),
    ),
    "construct": Room(("construct/*.py",), ("tests/construct",)),
    "kernels": Room(("kernels/*.py",), ("tests/kernels",)),
    "corpus": Room(("corpus/*.py",), ("tests/corpus",)),
    "files": Room(
        ("files.py", "documents.py", "nn/store.py", "plural.py"),
        ("tests/test_files.py", "tests/test_documents.py", "tests/construct/test_store.py"),
    ),
    "theory": Room(("theory/*.py",), ("tests/theory", "tests/paper")),
    "nn": Room(("nn/*.py",), ("tests/nn",)),
    "train": Room(("train/*.py",), ("tests/train",)),
    "approximation": Room(("approximation/*.py",), ("tests/approximation",)),
}
# What tests import anyway, and what takes longest.
HEAVY = (
    "numpy torch torch._dynamo torch.export numba safetensors.torch flint mpmath msgspec "
    "matplotlib.pyplot"
).split()


class Watch:
    """A pytest plugin: which lines does each test run, and how long does it take?"""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[str(tree / "src" / "*")]
        )
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        started = time.perf_counter()
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")
            self.seconds[item.nodeid] = time.perf_counter() - started

    def save(self, path: Path) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        source = self.tree / "src" / "rankone"
        lines = {
            str(Path(file).relative_to(source)): data.contexts_by_lineno(file)
            for file in data.measured_files()
        }
        path.write_text(json.dumps({"seconds": self.seconds, "lines": lines}))


class Choose:
    """A pytest plugin: these tests only, in this order."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: i for i, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order),
            key=lambda item: self.order[item.nodeid],
        )


class Tell:
    """A pytest plugin: which test failed?"""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.path.write_text(report.nodeid)


class Map:
    """Which tests run a line: what `Watch` saw. Compiled code is not seen, so it has none."""

    def __init__(self, path: Path) -> None:
        seen = json.loads(path.read_text())
        self.seconds: dict[str, float] = seen["seconds"]
        self.lines: dict[str, dict[str, list[str]]] = seen["lines"]
        self.noticed: dict[Path, list[str]] = {}  # by file, the last one first

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that run the statement of the change."""
        seen = self.lines.get(str(mutant.file), {})
        first, last = statement((SOURCE / mutant.file).read_text(), mutant.line)
        found = {test for i in range(first, last + 1) for test in seen.get(str(i), [])}
        return self.ordered(mutant, found & self.seconds.keys())

    def ordered(self, mutant: Mutant, tests: Iterable[str]) -> list[str]:
        lately = self.noticed.get(mutant.file, [])
        first = [test for test in lately if test in tests]
        return first + sorted(set(tests) - set(first), key=lambda test: self.seconds[test])

    def others(self, mutant: Mutant, tests: list[str]) -> list[str]:
        return self.ordered(mutant, self.seconds.keys() - set(tests))

    def remember(self, mutant: Mutant, test: str) -> None:
        lately = self.noticed.setdefault(mutant.file, [])
        lately[:] = [test, *(other for other in lately if other != test)]


def statement(text: str, line: int) -> tuple[int, int]:
    """First and last line of the innermost statement around a line, without a body of its own."""
    found = (line, line)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or 0
            if line <= end:
                found = node.lineno, max(end, node.lineno)
    return found


def run(tree: Path, work: Callable[[], int], seconds: float) -> tuple[str, float]:
    """Do the work on a tree in a process of its own: "passed", "failed" or "time"."""
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        _work(tree, work)
    while time.monotonic() - started < seconds:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            took = time.monotonic() - started
            return ("passed" if os.waitstatus_to_exitcode(status) == 0 else "failed"), took
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "time", seconds


def _work(tree: Path, work: Callable[[], int]) -> None:
    status = 3
    try:
        os.setpgid(0, 0)
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


def notice(tree: Path, mutant: Mutant, known: Map, seconds: float, *, quick: bool) -> str:
    """Which test notices what was changed? A run that takes too long counts. "" if none does."""
    chosen = known.tests(mutant)
    others = [] if quick and chosen else known.others(mutant, chosen)
    told = tree / "told"
    told.unlink(missing_ok=True)
    for tests in filter(None, (chosen, others)):
        outcome = run(tree, partial(some, tree, mutant.file, tests, told), seconds)[0]
        if outcome != "passed":
            return told.read_text() if told.exists() else outcome
    return ""


def some(tree: Path, changed: Path, tests: list[str], told: Path) -> int:
    """The suite, of these tests in this order, where this file has been changed."""
    warm.forget(SOURCE, changed)
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))
    return suite(tree, files, Choose(tests), Tell(told))


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


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("room", choices=[*ROOMS])
    arguments.add_argument("--sample", type=int, default=120, help="how many mutants")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--modules", default="", help="only these files, as in a.py,b.py")
    arguments.add_argument("--seconds", type=float, default=60.0, help="least time limit of a run")
    arguments.add_argument("--quick", action="store_true", help="only tests that run the line")
    arguments.add_argument("--verbose", action="store_true", help="say who noticed what")
    given = arguments.parse_args()
    room = ROOMS[given.room]
    names = set(filter(None, given.modules.split(",")))
    files = [path for path in room.modules() if not names or path.name in names]
    mutants = draw(files, given.sample, given.seed)
    for name in HEAVY:
        __import__(name)
    with tempfile.TemporaryDirectory(prefix="mutate-") as scratch:
        tree, seen = copy_of_tree(Path(scratch)), Path(scratch, "seen.json")
        outcome, took = run(tree, lambda: watched(tree, list(room.tests), seen), 3600)
        if outcome != "passed":
            sys.exit("the tests fail without any change (MUTATE_SHOW=1 shows them)")
        print(f"{len(mutants)} mutants; the tests take {took:.1f} s", flush=True)
        if given.room == "kernels":
            sys.path.insert(0, str(tree / "src"))
            warm.compile_kernels()
        tests, killed, least = Map(seen), 0, max(given.seconds, 4 * took)
        quickest = sorted(tests.seconds, key=lambda test: tests.seconds[test])[:99]
        alone = partial(some, tree, files[0], quickest, tree / "told")
        if run(tree, alone, least)[0] != "passed":  # or all mutants would seem to be noticed
            sys.exit("some tests fail without any change if they are run in another order")
        for i, mutant in enumerate(mutants, 1):
            path = tree / "src" / "rankone" / mutant.file
            before = path.read_text()
            _replace(path, mutant.text)
            if test := notice(tree, mutant, tests, least, quick=given.quick):
                killed += 1
                tests.remember(mutant, test)
                if given.verbose:
                    print(f"{mutant.file}:{mutant.line} {mutant.operator}: {test}", flush=True)
            else:
                print(f"\nSURVIVED {mutant.diff()}\n", flush=True)
            _replace(path, before)
            if i % 20 == 0 or i == len(mutants):
                print(f"{given.room}: {killed} of {i} noticed ({killed / i:.1%})", flush=True)


if __name__ == "__main__":
    main()
