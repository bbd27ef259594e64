"""Compiled loops on several threads; they release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from threadpoolctl import ThreadpoolController


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="rankone")


@cache
def _blas() -> ThreadpoolController:
    """Found once: that takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def count() -> int:
    """As many threads as torch would use."""
    return torch.get_num_threads()


def share(work: Callable[[Any], Any], tasks: Iterable[Any], threads: int) -> list[Any]:
    """The results of ``work(task)`` in the order of the tasks, whichever thread did which.

    This thread takes part. The others may start late, since torch's own threads hold the cores for
    a while after their work is done; those that have not begun by the end are cancelled.
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


def alone() -> AbstractContextManager[Any]:
    """While this lasts, each product of matrices is computed by the thread that asks for it: those
    of a BLAS wait busily for each other, in vain where matrices are small or cores are shared."""
    limits: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limits


def products(work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> None:
    """The same for work that multiplies matrices."""
    with alone():
        run(work, tasks)


def pieces(first: int, last: int, length: int) -> Iterator[tuple[int, int]]:
    """The range in pieces of at most this length."""
    for a in range(first, last, length):
        yield a, min(a + length, last)


def parts(first: int, last: int, least: int, most: int) -> Iterator[tuple[int, int]]:
    """The range in equal parts no shorter than `least`: the largest power of two, up to `most`.

    The number of parts depends only on the range. So sums over each part, and then over the parts
    in order, have the same bits on any number of threads.
    """
    count = 1
    while count < most and 2 * count * least <= last - first:
        count *= 2
    cuts = [first + (last - first) * i // count for i in range(count + 1)]
    return pairwise(cuts)
