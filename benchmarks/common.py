"""What all benchmarks share: the best of several runs, tables, and where the corpora are."""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

PAUSE = 0.005  # torch's threads spin for a while after their work: not into the next one's time
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def best(work: Callable[[], object], repeat: int = 15) -> float:
    """The shortest of several runs in seconds: the machine is shared, the minimum is not noise."""
    shortest = float("inf")
    for _ in range(repeat):
        gc.collect()
        started = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - started)
    return shortest


def table(header: list[str], rows: list[list[str]]) -> None:
    """A Markdown table, so that it can go into the documentation as it is."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in [header, ["-" * width for width in widths], *rows]:
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("| " + " | ".join(cells) + " |")
    print()


def fresh(work: Callable[..., Any], *given: object, **environment: str) -> Any:
    """The result of `work` in a process of its own, with these variables set."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            return pool.submit(work, *given).result()
    finally:
        os.environ.clear()
        os.environ.update(before)


def ratio(a: float | None, b: float | None) -> str:
    if a is None or b is None:
        return "-"
    return f"{a / b:,.0f}" if a >= 100 * b else f"{a / b:.2f}"


def against(*targets: tuple[str, str, float, float]) -> None:
    """Targets (what, "at least" or "at most", bound, measured), each beside its figure."""
    rows = []
    for what, side, bound, measured in targets:
        met = measured >= bound if side == "at least" else measured <= bound
        verdict = "met" if met else "MISSED"
        rows.append([what, f"{side} {bound:g}", ratio(measured, 1.0), verdict])
    if rows:
        table(["target", "bound", "measured", ""], rows)


def resident(field: str) -> int:
    """Bytes, as Linux counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def data_folder(description: str) -> Path:
    """The folder of the corpora, from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, default=SHARED, help="folder with the three corpora")
    folder: Path = parser.parse_args().data
    if not folder.is_dir():
        parser.error(f"no corpora in {folder}: name their folder with --data")
    return folder
