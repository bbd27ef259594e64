"""Threads: the same bits on any number of them, errors that arrive, and nothing left undone."""

import threading
import time

import pytest
import torch

from kernels import attention_problems as hard
from rankone.kernels.compiled import batch, rectangle, threads

whether_causal = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])


@whether_causal
def test_the_bits_are_the_same_on_any_number_of_threads(causal, monkeypatch):
    """Scores small enough that one block holds a half, and keys that tie at both ends, whose values
    differ: which of them is taken to be the extreme one is part of the bits."""
    monkeypatch.setattr(batch, "LONG", 100)
    monkeypatch.setattr(rectangle, "PIECE", 1000)
    several = []

    def parts(*given):
        several.append(list(made(*given)))
        return iter(several[-1])

    made = threads.parts
    monkeypatch.setattr(threads, "parts", parts)
    problem = hard.random_problem(70_000, 0.1, causal=causal)
    problem.key.clamp_(-2.0, 2.0)
    grad = torch.randn(70_000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = []
    for count in (1, 2, 3, 2):
        monkeypatch.setattr(threads, "count", lambda count=count: count)
        found.append(hard.gradients(problem, grad, "linear"))
    assert max(map(len, several)) >= 4  # else there is nothing to add in another order
    for again in found[1:]:
        for part, first in zip(again, found[0], strict=True):
            assert torch.equal(part, first)


def test_results_come_in_the_order_of_the_tasks_whoever_is_quick():
    def work(task):
        time.sleep(0.002 * (task % 3 == 0))
        return task, threading.get_ident()

    found = threads.share(work, range(30), 3)
    assert [task for task, _ in found] == list(range(30))
    assert len({thread for _, thread in found}) > 1
    assert threads.share(work, [], 3) == []


@pytest.mark.parametrize("count", [1, 3])
def test_an_error_in_any_task_arrives(count):
    def work(task):
        time.sleep(0.001)
        if task == 7:
            raise rectangle.UnfitError

    with pytest.raises(rectangle.UnfitError):
        threads.share(work, range(20), count)


def test_every_task_is_run_once_with_its_arguments(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 3)
    done = []
    threads.run(lambda a, b: done.append((a, b)), ((i, -i) for i in range(50)))
    assert sorted(done) == [(i, -i) for i in range(50)]


@pytest.mark.parametrize(("first", "last", "length"), [(0, 10, 3), (5, 5, 3), (4, 7, 3), (4, 8, 3)])
def test_pieces_are_the_range_and_no_longer_than_asked_for(first, last, length):
    cut = list(threads.pieces(first, last, length))
    assert [i for a, b in cut for i in range(a, b)] == list(range(first, last))
    assert [b - a for a, b in cut[:-1]] == [length] * (len(cut) - 1)
    assert all(0 < b - a <= length for a, b in cut)


@pytest.mark.parametrize(
    ("size", "count"), [(1, 1), (19, 1), (20, 2), (39, 2), (40, 4), (79, 4), (80, 8), (10**6, 8)]
)
def test_parts_are_equal_and_none_is_too_short(size, count):
    cut = list(threads.parts(3, 3 + size, 10, 8))
    assert [i for a, b in cut for i in range(a, b)] == list(range(3, 3 + size))
    lengths = [b - a for a, b in cut]
    assert len(cut) == count
    assert max(lengths) - min(lengths) <= 1
