"""How this process computes while it trains: threads, and numbers too small to matter."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch

from rankone.errors import TrainingError
from rankone.plural import plural
from rankone.train.settings import short

MOST = max(64, os.cpu_count() or 1)  # a run may go on on a machine with fewer cores


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


def check_threads(threads: int) -> int:
    """Refuse what no machine can start: torch would end the process."""
    if type(threads) is not int or not 1 <= threads <= MOST:
        raise TrainingError(
            f"threads cannot be {short(threads)}",
            remedy=f"give a whole number from 1 to {MOST}; this machine has "
            f"{plural(os.cpu_count() or 1, 'core')}",
        )
    return threads
