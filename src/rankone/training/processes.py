"""What a run computes with: threads, a device, and the processes that torchrun starts."""

from __future__ import annotations

import contextlib
import os
import reprlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, distributed

from rankone.errors import RankOneError, SettingError, TrainingError
from rankone.plural import plural

T = TypeVar("T")
CPU = torch.device("cpu")
MOST_THREADS = max(64, os.cpu_count() or 1)  # a run may be resumed on a machine with fewer cores


@dataclass(frozen=True)
class Processes:
    """This is process ``rank`` of ``world``; it computes on ``device``."""

    rank: int = 0
    world: int = 1
    device: torch.device = CPU

    @property
    def first(self) -> bool:
        """Whether this one writes and prints for all."""
        return self.rank == 0

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their sums over all processes; one message for all of them."""
        if self.world > 1:
            flat = torch.cat([x.reshape(-1) for x in tensors])
            distributed.all_reduce(flat)
            for x, total in zip(
                tensors, torch.split(flat, [x.numel() for x in tensors]), strict=True
            ):
                x.copy_(total.view_as(x))

    def agree(self, tensors: Sequence[Tensor]) -> None:
        """Everybody takes the values of the first process."""
        if self.world > 1:
            for x in tensors:
                distributed.broadcast(x, 0)

    def first_does(self, work: Callable[[], T]) -> T | None:
        """Let the first process do the work for all. If it raises an error, all of them end."""
        value, refusal = None, None
        if self.first:
            try:
                value = work()
            except RankOneError as error:
                refusal = error
        if self.tell(refusal is not None):
            raise refusal or TrainingError("the first process has said why")
        return value

    def tell(self, value: T) -> T:
        """The value that the first process has."""
        if self.world == 1:
            return value
        held = [value]
        distributed.broadcast_object_list(held, 0)
        return held[0]


@contextlib.contextmanager
def join(device: str) -> Iterator[Processes]:
    """The processes that torchrun started, or this one alone; gloo on CPUs, NCCL on GPUs."""
    try:
        chosen = torch.device(device)
        if chosen.type == "cuda" and not torch.cuda.is_available():
            raise RuntimeError("torch sees no GPU")
        world = int(os.environ.get("WORLD_SIZE", "1"))
        if chosen.type == "cuda" and world > 1:
            chosen = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(chosen)
        if chosen.type == "cpu" and chosen.index:
            raise RuntimeError("there is one CPU, whatever its cores")
        torch.empty(0, device=chosen)
        if chosen.type == "meta":
            raise RuntimeError("it holds no numbers")
    except (RuntimeError, AssertionError, ImportError) as error:
        why = str(error).splitlines()[0].partition(". ")[0]  # torch may write pages
        raise SettingError(
            f"cannot compute on {reprlib.repr(device)} ({why})", remedy="give --device cpu"
        ) from None
    if world == 1:
        yield Processes(device=chosen)
        return
    try:
        distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    except ValueError:
        raise TrainingError(
            f"WORLD_SIZE is {world}, but this process does not know the others",
            remedy="start it with torchrun, or unset WORLD_SIZE",
        ) from None
    try:
        yield Processes(distributed.get_rank(), world, chosen)
    finally:
        distributed.destroy_process_group()


@contextlib.contextmanager
def arithmetic(threads: int) -> Iterator[None]:
    """Set the number of torch's threads, and treat subnormal numbers as 0.

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
    """Refuse more threads than a machine can start: torch would end the process."""
    cores = plural(os.cpu_count() or 1, "core")
    wanted = f"a whole number from 1 to {MOST_THREADS}; this machine has {cores}"
    sound = type(threads) is int and 1 <= threads <= MOST_THREADS
    SettingError.unless(sound, "threads", threads, wanted)
    return threads
