"""Relative frequencies: the cross-entropy of a model on its text is the text's conditional entropy,
as dictionaries count it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from math import log, log2

import numpy as np
import pytest

import rankone
from rankone import Corpus, memorize
from rankone.construct.gated import draw
from rankone.corpus.tokenizers import tokenizer_of
from rankone.errors import PrecisionError
from rankone.nn.gated import GatedFeedForward

NATS = 1e-6
WINDOWS = (0, 1, 2, 4, 8, 32)  # 0: documents, of which the prefix is seen


def zipf(count: int, words: int, seed: int) -> list[str]:
    """Words of made-up text, of which some passages are copies."""
    rng = np.random.default_rng(seed)
    share = np.cumsum(1 / (2.7 + np.arange(words)))
    ids = np.searchsorted(share / share[-1], rng.random(count))
    for length in rng.integers(5, 60, count // 100).tolist():
        here, there = rng.integers(0, count - length, 2)
        ids[there : there + length] = ids[here : here + length]
    letters = np.array(list("aaaeeeiioounrstlmdkhpbg"))
    names = ["".join(rng.choice(letters, rng.integers(1, 9))) for _ in range(words)]
    return [f" {names[i]}" for i in ids.tolist()]


def texts(count: int, words: int, window: int, seed: int = 0) -> list[str]:
    """One text; of documents several, for prefixes to be seen more than once."""
    found = zipf(count, words, seed)
    length = count if window else 40
    return ["".join(found[i : i + length]) for i in range(0, count, length)]


def counted(documents: list[str], tokenizer: str, window: int) -> tuple[float, int]:
    """The entropy in nats per token, and the errors nobody can avoid."""
    seen: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
    for document in documents:
        tokens = tokenizer_of(tokenizer).split(document, "")
        for i in range(len(tokens)):
            past = tuple(tokens[: i + 1])
            context = past if not window else (len(past) < window, past[-window:])
            seen[context][tokens[i + 1] if i + 1 < len(tokens) else ""] += 1
    total = sum(c.total() for c in seen.values())
    nats = sum(-n * log(n / c.total()) for c in seen.values() for n in c.values())
    return nats / total, sum(c.total() - max(c.values()) for c in seen.values())


def check(documents: list[str], tokenizer: str, window: int, dtype: str) -> None:
    corpus = Corpus.from_texts(documents, tokenizer=tokenizer, window=window)
    entropy, errors = counted(documents, tokenizer, window)
    figures = rankone.inspect(corpus).text
    assert figures is not None
    assert figures.ceiling(window).bits * log(2) == pytest.approx(entropy, rel=1e-9, abs=1e-12)
    found = memorize(corpus, dtype=dtype)
    assert found.wrong == found.unavoidable == errors
    losses = found.model.losses(corpus).astype(np.float64)
    assert np.nanmean(losses) == pytest.approx(entropy, rel=0, abs=NATS)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("window", WINDOWS)
def test_cross_entropy_is_entropy(window: int, dtype: str) -> None:
    check(texts(600, 30, window), "words", window, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tokenizer", ["words", "characters", "bytes"])
@pytest.mark.parametrize("window", WINDOWS)
def test_cross_entropy_is_entropy_of_long_texts(window: int, tokenizer: str, dtype: str) -> None:
    count = 20_000 if tokenizer == "words" else 5_000  # words
    check(texts(count, 2_000, window), tokenizer, window, dtype)


def test_documents_in_few_digits_need_units_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peaks of other contexts leave more of their labels than two equal shares bear."""
    documents = texts(6_000, 12, 0)
    check(documents, "words", 0, "float32")
    found = memorize(Corpus.from_texts(documents), dtype="float32").model.network
    layer = found.blocks[0].feedforward
    assert isinstance(layer, GatedFeedForward)
    assert (layer.plus != layer.minus).all()  # each unit writes something
    monkeypatch.setattr(draw, "fine", lambda _: False)
    with pytest.raises(PrecisionError, match="float32 cannot hold"):
        memorize(Corpus.from_texts(documents), dtype="float32")


def test_the_lead_of_a_label_costs_less_than_is_promised() -> None:
    """Where two labels are equally frequent after every token, as nearly as can be: the worst."""
    documents = [f"{a}{b}" for a in "abcdefgh" for b in "xy"]
    for dtype in ("float64", "float32"):
        corpus = Corpus.from_texts(documents, tokenizer="characters")
        model = memorize(corpus, dtype=dtype).model
        bits = np.nanmean(model.losses(corpus).astype(np.float64)) / log(2)
        assert bits == pytest.approx(0.5 * log2(2), rel=0, abs=NATS / log(2))
