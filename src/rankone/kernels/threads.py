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
    """``work(*task)`` for each task, in order, as many at a time as there are threads."""
    tasks = list(tasks)
    if len(tasks) < 2 or count() < 2:
        return [work(*task) for task in tasks]
    return list(_pool(count()).map(lambda task: work(*task), tasks))


def pieces(first: int, last: int, parts: int) -> Iterator[tuple[int, int]]:
    """The range cut into so many, each as long as the others but for one."""
    for i in range(parts):
        a, b = (first + (last - first) * (i + j) // parts for j in (0, 1))
        if a < b:
            yield a, b
