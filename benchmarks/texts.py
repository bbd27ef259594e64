"""Texts: how long they take to memorize, and that cross-entropies are entropies.

The words of the built-in sentences, or with --text FILE a text of yours. For windows of several
sizes, and for prefixes (0), in both types: seconds, units, wrong tokens, and by how many nats per
token the cross-entropy of the model differs from the conditional entropy of the text. What a model
cannot hold is shown as that.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import common
import rankone

WINDOWS = (0, 1, 2, 4, 8, 32)
TYPES = ("float64", "float32")
SENTENCES = 2_000  # of the built-in corpus
WARM = ["a b a c", "a b b c d"]


def built_in() -> str:
    """The words of the built-in corpus, a line for each sentence."""
    return "".join(" ".join(s.tokens) + "\n" for s in rankone.builtin_corpus(SENTENCES).sentences)


def measure(path: str, window: int, dtype: str, reading: dict[str, Any]) -> dict[str, float | str]:
    """One model, in this process."""
    for k in (0, 2):  # compiled
        rankone.memorize(rankone.Corpus.from_texts(WARM, window=k), dtype=dtype)
    corpus = rankone.read_corpus(path, task="next", window=window, **reading)
    figures = rankone.inspect(corpus).text
    assert figures is not None
    row = figures.ceiling(window)
    found: dict[str, float | str] = {"tokens": row.tokens, "bits": row.bits}
    try:
        made = rankone.memorize(corpus, dtype=dtype)
    except rankone.RankOneError as error:
        return {**found, "refused": type(error).__name__}
    losses = made.model.losses(corpus).astype(np.float64)
    if made.wrong != row.errors:
        raise SystemExit(f"window {window}: {made.wrong} wrong tokens, and {row.errors} have to be")
    return {
        **found,
        "seconds": sum(made.seconds[name] for name in ("construct", "verify", "dense")),
        "units": made.hidden_units,
        "wrong": made.wrong,
        "dim": made.model.network.shape.dim,
        "nats": float(np.nanmean(losses)) - row.bits * float(np.log(2)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", help="a text of yours")
    parser.add_argument("--tokenizer", default="words")
    parser.add_argument("--blocks", action="store_true", help="documents are blocks of lines")
    asked = parser.parse_args()
    reading = {"tokenizer": asked.tokenizer, "blocks": asked.blocks}
    rows, differences, tokens = [], [0.0], 0.0
    with TemporaryDirectory() as folder:
        path = asked.text or str(Path(folder) / "text.txt")
        if asked.text is None:
            Path(path).write_text(built_in(), encoding="utf-8")
        for window in WINDOWS:
            for dtype in TYPES:
                found = common.fresh(measure, path, window, dtype, reading)
                tokens = found["tokens"]
                row = [f"{window or 'prefix'}", dtype, f"{found['bits']:.4f}"]
                if "refused" in found:
                    rows.append([*row, *4 * ["-"], found["refused"]])
                    continue
                differences.append(abs(found["nats"]))
                row += [f"{found['seconds']:.2f}", f"{found['units']:,}", f"{found['dim']:,}"]
                rows.append([*row, f"{found['wrong']:,}", f"{found['nats']:.0e}"])
    print(f"{tokens:,} tokens\n")
    header = ["window", "type", "bits per token", "seconds", "hidden units", "dimension", "wrong"]
    common.table([*header, "cross-entropy - entropy, nats"], rows)
    common.against(
        ("largest difference, millionths of a nat", "at most", 1, 1e6 * max(differences))
    )


if __name__ == "__main__":
    main()
