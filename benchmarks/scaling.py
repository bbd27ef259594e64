"""How time and memory grow with the corpus: made-up Zipf text of 0.2, 1 and 5 million tokens.

Words follow Zipf's law, and new ones come up less and less often (Heaps' law). As in CoNLL-2003
the words that have several labels make up a third of the text, and one token in forty does not
have its word's usual label; with --all every word has several. Every size runs in a process of its
own, so that the peak of its memory can be read; what Python and torch take before anything is
read is subtracted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import common

SIZES = (200_000, 1_000_000, 5_000_000)
ROUNDS = 3


def zipf_text(
    tokens: int, *, every_word: bool = False, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words and labels as numbers, and where sentences end."""
    rng = np.random.default_rng(seed)
    words = int(40 * tokens**0.52)
    share = 1 / (2.7 + np.arange(words))
    ids = rng.choice(words, tokens, p=share / share.sum())
    usual = rng.choice(9, words, p=[0.8, *[0.025] * 8])
    several = rng.random(words) < (1 if every_word else 1 / 3)
    unusual = rng.random(tokens) < (1 / 40 if every_word else 3 / 40)
    labels = np.where(several[ids] & unusual, rng.integers(0, 9, tokens), usual[ids])
    return ids, labels, rng.random(tokens) < 1 / 14.5


def zipf_file(tokens: int, path: str, *, every_word: bool = False, seed: int = 0) -> None:
    """Write a CoNLL file of so many tokens."""
    ids, labels, ends = zipf_text(tokens, every_word=every_word, seed=seed)
    words = np.array([f"w{word}" for word in range(int(ids.max()) + 1)], dtype=object)
    rests = np.array(
        [f" L{label}\n{end}" for end in ("", "\n") for label in range(9)], dtype=object
    )
    with open(path, "w", encoding="utf-8") as file:
        for at in range(0, tokens, 1 << 20):  # a row is a word and the rest of the line
            part = slice(at, at + (1 << 20))
            rows = np.stack([words[ids[part]], rests[labels[part] + 9 * ends[part]]], axis=1)
            file.write("".join(rows.ravel().tolist()))


def memory(figure: str) -> int:
    """What this process holds (VmRSS) or ever held (VmHWM), in bytes; Linux only."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split(f"{figure}:")[1].split()[0])


def measure(path: str) -> None:
    """One size, in this process."""
    import rankone
    from rankone import construct  # noqa: F401 - torch and numpy are loaded before the base is read

    base = memory("VmRSS")
    corpus = rankone.read_corpus(path)
    results = [rankone.memorize(corpus) for _ in range(5)]
    peak = memory("VmHWM")
    figures = results[-1].to_json()
    figures["seconds"] = {
        stage: min(result.seconds[stage] for result in results) for stage in figures["seconds"]
    }
    figures["words"] = len(corpus.vocabulary)
    figures["bytes_per_token"] = (peak - base) / corpus.n_tokens
    del figures["conflicts"]
    print(json.dumps(figures))


def in_a_process_of_its_own(path: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", path]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=True).stdout
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--all", action="store_true", help="every word has several labels")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    figures: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            zipf_file(size, f"{folder}/{size}.conll", every_word=arguments.all)
        for _ in range(ROUNDS):  # in turns: a shared machine is slower at one time than at another
            for size in SIZES:
                found = in_a_process_of_its_own(f"{folder}/{size}.conll")
                before = figures.setdefault(size, found)["seconds"]
                for stage, t in found["seconds"].items():
                    before[stage] = min(before[stage], t)

    def growth(found: dict[str, Any], *stages: str) -> str:
        def per_token(figures: dict[str, Any]) -> float:
            return sum(figures["seconds"][stage] for stage in stages) / float(figures["tokens"])

        return f"{per_token(found) / per_token(figures[SIZES[0]]):.2f}"

    common.table(
        [
            "tokens",
            "words",
            "wrong (unavoidable)",
            "hidden units",
            "error",
            "read",
            "construct",
            "verify",
            "growth: read",
            "construct + verify",
            "all",
            "bytes per token",
        ],
        [
            [
                f"{found['tokens']:,}",
                f"{found['words']:,}",
                f"{found['wrong']:,} ({found['unavoidable']:,})",
                f"{found['hidden_units']:,}",
                f"{max(found['max_error'], found['dense_error']):.0e}",
                *(f"{found['seconds'][stage]:.3f} s" for stage in ("read", "construct", "verify")),
                growth(found, "read"),
                growth(found, "construct", "verify"),
                growth(found, "read", "construct", "verify"),
                f"{found['bytes_per_token']:.0f}",
            ]
            for found in figures.values()
        ],
    )
    print("Growth is the time per token relative to the smallest corpus: 1 is linear.")


if __name__ == "__main__":
    main()
