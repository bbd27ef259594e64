"""A reciter says after each token what the model predicts there for the whole text."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import rankone
from rankone import Corpus, Model
from rankone.errors import ModelError
from rankone.recitation import assembled
from rankone.recitation.reciter import Reciter

KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "window": ({"window": 8}, {}),
    "window, float32": ({"window": 11}, {"dtype": "float32"}),
    "window of blocks": ({"window": 5, "blocks": True}, {"dtype": "float32"}),
    "window of one": ({"window": 1}, {}),
    "document": ({}, {}),
    "blocks": ({"blocks": True}, {}),
    "blocks, float32": ({"blocks": True}, {"dtype": "float32", "heads": 8}),
    "no positions": ({"blocks": True}, {"positions": False}),
    "characters": ({"window": 12, "tokenizer": "characters"}, {}),
}


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest) -> tuple[Corpus, Model]:
    reading, settings = KINDS[request.param]
    corpus = rankone.read_corpus("story", task="next", **reading)
    return corpus, rankone.memorize(corpus, **settings).model


def said(model: Model, ids: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    reciter, found = Reciter(model), []
    assert reciter.compiled
    for a, b in pairwise(offsets.tolist()):
        reciter.begin()
        found.append(reciter.follow(ids[a:b]))
    return np.concatenate(found)


def test_labels_are_those_of_the_whole_text(made: tuple[Corpus, Model]) -> None:
    """Also of a text that the model was not made of, where no label is sure to lead by much."""
    corpus, model = made
    ids, offsets = corpus.token_ids, corpus.offsets
    mixed = np.random.default_rng(0).permutation(ids)
    for rows in (ids, mixed):
        assert np.array_equal(said(model, rows, offsets), model.label_ids(rows, offsets))


def test_of_its_own_corpus_nothing_is_in_doubt(
    made: tuple[Corpus, Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All logits, which take long, are asked for only where features are far from every label."""
    corpus, model = made
    monkeypatch.setattr(Reciter, "_decide", None)
    found = said(model, corpus.token_ids, corpus.offsets)
    assert (corpus.label_ids == found).mean() > 0.3


def test_pieces_are_the_whole(made: tuple[Corpus, Model]) -> None:
    corpus, model = made
    rows = corpus.token_ids[: int(corpus.offsets[1])]
    reciter, whole = Reciter(model), said(model, rows, np.array([0, len(rows)]))
    cuts = sorted({0, 1, 3, len(rows) // 2, len(rows)})
    pieces = [reciter.follow(rows[a:b]) for a, b in pairwise(cuts)]
    assert np.array_equal(np.concatenate(pieces), whole)
    assert reciter.seen == len(rows)


def test_going_on_is_following_oneself(made: tuple[Corpus, Model]) -> None:
    corpus, model = made
    first = int(corpus.offsets[corpus.lengths.argmax()])
    rows = corpus.token_ids[first : first + 12]
    one, other = Reciter(model), Reciter(model)
    label = int(one.follow(rows)[-1])
    labels, after = one.go_on(label, 40)
    assert len(labels) == 40 or one.rows[after] < 0
    other.follow(rows)
    assert int(other.follow(other.rows[labels])[-1]) == after
    again, other_again = one.go_on(after, 5)[0], other.go_on(after, 5)[0]
    assert np.array_equal(again, other_again)


def test_large_groups_are_looked_at_in_single_precision_first() -> None:
    corpus = rankone.read_corpus("story", task="next", window=8)
    network = assembled.assemble(rankone.memorize(corpus).model.network)
    assert network is not None
    assert network.filter.done.any()
    sizes = np.diff(network.groups.first)
    assert (sizes[network.filter.done] >= assembled.LARGE).all()


def test_without_codes_all_logits_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus.from_texts(["a b a c a b a b d", "a b c c"], window=2)
    model = rankone.memorize(corpus).model
    wanted = model.label_ids(corpus.token_ids, corpus.offsets)
    assert np.array_equal(said(model, corpus.token_ids, corpus.offsets), wanted)
    monkeypatch.setattr(assembled.MixedCodes, "of", lambda _: None)
    assert np.array_equal(said(model, corpus.token_ids, corpus.offsets), wanted)
    reciter = Reciter(model)
    label = int(reciter.follow(corpus.token_ids[:2])[-1])
    names = [model.labels[i] for i in reciter.go_on(label, 5)[0].tolist()]
    assert names == ["b", " a", " b", " a", " b"] or names[0] == " b"


def test_a_trained_model_looks_at_all_of_its_past() -> None:
    corpus = Corpus.from_texts(["a b a c", "a b b"])
    model = rankone.train(corpus, rankone.Settings(epochs=2, dim=4)).model
    reciter, found = Reciter(model), []
    assert not reciter.compiled
    for a, b in pairwise(corpus.offsets.tolist()):
        reciter.begin()
        found.append(reciter.follow(corpus.token_ids[a:b]))
    wanted = model.label_ids(corpus.token_ids, corpus.offsets)
    assert np.array_equal(np.concatenate(found), wanted)
    reciter.begin()
    label = int(reciter.follow(corpus.token_ids[:1])[-1])
    labels, after = reciter.go_on(label, 9)
    assert reciter.seen == 1 + len(labels)
    assert reciter.seen == model.positions or reciter.rows[after] < 0


def test_a_text_longer_than_the_table_of_positions_is_refused() -> None:
    corpus = Corpus.from_texts(["a b c"])
    reciter = Reciter(rankone.memorize(corpus).model)
    with pytest.raises(ModelError, match=r"4 tokens, but the table of positions has 3 rows"):
        reciter.follow(np.array([0, 1, 2, 1]))
