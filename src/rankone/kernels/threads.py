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


def run(work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> list[Any]:
    """``[work(*task) for task in tasks]``, shared among this thread and others."""
    tasks = list(tasks)
    shares = min(count(), len(tasks))

    def share(i: int) -> list[Any]:
        return [work(*task) for task in tasks[i::shares]]

    if shares < 2:
        return share(0) if tasks else []
    others = [_pool(shares - 1).submit(share, i) for i in range(1, shares)]
    parts = [share(0), *(other.result() for other in others)]
    return [parts[i % shares][i // shares] for i in range(len(tasks))]


def pieces(first: int, last: int, parts: int) -> Iterator[tuple[int, int]]:
    """The range cut into so many, each as long as the others but for one."""
    for i in range(parts):
        a, b = (first + (last - first) * (i + j) // parts for j in (0, 1))
        if a < b:
            yield a, b
