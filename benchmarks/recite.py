"""Reciting: tokens a second on one thread, and that labels are those of the whole text at once.

The built-in story, or the first words of a text of yours (--text FILE --tokens 100000), with a
window and by documents, in both precisions. Every token is a step of its own, from the state that
the last one left; the same labels are predicted for the whole text at once, for comparison. Seconds
are those of the thread.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import common
import rankone
from rankone.recitation.reciter import Reciter

WHOLE: dict[str, Any] = {"window": 0}
MODES = {"window": {}, "documents": WHOLE, "blocks": {**WHOLE, "blocks": True}}
REPEAT = 5


def measure(text: str, tokens: int, reading: dict[str, Any], dtype: str) -> dict[str, float] | str:
    """Figures of one model; a refusal of `memorize` instead."""
    corpus = rankone.read_corpus(text, task="next", **reading)
    if corpus.n_tokens > tokens:
        ends = np.append(corpus.offsets[corpus.offsets < tokens], tokens)
        words = [corpus.vocabulary[i] for i in corpus.token_ids[:tokens].tolist()]
        begins = int(corpus.window > 0)
        texts = ["".join(words[a + begins : b]) for a, b in pairwise(ends.tolist())]
        corpus = rankone.Corpus.from_texts([x for x in texts if x], window=corpus.window)
    try:
        model = rankone.memorize(corpus, dtype=dtype).model
    except rankone.RankOneError as refusal:
        return refusal.what
    reciter, found = Reciter(model), np.empty(corpus.n_tokens, np.int64)

    def recite() -> None:
        for a, b in pairwise(corpus.offsets.tolist()):
            reciter.begin()
            found[a:b] = reciter.follow(corpus.token_ids[a:b])

    seconds = min(thread_seconds(recite) for _ in range(REPEAT))
    started = time.thread_time()
    wanted = model.label_ids(corpus.token_ids, corpus.offsets)
    batch = time.thread_time() - started
    return {
        "tokens": corpus.n_tokens,
        "units": model.network.shape.hidden,
        "rate": corpus.n_tokens / seconds,
        "batch": batch / seconds,
        "other": int((found != wanted).sum()),
    }


def thread_seconds(work: Callable[[], None]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", default="story", help="a text file, or the story")
    parser.add_argument("--tokens", type=int, default=100_000, help="of the text, at most")
    parser.add_argument("--window", type=int, default=16)
    asked = parser.parse_args()
    rows, targets = [], []
    for mode, reading in MODES.items():
        for dtype in ("float64", "float32"):
            given = {"window": asked.window, **reading}
            found = measure(asked.text, asked.tokens, given, dtype)
            if isinstance(found, str):
                rows.append([f"{mode}, {dtype}", "refused", "", "", "", ""])
                continue
            rows.append(
                [
                    f"{mode}, {dtype}",
                    f"{found['tokens']:,}",
                    f"{found['units']:,}",
                    f"{found['rate']:,.0f}",
                    f"{found['batch']:.2f}",
                    f"{found['other']:,}",
                ]
            )
            name = f"{mode}, {dtype}"
            targets.append((f"{name}: tokens a second", "at least", 50_000, found["rate"]))
            targets.append((f"{name}: other labels", "at most", 0, found["other"]))
    header = ["model", "tokens", "hidden units", "tokens a second"]
    common.table([*header, "whole text at once / step by step", "other labels"], rows)
    common.against(*targets)


if __name__ == "__main__":
    main()
