"""Mutation testing: change one thing in a room, run the tests of the room, see whether they notice.

    python tools/mutate.py certify --sample 120

A sample of the places that can be changed is drawn (the same for the same seed), one change for
each. The changes are cosmic-ray's operators and two of our own, for what matters most here: a term
that is dropped, and a bound that becomes the other one. Tests run in forked processes that have
imported the heavy libraries already, on a copy of the tree, the test file of the module first.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.provider import OperatorProvider
from parso.python.tree import Name, PythonNode

ROOT = Path.cwd()
SOURCE = Path("src", "rankone")


@dataclass(frozen=True)
class Room:
    """Files to change, and the tests that should notice: those named by the module first."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS = {
    "certify": Room(("certify/*.py",), ("tests/certify",)),
    "verification": Room(
        ("construct/verify.py", "nn/evaluate.py"),
        ("tests/construct/test_verify.py", "tests/construct", "tests/nn/test_evaluate.py"),
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
HEAVY = "numpy torch numba safetensors.torch flint mpmath msgspec matplotlib.pyplot".split()


PAIRS = "max min,maximum minimum,amax amin,argmax argmin,ceil floor,any all,upper lower"
OTHER = {a: b for p in PAIRS.split(",") for a, b in (p.split(), reversed(p.split()))}


class DropTerm(Operator):
    """a + b becomes a, and likewise a - b: an error term that nobody adds up."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(node, PythonNode) and node.type == "arith_expr" and len(node.children) >= 3:
            yield node.children[-2].start_pos, node.end_pos

    def mutate(self, node: Any, _: int) -> Any:
        del node.children[-2:]
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class SwapBound(Operator):
    """A lower bound becomes an upper one: max, min, ceil, floor, any, all."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(node, Name) and node.value in OTHER:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, _: int) -> Any:
        node.value = OTHER[node.value]
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


@dataclass(frozen=True)
class Mutant:
    file: Path  # below src/rankone
    line: int
    operator: str
    text: str

    def diff(self) -> str:
        before = (ROOT / SOURCE / self.file).read_text().splitlines()
        lines = difflib.unified_diff(before, self.text.splitlines(), lineterm="", n=0)
        changes = "\n".join(line for line in list(lines)[2:] if line[:2] != "@@")
        return f"{self.file}:{self.line} {self.operator}\n{changes}"


SUMS, BITS = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod"}, {"BitOr", "BitAnd", "BitXor"}


def operators() -> dict[str, Operator]:
    """Those of cosmic-ray but for changes nobody would make, such as + to >>: they fail at once,
    and would only make the score look better."""
    provider = OperatorProvider()
    found: dict[str, Operator] = {"DropTerm": DropTerm(), "SwapBound": SwapBound()}
    for name in provider:
        kind, *parts = name.split("/")[-1].split("_")
        if kind == "ReplaceBinaryOperator" and not (set(parts) <= SUMS or set(parts) <= BITS):
            continue
        if kind != "NoOp" and not provider[name].arguments():
            found[name] = provider[name]()
    return found


def silent(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where a change cannot be noticed: annotations, what is imported for them, lists of names,
    whether a dataclass is frozen."""
    places = []
    for node in ast.walk(ast.parse(text)):
        for part in _silent(node):
            if isinstance(part, ast.expr | ast.stmt):
                end = (part.end_lineno or 0, part.end_col_offset or 0)
                places.append(((part.lineno, part.col_offset - 1), end))  # a decorator has its @
    return places


def _silent(node: ast.AST) -> list[ast.AST | None]:
    match node:
        case ast.arg() | ast.AnnAssign():
            return [node.annotation]
        case ast.FunctionDef():
            return [node.returns]
        case ast.ClassDef():
            return [d for d in node.decorator_list if "dataclass" in ast.unparse(d)]
        case ast.If() if ast.unparse(node.test) == "TYPE_CHECKING":
            return [node]
        case ast.Assign() if ast.unparse(node.targets[0]) == "__all__":
            return [node]
    return []


def places(file: Path) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """Where the file can be changed, and by which operators: (name, occurrence)."""
    text = (ROOT / SOURCE / file).read_text()
    tree, quiet = get_ast(text), silent(text)
    found: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for name, operator in operators().items():
        occurrence = 0
        for node in ast_nodes(tree):
            for start, _ in operator.mutation_positions(node):
                if not any(a <= start < b for a, b in quiet):
                    found.setdefault(start, []).append((name, occurrence))
                occurrence += 1
    return found


def draw(room: Room, sample: int, seed: int, modules: set[str]) -> list[Mutant]:
    """One change at each of so many places, those of a line last if the line has one already."""
    random_ = random.Random(seed)
    paths = [p for pattern in room.files for p in sorted((ROOT / SOURCE).glob(pattern))]
    files = [p.relative_to(ROOT / SOURCE) for p in paths if not modules or p.name in modules]
    spots = [(file, spot, ways) for file in files for spot, ways in places(file).items()]
    random_.shuffle(spots)
    seen: set[tuple[Path, int]] = set()
    first, rest = [], []
    for spot in spots:
        line = (spot[0], spot[1][0])
        (rest if line in seen else first).append(spot)
        seen.add(line)
    table, mutants = operators(), []
    for file, (line, _), ways in [*first, *rest]:
        if len(mutants) == sample:
            break
        name, occurrence = random_.choice(ways)
        before = (ROOT / SOURCE / file).read_text()
        try:
            text = mutate_code(before, table[name], occurrence)
        except AttributeError:  # cosmic-ray on `except (a.b, c)`
            continue
        if text is not None and _differs(before, text):
            mutants.append(Mutant(file, line, name.split("/")[-1], text))
    if any(mutant.file.parts[0] == "kernels" for mutant in mutants):
        mutants.sort(key=lambda mutant: (mutant.file, mutant.line))  # fewer things are compiled
    return mutants


def _differs(before: str, after: str) -> bool:
    """A change that does not parse, or is none, is no mutant."""
    try:
        return ast.dump(ast.parse(before)) != ast.dump(ast.parse(after))
    except SyntaxError:
        return False


def tests_for(room: Room, file: Path) -> list[str]:
    """The tests of the room, those named after the module first; each file once."""
    found: list[Path] = []
    for name in room.tests:
        path = ROOT / name
        found += sorted(path.rglob("test_*.py")) if path.is_dir() else [path] * path.exists()
    own = [path for path in found if file.stem in path.stem]
    return [str(path.relative_to(ROOT)) for path in dict.fromkeys([*own, *found])]


def run(tree: Path, tests: list[str], seconds: float) -> tuple[str, float]:
    """Run the tests on a tree in a process of its own: "passed", "failed" or "time"."""
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        _test(tree, tests)
    while time.monotonic() - started < seconds:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            took = time.monotonic() - started
            return ("passed" if os.waitstatus_to_exitcode(status) == 0 else "failed"), took
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "time", seconds


def _test(tree: Path, tests: list[str]) -> None:
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
        import pytest

        scratch = f"--basetemp={tree / 'scratch'}"
        options = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", scratch]
        status = int(pytest.main([*options, *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _replace(path: Path, text: str) -> None:
    """And its byte code too, which is known by size and second only."""
    path.write_text(text)
    for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        stale.unlink()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("room", choices=[*ROOMS])
    arguments.add_argument("--sample", type=int, default=120, help="how many mutants")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--modules", default="", help="only these files, as in a.py,b.py")
    arguments.add_argument("--tests", default="", help="these tests instead of the room's own")
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--seconds", type=float, default=60.0, help="least time limit of a run")
    given = arguments.parse_args()
    room = ROOMS[given.room]
    if given.tests:
        room = Room(room.files, tuple(given.tests.split(",")))
    mutants = draw(room, given.sample, given.seed, set(filter(None, given.modules.split(","))))
    for name in HEAVY:
        __import__(name)
    with tempfile.TemporaryDirectory(prefix="mutate-") as scratch:
        trees: SimpleQueue[Path] = SimpleQueue()
        for i in range(given.jobs):
            tree = Path(scratch, str(i), "tree")
            for part in ("src", "tests", "pyproject.toml", "docs", "README.md", "examples"):
                copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
                tree.mkdir(parents=True, exist_ok=True)
                copy(ROOT / part, tree / part)
            if (ROOT.parent / "shared").exists():
                (tree.parent / "shared").symlink_to((ROOT.parent / "shared").resolve())
            trees.put(tree)
        tree = trees.get()
        outcome, took = run(tree, tests_for(room, Path("none")), 3600)
        trees.put(tree)
        if outcome != "passed":
            sys.exit("the tests fail without any change (MUTATE_SHOW=1 shows them)")
        print(f"{len(mutants)} mutants; the tests take {took:.1f} s", flush=True)
        limit = max(given.seconds, 4 * took)

        def attempt(mutant: Mutant) -> str:
            tree = trees.get()
            path = tree / SOURCE / mutant.file
            before = path.read_text()
            try:
                _replace(path, mutant.text)
                return run(tree, tests_for(room, mutant.file), limit)[0]
            finally:
                _replace(path, before)
                trees.put(tree)

        killed = 0
        with ThreadPoolExecutor(given.jobs) as pool:
            for i, (mutant, outcome) in enumerate(
                zip(mutants, pool.map(attempt, mutants), strict=True), 1
            ):
                killed += outcome != "passed"
                if outcome == "passed":
                    print(f"\nSURVIVED {mutant.diff()}\n", flush=True)
                if i % 20 == 0 or i == len(mutants):
                    print(f"{given.room}: {killed} of {i} noticed ({killed / i:.1%})", flush=True)


if __name__ == "__main__":
    main()
