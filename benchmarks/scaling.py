"""How time and memory grow with the corpus: made-up Zipf text of 0.2, 1 and 5 million tokens.

Words follow Zipf's law, a new one comes up less and less often (Heaps' law), and one token in
thirty does not have its word's usual label. Every size runs in a process of its own, so that the
peak of its memory can be read; what Python and torch take before anything is read is subtracted.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile

import numpy as np

import common

SIZES = (200_000, 1_000_000, 5_000_000)


def zipf_file(tokens: int, path: str, seed: int = 0) -> None:
    """Write a CoNLL file of about so many tokens."""
    rng = np.random.default_rng(seed)
    words = int(40 * tokens**0.52)
    share = 1 / (2.7 + np.arange(words))
    ids = rng.choice(words, tokens, p=share / share.sum())
    usual = rng.choice(9, words, p=[0.8, *[0.025] * 8])
    labels = np.where(rng.random(tokens) < 1 / 30, rng.integers(0, 9, tokens), usual[ids])
    ends = rng.random(tokens) < 1 / 14.5
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(
            f"w{word} L{label}\n\n" if end else f"w{word} L{label}\n"
            for word, label, end in zip(ids.tolist(), labels.tolist(), ends.tolist(), strict=True)
        )


def measure(path: str) -> None:
    """One size, in this process."""
    import rankone
    from rankone import construct  # noqa: F401 - torch and numpy are loaded before the base is read

    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    corpus = rankone.read_corpus(path)
    results = [rankone.memorize(corpus) for _ in range(3)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = results[-1].to_json()
    figures["seconds"] = {
        stage: min(result.seconds[stage] for result in results) for stage in figures["seconds"]
    }
    figures["vocabulary"] = len(corpus.vocabulary)
    figures["bytes_per_token"] = (peak - base) * 1024 / corpus.n_tokens
    del figures["conflicts"]
    print(json.dumps(figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return

    rows, first = [], None
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = f"{folder}/{size}.conll"
            zipf_file(size, path)
            command = [sys.executable, __file__, "--measure", path]
            found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            t = found["seconds"]
            total = t["construct"] + t["verify"]
            first = first or (found["tokens"], t["read"], total)
            growth = found["tokens"] / first[0]
            rows.append(
                [
                    f"{found['tokens']:,}",
                    f"{found['vocabulary']:,}",
                    f"{found['wrong']:,} ({found['unavoidable']:,})",
                    f"{found['hidden_units']:,}",
                    f"{max(found['max_error'], found['dense_error']):.0e}",
                    f"{t['read']:.2f} s ({t['read'] / first[1] / growth:.2f})",
                    f"{t['construct']:.3f} s",
                    f"{t['verify']:.3f} s",
                    f"{total / first[2] / growth:.2f}",
                    f"{found['bytes_per_token']:.0f}",
                ]
            )
    common.table(
        [
            "tokens",
            "words",
            "wrong (unavoidable)",
            "hidden units",
            "error",
            "read (per token)",
            "construct",
            "verify",
            "both, per token",
            "bytes per token",
        ],
        rows,
    )
    print("'per token' is relative to the smallest corpus: 1 is linear growth.")


if __name__ == "__main__":
    main()
