"""How this process computes while it trains: threads, and numbers too small to matter."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def arithmetic(threads: int) -> Iterator[None]:
    """So many threads of torch, and subnormal numbers taken as 0.

    Squares of small gradients are subnormal, and each takes as long as a hundred others.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(before)
