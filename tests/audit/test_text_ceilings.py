"""Ceilings for text, against dictionaries and an entropy that is counted independently."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import texts
from rankone import Corpus
from rankone.audit.texts import TextConflict, TextFigures, passages, suffixes
from rankone.audit.texts.branches import Branches
from rankone.audit.texts.figures import text_figures
from rankone.audit.texts.sorting import sorted_suffixes
from rankone.audit.texts.suffixes import Suffixes, tokens_at
from rankone.corpus.contexts import by_prefix, by_window
from rankone.errors import SizeError


def every(letters: str, longest: int) -> list[str]:
    """All words of these letters."""
    sizes = range(1, longest + 1)
    return ["".join(word) for size in sizes for word in product(letters, repeat=size)]


SMALL = [[word] for word in every("ab", 6)] + [
    [one, two] for one in every("ab", 3) for two in every("ab", 3)
]


def found_in(text: texts.Text, window: int = 0) -> tuple[TextFigures, tuple[TextConflict, ...]]:
    return text_figures(texts.corpus_of(text, window))


# Suffixes


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_suffixes_are_sorted(symbols: list[int]) -> None:
    order = sorted_suffixes(np.array(symbols, dtype=np.int32), 4)
    assert order.tolist() == sorted(range(len(symbols)), key=lambda i: symbols[i:])


def test_suffixes_of_a_long_text_are_sorted() -> None:
    """Long enough for several rounds; and half of it is the other half again."""
    draw = np.random.default_rng(0)
    part = draw.integers(0, 3, 3000)
    symbols = np.concatenate([part, part, draw.integers(0, 3, 3000), part[:1000]])
    text = symbols.astype(np.uint8).tobytes()
    order = sorted_suffixes(symbols.astype(np.int32), 3)
    assert order.tolist() == sorted(range(len(text)), key=lambda i: text[i:])


def common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


@given(texts.texts())
def test_neighbours_share_nothing_beyond_a_document(text: texts.Text) -> None:
    found = Suffixes.of(texts.corpus_of(text))
    whole = "".join(document + "$" for document in text)
    rest = [whole[i:].partition("$")[0] + "$" for i in found.order]
    begins = [i == 0 or whole[i - 1] == "$" for i in found.order]
    assert len(rest) == len(whole)
    assert found.documents.order.tolist() == found.order[begins].tolist()
    prefixes = [one for one, begun in zip(rest, begins, strict=True) if begun]
    for shared, of in ((found.shared, rest), (found.documents.shared, prefixes)):
        inner = [common(a, b) for a, b in pairwise(of)]
        assert shared.tolist() == [0, *inner, 0]


@given(texts.texts())
def test_places_become_tokens(text: texts.Text) -> None:
    corpus = texts.corpus_of(text)
    at = np.flatnonzero(Suffixes.of(corpus).text)
    tokens, documents = tokens_at(corpus, at)
    assert tokens.tolist() == list(range(corpus.n_tokens))
    assert documents.tolist() == corpus.sentence_of.tolist()


def test_a_text_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = texts.corpus_of(["abc", "d"])
    monkeypatch.setattr(suffixes, "MOST", 6)
    assert len(Suffixes.of(corpus).text) == 6
    monkeypatch.setattr(suffixes, "MOST", 5)
    with pytest.raises(SizeError, match="6 tokens and ends of documents are more than"):
        Suffixes.of(corpus)


# Ceilings


def check_rows(text: texts.Text, window: int) -> None:
    corpus = texts.corpus_of(text, window)
    figures, _ = text_figures(corpus)
    assert figures.window == window
    windows = [row.window for row in figures.ceilings]
    powers = [1 << i for i in range(6)]
    if window:
        assert windows == [*(k for k in powers if k < window), window, 0]
    else:
        least = next(k for k in powers if k >= figures.enough)
        assert windows == [*(k for k in powers if k <= least), 0]
    for row in figures.ceilings:
        counted = texts.counts(text, row.window)
        single = [c.total() for c in counted.values() if len(c) == 1]
        assert row.context == ("window" if row.window else "prefix")
        assert (row.contexts, row.branching) == (len(counted), len(counted) - len(single))
        assert (row.tokens, row.determined) == (corpus.n_tokens, sum(single))
        assert row.errors == sum(c.total() - max(c.values()) for c in counted.values())
        bits = sum(map(texts.bits, counted.values())) / corpus.n_tokens
        assert row.bits == pytest.approx(bits, rel=1e-12, abs=1e-12)
        assert row.perplexity == pytest.approx(2**bits, rel=1e-12, abs=0)
        assert row.accuracy == pytest.approx(1 - row.errors / row.tokens)
        assert row.share == pytest.approx(sum(single) / row.tokens)
        assert row.ok == (row.branching == 0)
        contexts = by_window(corpus, row.window) if row.window else by_prefix(corpus)
        assert row.contexts == len(np.unique(contexts))


@given(texts.texts(), st.integers(0, 9))
def test_every_row_is_what_dictionaries_count(text: texts.Text, window: int) -> None:
    check_rows(text, window)


def test_every_row_of_every_small_text() -> None:
    for text in SMALL:
        check_rows(text, 0)


def check_enough(text: texts.Text) -> None:
    figures, _ = found_in(text)
    wanted = texts.at_odds(text, 0)
    longest = max(map(len, text))
    same = [texts.at_odds(text, k) == wanted for k in range(1, longest + 3)]
    assert figures.enough == same.index(True) + 1
    assert all(same[figures.enough - 1 :])
    if figures.enough == 1:
        assert figures.limit is None
    else:
        assert figures.limit is not None
        assert figures.limit.length == figures.enough - 1
        assert figures.limit.parts


@given(texts.texts())
def test_enough_is_the_least_window_that_says_as_much_as_prefixes(text: texts.Text) -> None:
    check_enough(text)


def test_enough_for_every_small_text() -> None:
    for text in SMALL:
        check_enough(text)


def test_an_entropy_by_hand() -> None:
    """After a: b twice and c; after b and c: the end. Of four bits with 1/3 and 2/3, H = 0.918."""
    figures, conflicts = found_in(["ab", "ab", "ac"], 1)
    row = figures.ceiling(1)
    assert row.bits == pytest.approx(3 / 6 * (np.log2(3) - 2 / 3))
    assert (row.determined, row.errors, row.contexts, row.branching) == (3, 1, 3, 1)
    (conflict,) = conflicts
    assert (str(conflict), conflict.excerpt()) == (
        "'b' 2 times (in documents 1, 2); 'c' 1 time (in document 3)",
        "a",
    )


def test_a_long_row_of_one_letter_takes_no_longer() -> None:
    """Every run lies in the one before it, a hundred thousand deep; passages are parts of it."""
    figures, conflicts = found_in(["a" * 100_000], 65536)
    assert figures.enough == 100_000
    assert [passage.length for passage in figures.passages] == [99_999]
    row = figures.ceiling(65536)
    assert (row.contexts, row.branching, row.errors) == (65536, 1, 1)
    assert row.determined == 65535
    assert conflicts[0].counts == {"a": 34464, "<|end|>": 1}
    assert figures.ok is False


def test_many_documents_of_one_token() -> None:
    figures, conflicts = found_in(["a", "b"] * 5000)
    assert (figures.ok, figures.enough, figures.passages, conflicts) == (True, 1, (), ())
    assert [row.contexts for row in figures.ceilings] == [2, 2]


def test_a_window_that_is_wider_than_the_text() -> None:
    figures, _ = found_in(["abcab"], 65536)
    rows = figures.ceilings
    assert [row.window for row in rows] == [1 << i for i in range(17)] + [0]
    assert {(row.contexts, row.determined) for row in rows[3:]} == {(5, 5)}


# Passages


def check_passages(text: texts.Text) -> None:
    figures, _ = found_in(text)
    found = {passage.text: passage for passage in figures.passages}
    assert len(figures.passages) == len(found)
    assert found.keys() == texts.passages(text)
    lengths = [passage.length for passage in figures.passages]
    assert lengths == sorted(lengths, reverse=True)
    for passage in [*found.values(), *filter(None, [figures.limit])]:
        copies = texts.places(text, passage.text)
        following = Counter(texts.next_of(text[j], k + len(passage.text)) for j, k in copies)
        assert (passage.length, passage.copies) == (len(passage.text), len(copies))
        assert [(row.file, row.line) for row in passage.rows] == [(None, j + 1) for j, _ in copies]
        assert (passage.continuations, passage.others) == (following, 0)
        assert [*passage.continuations.values()] == sorted(following.values(), reverse=True)
        assert passage.parts == (len(following) > 1)


@given(texts.texts("abc", 4, 10))
def test_repeated_passages(text: texts.Text) -> None:
    check_passages(text)


def test_repeated_passages_of_every_small_text() -> None:
    for text in SMALL:
        check_passages(text)


def test_only_the_longest_are_kept() -> None:
    """However few are kept at a time."""
    draw = np.random.default_rng(0)
    found = Suffixes.of(texts.corpus_of(["".join(draw.choice(["a", "b"], 300))]))
    columns = found.text, found.order, found.shared
    wanted = sorted(passages._maximal(*columns, 2, 10_000)[:, 2].tolist(), reverse=True)
    assert len(wanted) > 100
    for most in (1, 2, 7, 30, 90):
        assert passages._maximal(*columns, 2, most)[:, 2].tolist() == wanted[:most]


def test_long_lists_are_cut_and_counted() -> None:
    """A passage with 130 copies and 120 continuations, each a character of its own."""
    after = [chr(0x4E00 + i) for i in range(120)]
    text = ["xy" + letter for letter in after] + ["xy" + after[7]] * 10
    corpus = texts.corpus_of(text, 2)
    figures, conflicts = text_figures(corpus)
    passage = next(p for p in figures.passages if p.text == "xy")
    assert (passage.copies, len(passage.rows)) == (130, 100)
    assert (len(passage.continuations), passage.others) == (20, 100)
    assert list(passage.continuations.items())[:2] == [(after[7], 11), (after[0], 1)]
    conflict = next(c for c in conflicts if c.excerpt() == "xy")
    assert (len(conflict.labels), conflict.others, conflict.n_labels) == (20, 100, 120)
    assert (conflict.labels[after[7]][:3], conflict.counts[after[7]]) == ([8, 121, 122], 11)
    assert str(conflict).startswith(f"{after[7]!r} 11 times (in documents 8, 121, 122 and 8 more);")
    assert str(conflict).endswith("; and 115 more")


# Conflicts


def check_conflicts(text: texts.Text, window: int) -> None:
    figures, conflicts = found_in(text, window)
    wanted = {of: c for of, c in texts.counts(text, window).items() if len(c) > 1}
    assert len(conflicts) == figures.ceiling(window).branching == len(wanted)
    lost = [sum(c.counts.values()) - max(c.counts.values()) for c in conflicts]
    assert lost == sorted(lost, reverse=True)
    for conflict in conflicts:
        seen = conflict.excerpt()
        short = window == 0 or len(seen) < window
        assert conflict.counts == wanted[short, seen]
        members = [
            (j, k, following)
            for j, k, following in texts.asked(text)
            if texts.context(text[j], k, window) == (short, seen)
        ]
        assert (conflict.token, conflict.position) == (seen[-1], members[0][1] + 1)
        for label, lines in conflict.labels.items():
            assert lines == [j + 1 for j, _, following in members if following == label][:20]


@given(texts.texts(), st.integers(0, 5))
def test_contexts_with_several_continuations(text: texts.Text, window: int) -> None:
    check_conflicts(text, window)


def test_contexts_of_every_small_text() -> None:
    for text in SMALL:
        check_conflicts(text, 2)


def test_no_more_than_a_thousand_are_listed() -> None:
    """Words after which two others come, one of them twice for the later half."""
    text = [f"{chr(0x4E00 + i)}{end}" for i in range(1200) for end in ("aabb" if i > 599 else "ab")]
    figures, conflicts = found_in(text)
    assert figures.ceiling().branching == 1200
    assert len(conflicts) == 1000
    assert [sum(c.counts.values()) for c in conflicts] == [4] * 600 + [2] * 400


def test_runs_are_found_where_they_were_counted() -> None:
    found = Branches.of(Suffixes.of(texts.corpus_of(["abcabdab", "cabd"])), 2)
    depths = [1, 1, 2, 2, 3, 4]  # b, d, ab, bd, abd, cabd
    assert sorted(found.between(1)[:, 2].tolist()) == depths
    assert sorted(found.between(2, 3)[:, 2].tolist()) == depths[2:5]
    assert found.runs.tolist() == [0, 2, 2, 2]


# Marks


@given(texts.texts(), st.integers(0, 5))
def test_a_mark_where_documents_begin_changes_nothing(text: texts.Text, window: int) -> None:
    from rankone.audit.inspect import inspect

    corpus = texts.corpus_of(text, window)
    starts = corpus.offsets[:-1]
    marked: Corpus = replace(
        corpus,
        vocabulary=("<|begin|>", *corpus.vocabulary),
        token_ids=np.insert(corpus.token_ids + 1, starts, 0),
        label_ids=np.insert(corpus.label_ids, starts, -1),
        lines=np.insert(corpus.lines, starts, corpus.lines[starts]),
        offsets=corpus.offsets + np.arange(len(corpus.offsets)),
    )
    assert marked.asked.size == corpus.n_tokens
    one, other = (inspect(of).to_json() for of in (corpus, marked))
    assert {**one, "seconds": 0} == {**other, "seconds": 0}
