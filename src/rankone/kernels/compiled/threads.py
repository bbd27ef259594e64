"""Compiled loops on several threads; they release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import torch


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="rankone")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def count() -> int:
    """As many threads as torch would use."""
    return torch.get_num_threads()


def share(work: Callable[[Any], Any], tasks: Iterable[Any], threads: int) -> list[Any]:
    """``work(task)`` for each task, in the order of the tasks, whichever thread took which.

    This thread is one of them. The others may come late, as torch's own threads linger for a while
    after their work is done, and hold the cores; those that have not begun at the end are let go.
    """
    tasks = list(tasks)
    found: list[Any] = [None] * len(tasks)
    source = iter(enumerate(tasks))

    def some() -> None:
        for i, task in source:
            found[i] = work(task)

    others = [_pool(threads - 1).submit(some) for _ in range(1, min(threads, len(tasks)))]
    some()
    for other in others:
        if not other.cancel():
            other.result()
    return found


def run(work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> None:
    """``work(*task)`` for each task."""
    share(lambda task: work(*task), tasks, count())


def pieces(first: int, last: int, length: int) -> Iterator[tuple[int, int]]:
    """The range in pieces of at most that length."""
    for a in range(first, last, length):
        yield a, min(a + length, last)


def parts(first: int, last: int, least: int, most: int) -> Iterator[tuple[int, int]]:
    """The range in as many equal parts, a power of two, as are no shorter than `least`.

    Their number depends on nothing but the range: sums taken part by part, and then of the parts
    in their order, are the same bits on any number of threads.
    """
    count = 1
    while count < most and 2 * count * least <= last - first:
        count *= 2
    cuts = [first + (last - first) * i // count for i in range(count + 1)]
    return pairwise(cuts)
