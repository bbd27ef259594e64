"""Suspects in words."""

from __future__ import annotations

import numpy as np
import pytest

from rankone import Corpus
from rankone.audit.findings import Suspect
from rankone.audit.suspects import evidence
from rankone.audit.suspects.edits import Edits
from rankone.audit.suspects.evidence import find_evidence
from rankone.audit.suspects.find import _described
from rankone.audit.suspects.report import AROUND, KEPT, Change, changes, changes_of, table_of
from rankone.audit.suspects.tags import Tags
from rankone.audit.suspects.view import surveyed
from rankone.corpus.parted import PartedCorpus, parted
from rankone.engines import open_engine


def reported(corpus: Corpus, before: list[int], after: list[int], order: list[int]) -> list[Change]:
    """Every label becomes the other one; `before` and `after` say how far an edit reaches."""
    tags = Tags.of(corpus)
    size = corpus.n_tokens
    candidates = np.stack([tags.ids, 1 - tags.ids], axis=1).astype(np.int32)
    steps = [np.stack([np.full(size, -1), reach], axis=1) for reach in (before, after)]
    left, right = (step.astype(np.int8) for step in steps)
    ones = np.ones(size, dtype=np.int8)
    edits = Edits(np.zeros(size), ones.astype(np.int32), ones, candidates, left, right)
    found = list(changes(corpus, tags, edits, np.array(order)))
    assert changes_of(table_of(found)) == found
    return found


def described(corpus: Corpus, found: list[Change], tokens: int = 10) -> list[Suspect]:
    """In words, from parts of a few tokens."""
    whole = parted(corpus, open_engine("here"), tokens)
    seen, places = surveyed(whole)
    tags = Tags(list(seen.names), np.empty(0, np.int32), None)
    listed = [(0.5, change) for change in found]
    return list(_described(whole, whole.engine.share(seen), places, tags, listed))


def one(length: int) -> Corpus:
    words = [f"w{i}" for i in range(length)]
    return Corpus.from_sentences([(words, ["XY"[i % 2] for i in range(length)])])


def test_a_finding_that_overlaps_a_likelier_one_is_left_out() -> None:
    # Token 1 changes 1 and 2; token 3 changes 2 and 3, so that both want token 2.
    corpus = one(6)
    found = reported(corpus, [-1, -1, -1, 1, -1, -1], [-1, 1, -1, -1, -1, -1], [1, 3, 4, 5, 2, 0])
    suspects = described(corpus, found)
    assert [(s.position, len(s.lines)) for s in suspects] == [(2, 2), (5, 1), (6, 1), (1, 1)]
    first = suspects[0]
    assert (first.token, first.label, first.proposal) == ("w1 w2", "Y X", "X Y")


def test_an_edit_reaches_to_both_sides() -> None:
    corpus = one(4)
    found = reported(corpus, [-1, 1, 1, -1], [-1, -1, 1, -1], [2, 0, 1, 3])
    (first,) = described(corpus, found)
    assert (first.position, first.lines, first.token) == (1, (1,) * 4, "w0 w1 w2 w3")


def test_a_token_that_nothing_is_asked_of_is_no_finding() -> None:
    corpus = one(3)
    corpus.label_ids[1] = -1
    assert [c.token for c in reported(corpus, [-1] * 3, [-1] * 3, [0, 1, 2])] == [0, 2]


def test_long_sentences_are_kept_around_the_token() -> None:
    corpus = one(3 * KEPT)
    for token, start in ((0, 1), (KEPT + 50, 51), (3 * KEPT - 1, 2 * KEPT)):
        (change,) = reported(corpus, [-1] * corpus.n_tokens, [-1] * corpus.n_tokens, [token])
        (first,) = described(corpus, [change])
        assert (first.position, first.start, first.token) == (token + 1, start, f"w{token}")
        assert first.sentence[first.position - first.start] == first.token
        assert len(first.sentence) == min(token, KEPT) + 1 + min(3 * KEPT - 1 - token, KEPT)


def test_evidence_is_a_row_with_the_proposed_label_and_its_surroundings() -> None:
    words = [f"w{i}" for i in range(12)]
    made = [(["same"], ["X"]), ([*words, "same", *words], ["Y"] * 25), (["same"], ["X"])]
    corpus = Corpus.from_sentences(made)
    found = reported(corpus, [-1] * corpus.n_tokens, [-1] * corpus.n_tokens, [0])
    ((row,),) = [suspect.evidence for suspect in described(corpus, found)]
    near = " ".join([*words[-AROUND:], "[same]", *words[:AROUND]])
    assert (row.line, row.label, row.text) == (2, "Y", f"... {near} ...")
    assert row.alike == "the same word nearby"


@pytest.mark.parametrize("tokens", [1, 3, 100])
def test_the_first_rows_of_the_widest_window(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "ROWS", 2)
    made = [
        (["a", "b"], ["X", "X"]),
        *[(["b"], ["Y"])] * 3,
        *[(["a", "b"], ["X", "Y"])] * 3,
        (["b"], ["X"]),
    ]
    whole: PartedCorpus = parted(Corpus.from_sentences(made), open_engine("here"), tokens)
    seen, places = surveyed(whole)
    found = find_evidence(
        whole, whole.engine.share(seen), places, np.array([11, 1, 0]), np.array([1, 1, 1]), 2
    )
    three = "three words on either side"
    before = "the two words before it"
    assert found == [([2, 3], three), ([6, 8], three), ([2, 3], before)]
