"""Reading: beside pyarrow's reader of CSV, memory per token, and the way from the shell.

pyarrow reads the same two columns of the same files as dictionaries, without line numbers, and
skips rows of other widths. Both take one thread, in turns; the best of several counts.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

import common
import rankone
import scaling

TIMES = 20  # each corpus follows itself so often
ROUNDS = 7
TOKENS = 30_000_000
FILES = (  # name, separator, columns, those of tokens and labels
    ("conll2003/eng.train", " ", 4, ("0", "3")),
    ("wnut17/wnut17train.conll", "\t", 2, ("0", "1")),
    ("ud-english-ewt/en_ewt-ud-train.conllu.gz", "\t", 10, ("1", "3")),
    ("made-up", " ", 2, ("0", "1")),
)


def with_pyarrow(path: Path, separator: str, width: int, wanted: tuple[str, str]) -> pa.Table:
    """The two columns as dictionaries."""
    kind = pa.dictionary(pa.int32(), pa.string())
    return csv.read_csv(
        path,
        csv.ReadOptions(use_threads=False, column_names=[str(i) for i in range(width)]),
        csv.ParseOptions(
            delimiter=separator, quote_char=False, invalid_row_handler=lambda _: "skip"
        ),
        csv.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, kind),
            strings_can_be_null=False,
        ),
    )


def in_turns(*works: Callable[[], object]) -> list[float]:
    """The shortest time of each."""
    shortest = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        shortest = [min(t, common.best(work, 1)) for t, work in zip(shortest, works, strict=True)]
    return shortest


def copy_of(name: str, data: Path, folder: Path) -> Path:
    """A large file in a folder of its own."""
    path = folder / Path(name).name.removesuffix(".gz")
    if name == "made-up":
        scaling.zipf_file(3_000_000, str(path))
        return path
    found = (data / name).read_bytes()
    path.write_bytes((gzip.decompress(found) if name.endswith(".gz") else found) * TIMES)
    return path


def beside_pyarrow(data: Path, folder: Path) -> float:
    rows, ratios = [], []
    for name, separator, width, wanted in FILES:
        path = copy_of(name, data, folder)
        theirs, ours = in_turns(
            lambda path=path, how=(separator, width, wanted): with_pyarrow(path, *how),
            lambda path=path: rankone.read_corpus(path),
        )
        tokens = rankone.read_corpus(path).n_tokens
        ratios.append(ours / theirs)
        per_token = (f"{1e9 * t / tokens:.0f} ns" for t in (theirs, ours))
        rows.append([path.name, f"{tokens:,}", *per_token, f"{ratios[-1]:.2f}"])
    common.table(["file", "tokens", "pyarrow", "rankone", "ratio"], rows)
    return max(ratios)


def bytes_per_token(path: str) -> float:
    """The most memory while a file is read, beyond what the process has with its imports."""
    from rankone.corpus import scan  # noqa: F401 - numba is loaded before

    before = common.resident("VmRSS")
    corpus = rankone.read_corpus(path)
    return (common.resident("VmHWM") - before) / corpus.n_tokens


def from_the_shell(data: Path, folder: Path) -> float:
    train = str(data / "conll2003" / "eng.train")
    out = ["--out", str(folder / "model"), "--quiet"]
    commands = (["-c", "import torch"], ["-m", "rankone", "memorize", train, *out])

    def run(command: list[str]) -> None:
        subprocess.run([sys.executable, *command], check=True)

    bare, whole = in_turns(*(lambda command=command: run(command) for command in commands))
    common.table(
        ["import torch", "memorize eng.train", "ratio"],
        [[f"{bare:.3f} s", f"{whole:.3f} s", f"{whole / bare:.2f}"]],
    )
    return whole / bare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=common.SHARED, help="folder with the corpora")
    data: Path = parser.parse_args().data
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        slowest = beside_pyarrow(data, folder)
        scaling.zipf_file(TOKENS, str(folder / "large.conll"))
        held = common.fresh(bytes_per_token, str(folder / "large.conll"))
        start = from_the_shell(data, folder)
    common.against(
        ("time beside pyarrow, the slowest file", "at most", 1.5, slowest),
        (f"bytes per token, {TOKENS:,} tokens", "at most", 32, held),
        ("memorize eng.train beside import torch", "at most", 1.2, start),
    )


if __name__ == "__main__":
    main()
