"""Ceilings for text: how long they take, and that they are what dictionaries count.

Made-up Zipf text of 10 million tokens, some of its passages copied; the same text twice; and a
single token over and over. The floor is one sort of as many numbers. Every text has a process of
its own, so that the peak of its memory can be read. With --text FILE, the ceilings of a text of
yours.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from math import log2
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import common
import rankone
from rankone.audit.texts.figures import text_figures
from rankone.audit.texts.suffixes import Suffixes

TOKENS = 10_000_000
SAMPLE = 200_000  # for dictionaries
LINE = 12  # words


def zipf(tokens: int, copies: int = 300, seed: int = 0) -> np.ndarray:
    """Words as numbers, with copies of passages of 10 to 2,000 of them."""
    rng = np.random.default_rng(seed)
    words = int(40 * tokens**0.45)
    share = np.cumsum(1 / (2.7 + np.arange(words)))
    ids = np.searchsorted(share / share[-1], rng.random(tokens))
    for length in rng.integers(10, 2000, copies * tokens // TOKENS).tolist():
        here, there = rng.integers(0, tokens - length, 2)
        ids[there : there + length] = ids[here : here + length]
    return ids


def write(ids: np.ndarray, path: Path) -> None:
    """As lines of words; the end of a line is a token, too."""
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, len(ids), LINE - 1):
            line = ids[start : start + LINE - 1].tolist()
            file.write(" ".join(f"w{word}" for word in line) + "\n")


TEXTS: dict[str, Callable[[int], np.ndarray]] = {
    "Zipf": lambda tokens: zipf(tokens),
    "the same twice": lambda tokens: np.tile(zipf(tokens // 2), 2),
    "one token over and over": lambda tokens: np.zeros(tokens, dtype=np.int64),
}


def measure(path: str, repeat: int = 3) -> dict[str, float]:
    """Seconds and memory of one text, in this process."""
    text_figures(rankone.Corpus.from_texts(["a b a"]))  # compiled
    started = time.perf_counter()
    corpus = rankone.read_corpus(path, task="next")
    read = time.perf_counter() - started
    peak = common.resident("VmHWM")
    numbers = np.random.default_rng(0).integers(0, 1 << 40, corpus.n_tokens)
    found = {
        "tokens": corpus.n_tokens,
        "read": read,
        "sort": common.best(lambda: np.argsort(numbers), repeat),
        "suffixes": common.best(lambda: Suffixes.of(corpus), repeat),
        "ceilings": common.best(lambda: text_figures(corpus), repeat),
    }
    started = time.perf_counter()
    rankone.inspect(corpus)
    found["inspect"] = time.perf_counter() - started
    found["held"] = peak / corpus.n_tokens
    found["more"] = (common.resident("VmHWM") - peak) / corpus.n_tokens
    return found


def dictionaries(corpus: rankone.Corpus, window: int) -> tuple[int, int, float]:
    """Determined tokens, errors and bits per token of one window, by counting."""
    seen: defaultdict[Hashable, Counter[int]] = defaultdict(Counter)
    ids, labels = corpus.token_ids.tolist(), corpus.label_ids.tolist()
    for i, label in enumerate(labels):  # one document
        seen[tuple(ids[max(i + 1 - window, 0) : i + 1])][label] += 1
    bits = sum(-n * log2(n / c.total()) for c in seen.values() for n in c.values())
    determined = sum(c.total() for c in seen.values() if len(c) == 1)
    errors = sum(c.total() - max(c.values()) for c in seen.values())
    return determined, errors, bits / len(labels)


def compare_with_dictionaries() -> tuple[float, float]:
    """The largest difference in bits, and how many times longer dictionaries take."""
    words = [f" w{word}" for word in zipf(SAMPLE, 300 * TOKENS // SAMPLE).tolist()]
    corpus = rankone.Corpus.from_texts(["".join(words)], window=64)
    seconds = common.best(lambda: text_figures(corpus), 3)
    figures, _ = text_figures(corpus)
    started, differences = time.perf_counter(), [0.0]
    for row in figures.ceilings[:-1]:
        determined, errors, bits = dictionaries(corpus, row.window)
        if (row.determined, row.errors) != (determined, errors):
            raise SystemExit(f"window {row.window}: {row} but {determined}, {errors} by counting")
        differences.append(abs(row.bits - bits))
    return max(differences), (time.perf_counter() - started) / seconds


def show_text(path: str) -> None:
    """A table of the ceilings of a text."""
    corpus = rankone.read_corpus(path, task="next")
    figures = rankone.inspect(corpus).text
    assert figures is not None
    print(f"{corpus.n_tokens:,} tokens, {len(corpus.vocabulary):,} different ones")
    print(f"windows of {figures.enough:,} say as much as prefixes\n")
    rows = [
        [
            f"{row.window:,}" if row.window else "prefix",
            f"{row.contexts:,}",
            f"{row.determined:,}",
            f"{row.accuracy:.4%}",
            f"{row.bits:.4g}",
            f"{row.perplexity:.6g}",
        ]
        for row in figures.ceilings
    ]
    header = ["contexts", "determined", "accuracy", "bits per token", "perplexity"]
    common.table(["window", *header], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--text", help="show the ceilings of this text, and measure nothing")
    asked = parser.parse_args()
    if asked.text is not None:
        show_text(asked.text)
        return
    rows, results = [], []
    with TemporaryDirectory() as folder:
        for name, make in TEXTS.items():
            path = Path(folder) / "text.txt"
            write(make(asked.tokens), path)
            found = common.fresh(measure, str(path))
            results.append(found)
            rows.append(
                [
                    f"{name}, {found['tokens']:,} tokens",
                    *(f"{found[key]:.1f}" for key in ("read", "inspect", "ceilings")),
                    common.ratio(found["suffixes"], found["sort"]),
                    common.ratio(found["ceilings"], found["sort"]),
                    *(f"{found[key]:.0f}" for key in ("held", "more")),
                ]
            )
    header = ["read, s", "inspect, s", "ceilings, s", "suffixes / one sort"]
    header += ["ceilings / one sort", "bytes per token read", "more to inspect"]
    common.table(["text", *header], rows)
    difference, times = compare_with_dictionaries()
    print(
        f"{SAMPLE:,} tokens, windows 1, 2, 4, ... 64: bits differ by {difference:.0e} at most from"
    )
    print(f"those of dictionaries, which take {times:,.0f} times as long\n")
    slowest = max(found["read"] + found["inspect"] for found in results)
    common.against(
        ("seconds for 10 million tokens, read and inspected", "at most", 60, slowest),
        ("difference in bits", "at most", 1e-9, difference),
    )


if __name__ == "__main__":
    main()
