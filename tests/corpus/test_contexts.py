"""Contexts against their definition, written out with tuples."""

from __future__ import annotations

import random

import pytest

from rankone import Corpus
from rankone.corpus.contexts import by_window, doubled_windows, visible


def firsts(corpus: Corpus, window: int) -> list[int]:
    """The first token with the same last `window` tokens, or fewer where a sentence begins."""
    seen: dict[tuple[str, ...], int] = {}
    contexts = [
        tuple(s.tokens[max(0, k + 1 - window) : k + 1])
        for s in corpus.sentences
        for k in range(len(s.tokens))
    ]
    return [seen.setdefault(context, i) for i, context in enumerate(contexts)]


@pytest.mark.parametrize("seed", range(20))
def test_windows_are_the_last_tokens(seed: int) -> None:
    rng = random.Random(seed)
    texts = [[rng.choice("ab") for _ in range(rng.randint(1, 9))] for _ in range(4)]
    corpus = Corpus.from_sentences([(text, text) for text in texts])
    for window in range(1, 11):
        assert by_window(corpus, window).tolist() == firsts(corpus, window)
        assert visible(positions=False, causal=True, window=window)(corpus).tolist() == firsts(
            corpus, window
        )
    for size, classes in doubled_windows(corpus, 9):
        wanted = firsts(corpus, size)
        pairs = set(zip(classes.tolist(), wanted, strict=True))
        assert len(pairs) == len(set(wanted)) == len(set(classes.tolist()))
    assert [size for size, _ in doubled_windows(corpus, 9)] == [1, 2, 4, 8]
