"""Which tests run a line, and how long they take: what `make mutate` chooses tests by."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import coverage
import pytest
from mutants import SOURCE, Mutant


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


class Seen:
    """What `Watch` saw. Compiled code is not seen, so no test is known to run it."""

    def __init__(self, path: Path) -> None:
        seen = json.loads(path.read_text())
        self.seconds: dict[str, float] = seen["seconds"]
        self.lines: dict[str, dict[str, list[str]]] = seen["lines"]
        self.noticed: dict[Path, list[str]] = {}  # by file, the last one first

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that run the statement of the change, those most likely to notice first."""
        seen = self.lines.get(str(mutant.file), {})
        first, last = statement((SOURCE / mutant.file).read_text(), mutant.line)
        found = {test for i in range(first, last + 1) for test in seen.get(str(i), [])}
        return self._ordered(mutant, found & self.seconds.keys())

    def others(self, mutant: Mutant) -> list[str]:
        """All other tests. They notice changes of what is computed once and kept."""
        return self._ordered(mutant, self.seconds.keys() - set(self.tests(mutant)))

    def remember(self, mutant: Mutant, test: str) -> None:
        lately = self.noticed.setdefault(mutant.file, [])
        lately[:] = [test, *(other for other in lately if other != test)]

    def _ordered(self, mutant: Mutant, tests: Iterable[str]) -> list[str]:
        """Those that noticed a change of the file before, then the quickest."""
        first = [test for test in self.noticed.get(mutant.file, []) if test in tests]
        return first + sorted(set(tests) - set(first), key=lambda test: self.seconds[test])


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
