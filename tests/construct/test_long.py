"""Long sentences: time and memory grow with their length, not with its square."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import rankone
from rankone.construct.verify import SAMPLE

SETTINGS = {
    "causal": {"causal": True},
    "both ways": {},
    "causal, no positions": {"causal": True, "positions": False},
    "causal, head size 2": {"causal": True, "head_size": 2},
    "paper": {"readout": "paper"},
    "given vectors, causal": {"vectors": True, "causal": True},
}

CHILD = """
import json, resource, sys, time
import numpy as np, rankone

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def one(n):
    rng = np.random.default_rng(0)
    words = [f"w{i // 2}" for i in range(n // 2)] + [f"w{i}" for i in rng.integers(0, 300, n // 2)]
    return rankone.Corpus.from_sentences([(words, [f"L{i}" for i in rng.integers(0, 3, n)])])

def run(corpus, vectors=False, **how):
    if vectors:
        how["vectors"] = np.random.default_rng(1).normal(size=(len(corpus.vocabulary), 4))
    began = time.process_time()
    result = rankone.memorize(corpus, **how)
    assert result.ok
    return time.process_time() - began

settings, n = json.loads(sys.argv[1]), int(sys.argv[2])
small, single, double = one(1000), one(n), one(2 * n)
for how in settings.values():
    run(small, **how)  # compiles
before, seconds = peak(), {}
for name, how in settings.items():
    seconds[name] = run(single, **how), run(double, **how)
print(json.dumps({"seconds": seconds, "bytes": peak() - before}))
"""


def test_twice_the_tokens_take_about_twice_the_time() -> None:
    n = 8_000
    arguments = [sys.executable, "-c", CHILD, json.dumps(SETTINGS), str(n)]
    for _ in range(2):  # the first may have to compile what long sentences need
        answer = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
        assert answer.returncode == 0, answer.stderr
        found = json.loads(answer.stdout)
        slow = {name: s for name, s in found["seconds"].items() if s[1] > 3 * s[0] + 0.1}
        if not slow and found["bytes"] < 2e8:
            break
    assert not slow  # four times, if it grew with the square
    assert found["bytes"] < 2e8  # a causal mask of one byte per pair of tokens would take 2.6e8


def test_every_token_of_a_long_sentence_goes_through_the_dense_network() -> None:
    """Some sentences fit into a table of scores many at a time, one takes several tables."""
    rng = np.random.default_rng(0)
    lengths = [1, 2, 300, 1500, 2, 300, 7]
    sentences = [
        ([f"w{i}" for i in rng.integers(0, 9, n)], [f"L{i}" for i in rng.integers(0, 3, n)])
        for n in lengths
    ]
    for causal in (False, True):
        every, some = (
            rankone.memorize(sentences, causal=causal, verify=how) for how in ("dense", "sample")
        )
        assert every.dense_tokens == every.tokens == sum(lengths)
        assert some.dense_tokens == SAMPLE < every.tokens
        assert some.dense_error <= every.dense_error < 1e-3
        assert every.dense_difference >= some.dense_difference > 0


def test_logits_of_many_labels_are_held_a_few_tokens_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sentences = [([f"w{i}" for i in range(30)], [f"L{i}" for i in range(30)])]
    model = rankone.memorize(sentences).model
    for most in (1, 59, 60, 61, 1 << 22):
        monkeypatch.setattr("rankone.nn.readout.LOGITS", most)
        assert model.predict([words for words, _ in sentences]) == [sentences[0][1]]
