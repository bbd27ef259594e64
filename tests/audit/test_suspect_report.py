"""Suspects in words."""

from __future__ import annotations

import numpy as np

from rankone import Corpus
from rankone.audit.suspects.edits import Edits
from rankone.audit.suspects.report import AROUND, KEPT, Reporter
from rankone.audit.suspects.tags import Tags
from rankone.audit.suspects.votes import Groups


def reporter(corpus: Corpus, before: list[int], after: list[int]) -> Reporter:
    """Every label becomes the other one; `before` and `after` say how far an edit reaches."""
    tags = Tags.of(corpus)
    size = corpus.n_tokens
    candidates = np.stack([tags.ids, 1 - tags.ids], axis=1).astype(np.int32)
    steps = [np.stack([np.full(size, -1), reach], axis=1) for reach in (before, after)]
    left, right = (step.astype(np.int8) for step in steps)
    ones = np.ones(size, dtype=np.int8)
    edits = Edits(np.zeros(size), ones.astype(np.int32), ones, candidates, left, right)
    windows = {"the word": Groups.of(corpus.token_ids.astype(np.uint64))}
    return Reporter(corpus, tags, windows, edits)


def lines(length: int) -> Corpus:
    return Corpus.from_sentences([([f"w{i}"], ["XY"[i % 2]]) for i in range(length)])


def one(length: int) -> Corpus:
    words = [f"w{i}" for i in range(length)]
    return Corpus.from_sentences([(words, ["XY"[i % 2] for i in range(length)])])


def test_a_finding_that_overlaps_a_likelier_one_is_left_out() -> None:
    # Token 1 changes 1 and 2; token 3 changes 2 and 3, so that both want token 2.
    report = reporter(one(6), [-1, -1, -1, 1, -1, -1], [-1, 1, -1, -1, -1, -1]).report
    odds = np.array([0.0, 5.0, 1.0, 4.0, 3.0, 2.0])
    found = report(odds / 10, odds, 10, 1.0)
    assert [(s.position, len(s.lines)) for s in found] == [(2, 2), (5, 1), (6, 1), (1, 1)]
    assert [s.score for s in found] == [0.5, 0.3, 0.2, 0.0]
    assert (found[0].token, found[0].label, found[0].proposal) == ("w1 w2", "Y X", "X Y")


def test_an_edit_reaches_to_both_sides() -> None:
    report = reporter(one(4), [-1, 1, 1, -1], [-1, -1, 1, -1]).report
    odds = np.array([0.0, 0.0, 9.0, 0.0])
    first = report(odds / 10, odds, 1, 1.0)[0]
    assert (first.position, first.lines, first.token) == (1, (1,) * 4, "w0 w1 w2 w3")


def test_how_many_are_reported() -> None:
    report = reporter(lines(6), [-1] * 6, [-1] * 6).report
    odds = np.arange(6.0)
    assert [s.line for s in report(odds / 10, odds, 2, 1.0)] == [6, 5]
    assert [s.line for s in report(odds / 10, odds, 0, 0.25)] == [6, 5, 4]
    assert [s.line for s in report(odds / 10, odds, 5, 0.25)] == [6, 5, 4, 3, 2]


def test_long_sentences_are_kept_around_the_token() -> None:
    corpus = one(3 * KEPT)
    report = reporter(corpus, [-1] * corpus.n_tokens, [-1] * corpus.n_tokens).report
    for token, start in ((0, 1), (KEPT + 50, 51), (3 * KEPT - 1, 2 * KEPT)):
        odds = np.where(np.arange(corpus.n_tokens) == token, 9.0, 0.0)
        first = report(odds / 10, odds, 1, 1.0)[0]
        assert (first.position, first.start, first.token) == (token + 1, start, f"w{token}")
        assert first.sentence[first.position - first.start] == first.token
        assert len(first.sentence) == min(token, KEPT) + 1 + min(3 * KEPT - 1 - token, KEPT)


def test_evidence_is_a_row_with_the_proposed_label_and_its_surroundings() -> None:
    words = [f"w{i}" for i in range(12)]
    made = [(["same"], ["X"]), ([*words, "same", *words], ["Y"] * 25), (["same"], ["X"])]
    corpus = Corpus.from_sentences(made)
    size = corpus.n_tokens
    odds = np.where(np.arange(size) == 0, 9.0, 0.0)
    (row,) = reporter(corpus, [-1] * size, [-1] * size).report(odds / 10, odds, 1, 1.0)[0].evidence
    near = " ".join([*words[-AROUND:], "[same]", *words[:AROUND]])
    assert (row.line, row.label, row.alike, row.text) == (2, "Y", "the word", f"... {near} ...")
