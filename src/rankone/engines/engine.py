"""What every engine does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Table = Mapping[str, NDArray[Any]]  # columns, which may differ in length
Tell = Callable[[float], None]  # the share that is done

TASK = 1 << 30  # bytes that a function may use, unless the user says how many


class Ref:
    """A table that an engine keeps, as what it ``held`` it by. Given to a function, it becomes the
    table."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


class Shared(Ref):
    """A value that many calls are given, such as a model; it is sent to each worker once."""

    __slots__ = ()


class Engine(ABC):
    """Runs functions over tables, and keeps the tables.

    A function gets values, tables, and lists of these. It must be the function of a module, must
    not change what it is given, and must depend on nothing else: it may run anywhere, and again if
    a machine is lost. ``room`` is how many bytes it may use.
    """

    name: str
    room: int = TASK
    workers: int = 1

    def buckets(self, size: int) -> int:
        """Into how many buckets to split what takes so many bytes to work on."""
        return max(self.workers, -(-size // self.room))

    @abstractmethod
    def put(self, table: Table) -> Ref:
        """Keep a table."""

    @abstractmethod
    def take(self, ref: Ref) -> Table:
        """The table itself."""

    @abstractmethod
    def drop(self, refs: Iterable[Ref]) -> None:
        """Forget tables that nobody will ask for again."""

    @abstractmethod
    def share(self, value: Any) -> Shared:
        """Make a value known to all workers."""

    @abstractmethod
    def _run(
        self,
        function: Callable[..., Any],
        calls: Sequence[Sequence[Any]],
        pieces: int | None,
        tell: Tell,
    ) -> list[list[Ref]]:
        """The tables of every call, when all of them are done."""

    def each(
        self,
        function: Callable[..., Table],
        calls: Iterable[Sequence[Any]],
        tell: Tell | None = None,
    ) -> list[Ref]:
        """The table that the function returns for each of these lists of arguments."""
        found = self._run(function, list(calls), None, tell or _silent)
        return [ref for (ref,) in found]

    def split(
        self,
        function: Callable[..., Sequence[Table]],
        calls: Iterable[Sequence[Any]],
        pieces: int,
        tell: Tell | None = None,
    ) -> list[list[Ref]]:
        """The same for a function that returns a list of so many tables."""
        return self._run(function, list(calls), pieces, tell or _silent)

    def call(self, function: Callable[..., Table], *arguments: Any) -> Table:
        """The table that a function returns, called once."""
        (ref,) = self.each(function, [arguments])
        table = self.take(ref)
        self.drop([ref])
        return table

    @abstractmethod
    def close(self) -> None:
        """Forget everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def bucket_of(hashes: NDArray[np.uint64], count: int) -> NDArray[np.int64]:
    """The bucket of each hash, by its upper half."""
    upper = hashes >> np.uint64(32)
    return np.asarray((upper * np.uint64(count)) >> np.uint64(32), np.int64)


def scattered(bucket: NDArray[np.integer[Any]], count: int, columns: Table) -> list[Table]:
    """The rows of each of so many buckets, in order; ``bucket[i]`` is that of row i."""
    order = np.argsort(bucket, kind="stable")
    ends = np.searchsorted(bucket[order], np.arange(count), side="right").tolist()
    sorted_ = {name: column[order] for name, column in columns.items()}
    return [
        {name: column[a:b] for name, column in sorted_.items()}
        for a, b in zip([0, *ends], ends, strict=False)
    ]


def stacked(tables: Sequence[Table]) -> dict[str, NDArray[Any]]:
    """The rows of all tables, one after the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def exchanged(rows: Sequence[Sequence[Ref]]) -> list[list[Ref]]:
    """What each of many gave to each of many others, as what each of these was given."""
    return [list(column) for column in zip(*rows, strict=True)]


def _silent(_: float) -> None:
    pass


def strings(names: Iterable[str]) -> Table:
    """Words as a table: their bytes, and where each ends."""
    encoded = [name.encode() for name in names]
    ends = np.cumsum([len(name) for name in encoded], dtype=np.int64)
    return {"bytes": np.frombuffer(b"".join(encoded), np.uint8), "ends": ends}


def strings_of(table: Table) -> list[str]:
    """The words of such a table."""
    data, ends = table["bytes"].tobytes(), table["ends"].tolist()
    return [data[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]
