"""Corpora larger than memory: time and memory of commands with a limit, and what is moved about.

Made-up Zipf text is written to a file in pieces. Every command runs in processes of its own, whose
memory is added up twenty times a second; the largest sum counts. At the smaller sizes it runs
without a limit, too, and what it writes must be the same. Then the bytes that every step keeps or
sends are counted, and from these the table of docs/engines.md is made.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

import common
import rankone
from rankone.corpus.contexts import by_token
from rankone.corpus.read_parts import read_parts
from rankone.corpus.shuffle import errors_of
from rankone.engines import Ref, Table, open_engine
from rankone.engines.here import Here

LIMIT = 4.0  # GB
CHUNK = 1_000_000  # tokens that are drawn at a time
ALONE = 10_000_000  # tokens: the same in memory, up to this size
TICK = 0.05  # seconds


def write_text(tokens: int, path: Path) -> None:
    """The text of `scaling.zipf_text`, drawn in pieces: their words and labels are alike."""
    words = int(40 * tokens**0.52)
    rng = np.random.default_rng(0)
    edges = np.cumsum(1 / (2.7 + np.arange(words)))
    usual = rng.choice(9, words, p=[0.8, *[0.025] * 8])
    several = rng.random(words) < 1 / 3
    with path.open("w") as file:
        for first in range(0, tokens, CHUNK):
            count = min(CHUNK, tokens - first)
            ids = np.searchsorted(edges, rng.random(count) * edges[-1])
            odd = several[ids] & (rng.random(count) < 3 / 40)
            labels = np.where(odd, rng.integers(0, 9, count), usual[ids])
            ends = rng.random(count) < 1 / 14.5
            file.writelines(
                f"w{word} L{label}\n\n" if end else f"w{word} L{label}\n"
                for word, label, end in zip(
                    ids.tolist(), labels.tolist(), ends.tolist(), strict=True
                )
            )


def run(*arguments: str | Path) -> tuple[float, float, dict[str, Any]]:
    """Seconds, the peak of the process tree in GB, and what the command prints."""
    started, peak = time.perf_counter(), 0
    with tempfile.TemporaryFile() as out:
        command = [sys.executable, "-m", "rankone", *map(str, arguments), "--json"]
        process = subprocess.Popen(command, stdout=out)
        tree = psutil.Process(process.pid)
        while process.poll() is None:
            held = sum(map(_held, _and_children(tree)))
            peak = max(peak, held)
            time.sleep(TICK)
        seconds = time.perf_counter() - started
        if process.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}")
        out.seek(0)
        return seconds, peak / 1e9, json.loads(out.read())


def _and_children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:  # it has ended
        return []


def _held(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def commands(text: Path, model: Path, labels: Path) -> dict[str, Sequence[str | Path]]:
    return {
        "inspect": ("inspect", text),
        "memorize": ("memorize", text, "--construction", "gated", "--out", model),
        "certify": ("certify", model, text),
        "predict": ("predict", model, text, "--out", labels),
    }


def measure(tokens: int, folder: Path, limit: Sequence[str]) -> list[list[str]]:
    """A row for each command; what it says and writes must be the same without the limit."""
    text, rows = folder / "text.conll", []
    write_text(tokens, text)
    model, labels = folder / "model", folder / "labels"
    for name, command in commands(text, model, labels).items():
        seconds, peak, found = run(*command, *limit, "--scratch", folder)
        same = "not run in memory"
        if tokens <= ALONE:
            other, again = folder / "model-in-memory", folder / "labels-in-memory"
            if name == "certify":
                again = folder / "certificate-in-memory"
                plain = run(*command, "--out", again)[2]
            else:
                plain = run(*commands(text, other, again)[name])[2]
            same = "yes" if bare(plain) == bare(found) else "NO"
            if name == "memorize":
                one, two = (place / "model.safetensors" for place in (model, other))
                same = "yes" if filecmp.cmp(one, two, shallow=False) else "NO"
            if name == "predict":
                same = "yes" if filecmp.cmp(labels, again, shallow=False) else "NO"
        each = f"{1e6 * seconds / tokens:.2f}"
        rows.append([f"{tokens:,}", name, f"{seconds:.0f} s", each, f"{peak:.2f} GB", same])
        print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
    return rows


def bare(found: dict[str, Any]) -> dict[str, Any]:
    """What a command prints, without times and places."""
    return {
        name: x for name, x in found.items() if name not in ("seconds", "files", "float_distance")
    }


class Counting(Here):
    """Counts the bytes of tables, by the function that made them."""

    def __init__(self) -> None:
        self.bytes, self.now = Counter[str](), "put"

    def put(self, table: Table) -> Ref:
        self.bytes[self.now] += sum(column.nbytes for column in table.values())
        return super().put(table)

    def _run(self, function: Any, *rest: Any) -> list[list[Ref]]:
        self.now = function.__name__
        return super()._run(function, *rest)


def moved(tokens: int, folder: Path) -> list[list[str]]:
    """The bytes of every step, for each token."""
    text, rows = folder / "moved.conll", []
    write_text(tokens, text)
    for name in ("read", "inspect", "memorize"):
        engine = Counting()
        corpus = read_parts(text, engine)
        if name != "read":
            engine.bytes.clear()
        if name == "inspect":
            rankone.inspect(corpus)
        elif name == "memorize":
            rankone.memorize(corpus, construction="gated")
        rows += [[name, step, f"{count / tokens:.2f}"] for step, count in engine.bytes.items()]
        rows.append([name, "all", f"{sum(engine.bytes.values()) / tokens:.1f}"])
    return rows


def beside_ray_data(tokens: int, folder: Path) -> list[list[str]]:
    """How many errors the word alone must make: our tasks, and Ray Data with its hash shuffle."""
    text = folder / "shuffled.conll"
    write_text(tokens, text)
    with open_engine("ray", workers=2) as engine:
        import ray.data  # not before the engine has set it up

        engine.room = 100_000_000
        parts = read_parts(text, engine)
        columns = [parts.part(number) for number in range(len(parts.parts))]
        tables = [pa.table({"word": c.token_ids, "label": c.label_ids}) for c in columns]
        context = ray.data.DataContext.get_current()
        context.shuffle_strategy = ray.data.context.ShuffleStrategy.HASH_SHUFFLE
        context.enable_progress_bars = False
        data, found = ray.data.from_arrow(tables), set[int]()

        def theirs() -> None:
            counts = data.groupby(["word", "label"], num_partitions=4).count().to_pandas()
            each = counts.groupby("word")["count()"].agg(["sum", "max"])
            found.add(int((each["sum"] - each["max"]).sum()))

        works = {"rankone": lambda: found.add(errors_of(parts, by_token)), "Ray Data": theirs}
        rows = [[name, f"{common.best(work, 3):.1f} s"] for name, work in works.items()]
    if len(found) > 1:
        raise SystemExit(f"different answers: {found}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=float, nargs="*", default=[1e6, 1e7])
    parser.add_argument("--memory", default=str(LIMIT), help="GB")
    parser.add_argument("--engine", default="disk", choices=("disk", "ray"))
    parser.add_argument("--only", choices=("commands", "moved", "shuffle"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if given.only in (None, "commands"):
            limit = ["--memory", given.memory, "--engine", given.engine]
            rows = [row for n in given.tokens for row in measure(int(n), folder, limit)]
            head = ["tokens", "command", "time", "us per token", "peak", "the same in memory"]
            common.table(head, rows)
        if given.only in (None, "moved"):
            common.table(["command", "step", "bytes per token"], moved(1_000_000, folder))
        if given.only in (None, "shuffle"):
            common.table(
                ["3 million tokens, 2 workers", "best of 3"], beside_ray_data(3_000_000, folder)
            )


if __name__ == "__main__":
    main()
