"""Ceilings for text, against dictionaries and an entropy that is counted independently."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import texts
from rankone.audit.texts.figures import text_figures
from rankone.audit.texts.sorting import sorted_suffixes
from rankone.audit.texts.suffixes import Suffixes, tokens_at
from rankone.corpus.contexts import by_prefix, by_window


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_suffixes_are_sorted(symbols: list[int]) -> None:
    order = sorted_suffixes(np.array(symbols, dtype=np.int32), 4)
    assert order.tolist() == sorted(range(len(symbols)), key=lambda i: symbols[i:])


@given(texts.texts())
def test_neighbours_share_as_much_as_they_do_and_nothing_beyond_a_document(
    text: texts.Text,
) -> None:
    suffixes = Suffixes.of(texts.corpus_of(text))
    whole = "".join(document + "$" for document in text)
    rest = [whole[i:].partition("$")[0] + "$" for i in suffixes.order]
    assert len(suffixes.order) == len(whole)
    for i in range(1, len(rest)):
        same = [a == b for a, b in zip(rest[i - 1], rest[i], strict=False)]
        assert suffixes.shared[i] == (same.index(False) if False in same else len(same))
    begins = [i == 0 or whole[i - 1] == "$" for i in suffixes.order]
    documents = suffixes.documents
    assert documents.order.tolist() == suffixes.order[begins].tolist()
    kept = [one for one, begun in zip(rest, begins, strict=True) if begun]
    for i in range(1, len(kept)):
        same = [a == b for a, b in zip(kept[i - 1], kept[i], strict=False)]
        assert documents.shared[i] == (same.index(False) if False in same else len(same))


@given(texts.texts(), st.integers(0, 9))
def test_every_row_is_what_dictionaries_count(text: texts.Text, window: int) -> None:
    corpus = texts.corpus_of(text, window)
    figures, _ = text_figures(corpus)
    windows = [row.window for row in figures.ceilings]
    assert windows[-1] == 0
    if window:
        powers = [1 << i for i in range(5) if 1 << i < window]
        assert windows[:-1] == [*powers, window]
    else:
        assert windows[:-1] == [1 << i for i in range(len(windows) - 1)]
        assert windows[-2] >= figures.enough
        assert windows[-2] < 2 * figures.enough
    for row in figures.ceilings:
        counted = texts.counts(text, row.window)
        single = [c.total() for c in counted.values() if len(c) == 1]
        assert row.context == ("window" if row.window else "prefix")
        assert row.contexts == len(counted)
        assert row.branching == len(counted) - len(single)
        assert row.tokens == corpus.n_tokens
        assert row.determined == sum(single)
        assert row.errors == sum(c.total() - max(c.values()) for c in counted.values())
        bits = sum(map(texts.bits, counted.values())) / corpus.n_tokens
        assert row.bits == pytest.approx(bits, rel=1e-12, abs=1e-12)
        assert row.perplexity == pytest.approx(2**bits, rel=1e-12)
        contexts = by_window(corpus, row.window) if row.window else by_prefix(corpus)
        assert row.contexts == len(np.unique(contexts))


@given(texts.texts())
def test_enough_is_the_least_window_that_says_as_much_as_prefixes(text: texts.Text) -> None:
    figures, _ = text_figures(texts.corpus_of(text))
    wanted = texts.at_odds(text, 0)
    same = [texts.at_odds(text, k) == wanted for k in range(1, 60)]
    assert figures.enough == same.index(True) + 1
    assert all(same[figures.enough - 1 :])
    if figures.limit is None:
        assert figures.enough == 1
    else:
        assert figures.limit.length == figures.enough - 1
        assert figures.limit.parts


@given(texts.texts("abc", 4, 10))
def test_repeated_passages(text: texts.Text) -> None:
    figures, _ = text_figures(texts.corpus_of(text))
    found = {passage.text: passage for passage in figures.passages}
    assert found.keys() == texts.passages(text)
    lengths = [passage.length for passage in figures.passages]
    assert lengths == sorted(lengths, reverse=True)
    for passage in [*found.values(), *filter(None, [figures.limit])]:
        copies = texts.places(text, passage.text)
        following = [texts.next_of(text[j], k + len(passage.text)) for j, k in copies]
        assert passage.length == len(passage.text)
        assert passage.copies == len(copies)
        assert [(row.file, row.line) for row in passage.rows] == [(None, j + 1) for j, _ in copies]
        assert passage.continuations == {name: following.count(name) for name in following}
        assert passage.parts == (len(set(following)) > 1)


@given(texts.texts(), st.integers(0, 5))
def test_contexts_with_several_continuations(text: texts.Text, window: int) -> None:
    corpus = texts.corpus_of(text, window)
    figures, conflicts = text_figures(corpus)
    counted = texts.counts(text, window)
    wanted = {of: c for of, c in counted.items() if len(c) > 1}
    assert len(conflicts) == figures.ceiling(window).branching == len(wanted)
    lost = [c.total() - max(c.values()) for c in (texts_of(x) for x in conflicts)]
    assert lost == sorted(lost, reverse=True)
    for conflict in conflicts:
        text_ = conflict.sentence[0]
        short = window == 0 or len(text_) < window
        assert conflict.counts == wanted[short, text_]
        members = [
            (j, k, following)
            for j, k, following in texts.asked(text)
            if texts.context(text[j], k, window) == (short, text_)
        ]
        assert conflict.position == members[0][1] + 1
        assert conflict.token == text_[-1]
        for label, lines in conflict.labels.items():
            rows = [j + 1 for j, _, following in members if following == label]
            assert lines == rows[:20]


def texts_of(conflict: object) -> "texts.Counter[str]":
    return texts.Counter(conflict.counts)  # type: ignore[attr-defined]


@given(texts.texts())
def test_places_become_tokens(text: texts.Text) -> None:
    corpus = texts.corpus_of(text)
    at = np.flatnonzero(Suffixes.of(corpus).text)
    tokens, documents = tokens_at(corpus, at)
    assert tokens.tolist() == list(range(corpus.n_tokens))
    assert documents.tolist() == corpus.sentence_of.tolist()
