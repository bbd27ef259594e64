"""Functions run as tasks of Ray, on this machine or on a cluster, and tables in its object store.

Plain tasks over our own parts, not Ray Data: its blocks and shuffles would only be taken apart
again (docs/engines.md has the comparison). A task that dies with its worker is run again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rankone.engines.disk import BASE, LEAST, SHARE
from rankone.engines.engine import Engine, Ref, Shared, Table, Tell
from rankone.engines.reach import REMEDY
from rankone.errors import ClusterError, RankOneError, SettingError
from rankone.extras import extra
from rankone.files import refused

with extra("ray", "the engine ray"):
    import ray

RETRIES = 10  # of a task whose worker was lost
STORE = 0.3  # of the memory of this machine, at most, for tables; Ray writes others to disk
LEAST_STORE = 80_000_000  # bytes: Ray takes no less


class Ray(Engine):
    """Runs functions on a cluster, or on a Ray of its own that ends when the engine is closed."""

    name = "ray"

    def __init__(
        self,
        address: str | None = None,
        *,
        memory: float | None = None,
        workers: int | None = None,
        scratch: str | os.PathLike[str] | None = None,
    ) -> None:
        """`memory` is for each worker, in gigabytes; `workers` and `scratch`, where Ray keeps what
        does not fit in memory, are for a Ray that is started here."""
        if memory is not None:
            SettingError.unless(memory >= LEAST, "memory", memory, f"at least {LEAST:g} (GB)")
            self.room = int(SHARE * (memory * 1e9 - BASE))
        self.homes = list[str]()  # directories that go in the end
        if address is None:
            self._start(memory, workers, scratch)
        else:
            self._join(address)
        nodes: Any = ray.nodes()  # type: ignore[no-untyped-call]
        self.workers = max(1, int(sum(node["Resources"].get("CPU", 0) for node in nodes)))
        self._work = ray.remote(max_retries=RETRIES)(work)

    def _start(
        self, memory: float | None, workers: int | None, scratch: str | os.PathLike[str] | None
    ) -> None:
        _check_free()
        where = tempfile.gettempdir() if scratch is None else os.fspath(scratch)
        remedy = "choose another directory for temporary files (--scratch)"
        with refused("cannot be used for temporary files", where, remedy):
            spilled = tempfile.mkdtemp(prefix="rankone-", dir=where)
            self.homes.append(spilled)
            # sockets, whose names may have 107 letters, and so not in a directory of the user
            self.homes.append(tempfile.mkdtemp(prefix="rankone-"))
        store = None if memory is None else max(LEAST_STORE, int(STORE * memory * 1e9))
        try:
            ray.init(
                address="local",
                num_cpus=workers,
                object_store_memory=store,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                _node_ip_address="127.0.0.1",
                _temp_dir=self.homes[-1],
                object_spilling_directory=spilled,
            )
        except BaseException as error:
            self.close()
            if not isinstance(error, Exception):
                raise
            raise ClusterError(
                f"Ray cannot be started ({_first_line(error)})",
                where=where,
                remedy=remedy + ", or the engine disk",
            ) from None

    def _join(self, address: str) -> None:
        _check_free()
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:
            raise ClusterError(
                f"not a Ray cluster that can be used ({_first_line(error)})",
                where=address,
                remedy=REMEDY,
            ) from None

    def put(self, table: Table) -> Ref:
        return Ref(ray.put(dict(table)))

    def take(self, ref: Ref) -> Table:
        with _lost():
            found: Table = ray.get(ref.held)
        return found

    def drop(self, refs: Iterable[Ref]) -> None:
        for ref in refs:
            ref.held = None  # Ray forgets what nobody refers to

    def share(self, value: Any) -> Shared:
        return Shared(ray.put(value))

    def _run(
        self,
        function: Callable[..., Any],
        calls: Sequence[Sequence[Any]],
        pieces: int | None,
        tell: Tell,
    ) -> list[list[Ref]]:
        count = 1 if pieces is None else pieces
        task = self._work.options(num_returns=1 + count, name=function.__name__)
        found, answers = list[list[Ref]](), list[Any]()
        for call in calls:
            stored: list[Any] = []
            spec = [_placed(argument, stored) for argument in call]
            answer, *tables = task.remote(function, pieces, spec, *stored)
            found.append([Ref(table) for table in tables])
            answers.append(answer)
        with _lost():
            open_ = answers
            while open_:
                ready, open_ = ray.wait(open_, timeout=1.0)
                for answer in ready:
                    if ray.get(answer) is not None:  # the first of all that fail, as in sequence
                        before = answers[: answers.index(answer) + 1]
                        raise next(error for error in ray.get(before) if error is not None)
                tell(1 - len(open_) / len(calls))
        return found

    def close(self) -> None:
        ray.shutdown()
        for home in self.homes:
            shutil.rmtree(home, ignore_errors=True)


def _check_free() -> None:
    if ray.is_initialized():
        raise SettingError("Ray runs in this process already", remedy="call ray.shutdown() before")


def work(
    function: Callable[..., Any], pieces: int | None, spec: list[Any], *stored: Any
) -> tuple[Any, ...]:
    """Call a function in a worker. The first result is what is wrong with its input, if anything
    is."""
    try:
        found = function(*(_filled(argument, stored) for argument in spec))
    except RankOneError as error:
        return (error, *[{}] * (1 if pieces is None else pieces))
    return (None, *([found] if pieces is None else found))


class Place:
    """Stands for an argument that is in the store."""

    def __init__(self, number: int) -> None:
        self.number = number


def _placed(argument: Any, stored: list[Any]) -> Any:
    """The argument with a place for everything that is in the store."""
    if isinstance(argument, Ref):
        stored.append(argument.held)
        return Place(len(stored) - 1)
    if isinstance(argument, list):
        return [_placed(item, stored) for item in argument]
    return argument


def _filled(argument: Any, stored: Sequence[Any]) -> Any:
    if isinstance(argument, Place):
        return stored[argument.number]
    return [_filled(item, stored) for item in argument] if isinstance(argument, list) else argument


@contextlib.contextmanager
def _lost() -> Iterator[None]:
    """What goes wrong with Ray, and not in a task, as an error of ours."""
    try:
        yield
    except ray.exceptions.RayTaskError:
        raise
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"the cluster failed ({_first_line(error)})",
            remedy="give workers more memory (--memory takes less of it), and start again",
        ) from None


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200] or type(error).__name__
