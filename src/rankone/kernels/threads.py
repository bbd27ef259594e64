"""Compiled loops on several threads; they release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="rankone")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def count() -> int:
    """As many threads as torch would use."""
    return torch.get_num_threads()


def share(work: Callable[[Iterator[Any]], Any], tasks: Iterable[Any], threads: int) -> list[Any]:
    """What ``work(tasks)`` returns on each thread, all of them taking tasks from one iterator.

    This thread is one of them. The others may come late, as torch's own threads linger for a while
    after their work is done, and hold the cores; those that have not begun at the end are let go.
    """
    source = iter(list(tasks))
    others = [_pool(threads - 1).submit(work, source) for _ in range(1, threads)]
    own = work(source)
    return [own, *(other.result() for other in others if not other.cancel())]


def run(work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> None:
    """``work(*task)`` for each task."""
    tasks = list(tasks)

    def some(source: Iterator[tuple[Any, ...]]) -> None:
        for task in source:
            work(*task)

    share(some, tasks, min(count(), len(tasks)))


def pieces(first: int, last: int, length: int) -> Iterator[tuple[int, int]]:
    """The range in pieces of at most that length."""
    for a in range(first, last, length):
        yield a, min(a + length, last)
