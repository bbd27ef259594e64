"""What all benchmarks share: the best of several runs, tables, and where the corpora are."""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path

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


def data_folder(description: str) -> Path:
    """The folder of the corpora, from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, default=SHARED, help="folder with the three corpora")
    folder: Path = parser.parse_args().data
    if not folder.is_dir():
        parser.error(f"no corpora in {folder}: name their folder with --data")
    return folder
