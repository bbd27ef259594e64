"""No engine at all: functions are called one after the other, and tables stay in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rankone.engines.engine import Engine, Ref, Shared, Table, Tell


class InSequence(Engine):
    """Calls functions in this process, one after the other."""

    def share(self, value: Any) -> Shared:
        return Shared(value)

    def _run(
        self,
        function: Callable[..., Any],
        calls: Sequence[Sequence[Any]],
        pieces: int | None,
        tell: Tell,
    ) -> list[list[Ref]]:
        found = []
        for i, call in enumerate(calls):
            tell(i / len(calls))
            tables = function(*map(self._given, call))
            found.append([self.put(table) for table in ([tables] if pieces is None else tables)])
            del tables
        return found

    def _given(self, argument: Any) -> Any:
        if isinstance(argument, Shared):
            return argument.held
        if isinstance(argument, Ref):
            return self.take(argument)
        return [*map(self._given, argument)] if isinstance(argument, list) else argument


class Here(InSequence):
    """The engine that is none."""

    name = "here"

    def put(self, table: Table) -> Ref:
        return Ref(table)

    def take(self, ref: Ref) -> Table:
        found: Table = ref.held
        return found

    def drop(self, refs: Iterable[Ref]) -> None:
        for ref in refs:
            ref.held = None

    def close(self) -> None:
        """Tables go when nobody refers to them."""
