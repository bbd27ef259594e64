"""A corpus in parts that an engine keeps gives the same model, to the byte."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
import rankone
from rankone import Corpus
from rankone.construct import verify
from rankone.construct.gated import units
from rankone.construct.parted import check as parted_check
from rankone.construct.parted import draw as parted_draw
from rankone.construct.verify import sample_tokens, worst_tokens
from rankone.corpus.parted import parted
from rankone.engines import open_engine
from rankone.errors import (
    ConflictError,
    CorpusError,
    LengthError,
    PrecisionError,
    SettingError,
)

ROUNDED = {"max_error", "margin", "dense_error", "dense_difference"}  # in the order of sums


def same(corpus: Corpus, size: int, buckets: int, name: Any = "here", **settings: Any) -> None:
    whole = rankone.memorize(corpus, construction="gated", **settings)
    with open_engine(name) as engine:
        engine.workers = buckets
        found = rankone.memorize(parted(corpus, engine, size), construction="gated", **settings)
    assert found.model.files() == whole.model.files()
    one, other = whole.to_json(), found.to_json()
    for name in one.keys() - {"seconds", *ROUNDED}:
        assert one[name] == other[name], name
    for name in ROUNDED:
        assert one[name] == pytest.approx(other[name], abs=1e-6), name


@given(
    corpora.sentences(),
    st.integers(1, 20),
    st.integers(1, 4),
    st.fixed_dictionaries(
        {
            "positions": st.booleans(),
            "causal": st.booleans(),
            "dtype": st.sampled_from(["float32", "float64"]),
            "seed": st.integers(0, 3),
        }
    ),
)
def test_however_it_is_cut_the_model_is_the_same(
    rows: corpora.Sentences, size: int, buckets: int, settings: dict[str, Any]
) -> None:
    same(Corpus.from_sentences(rows), size, buckets, **settings)


@pytest.mark.parametrize("positions", [True, False])
def test_words_with_many_contexts_are_spread_over_buckets(
    positions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which some have groups for positions and others one for all, as in memory."""
    sent: list[np.ndarray] = []
    whole = parted_draw.scattered

    def watched(bucket: np.ndarray, count: int, rows: Any) -> Any:
        sent.append(np.stack([rows["words"], bucket]))
        return whole(bucket, count, rows)

    monkeypatch.setattr(parted_draw, "FEW", 40)
    monkeypatch.setattr(units, "FEW", 40)
    monkeypatch.setattr(units.Fitting, "few", 40)
    monkeypatch.setattr(parted_draw, "scattered", watched)
    rng = np.random.default_rng(1)
    rows = [
        ([f"w{w}" for w in rng.integers(0, 5, n)], [f"L{c}" for c in rng.integers(0, 3, n)])
        for n in rng.integers(1, 9, 80)
    ]
    same(Corpus.from_sentences(rows), 50, 5, positions=positions)
    words, homes = np.concatenate(sent, axis=1)
    spread = [len(np.unique(homes[words == word])) for word in range(5)]
    assert (max(spread) > 1) == positions


def test_on_disk_and_with_every_token_checked() -> None:
    same(rankone.builtin_corpus(150), 300, 3, name="disk", verify="dense", max_length=40)


def test_tokens_that_are_not_asked() -> None:
    rows = [(["a", "b", "a"], ["x", "_", "y"]), (["a", "b"], ["_", "z"]), (["a"], ["x"])] * 2
    rows += [(["a", "b"], ["_", "y"]), (["c", "b"], ["_", "_"])]
    same(tasks_of(rows), 3, 2)


def tasks_of(rows: corpora.Sentences) -> Corpus:
    """Rows whose labels "_" are not asked for."""
    corpus = Corpus.from_sentences(rows)
    nothing = corpus.label_names.index("_")
    names = [name for name in corpus.label_names if name != "_"]
    number = {i: names.index(n) if n != "_" else -1 for i, n in enumerate(corpus.label_names)}
    assert number[nothing] == -1
    labels = np.array([number[i] for i in corpus.label_ids.tolist()])
    return replace(corpus, label_names=tuple(names), label_ids=labels)


def refuse(corpus: Corpus, match: str, error: Any = SettingError, **settings: Any) -> None:
    with open_engine("here") as engine, pytest.raises(error, match=match):
        rankone.memorize(parted(corpus, engine, 5), **{"construction": "gated", **settings})


def test_what_needs_the_whole_corpus_is_refused() -> None:
    corpus = rankone.builtin_corpus(20)
    refuse(corpus, "line needs the whole corpus in memory", construction=None)
    refuse(corpus, "kajitsuka2024 needs the whole", construction="kajitsuka2024")
    refuse(corpus, "editable needs the whole", editable=True)
    refuse(corpus, "vectors needs the whole", vectors=np.eye(len(corpus.vocabulary)))
    refuse(corpus, "max_length is the length", positions=False, max_length=50)
    texts = Corpus.from_texts(["a b c"])
    refuse(texts, "texts .* are memorized in memory", construction=None)


def test_a_sentence_that_is_too_long_is_named() -> None:
    rows = [(["a"] * n, ["x"] * n) for n in (1, 2, 5, 3)]
    refuse(Corpus.from_sentences(rows), "sentence 3: 5 tokens", LengthError, max_length=4)


def test_strict_names_the_same_conflicts() -> None:
    rows = corpora.spelled("ab xy", "ab xx", "c x", "ab yy")
    corpus = Corpus.from_sentences(rows)
    with pytest.raises(ConflictError) as wanted:
        rankone.memorize(corpus, construction="gated", strict=True)
    with open_engine("here") as engine, pytest.raises(ConflictError) as found:
        rankone.memorize(parted(corpus, engine, 2), construction="gated", strict=True)
    assert str(found.value) == str(wanted.value)


def test_unlabelled_parts_are_refused() -> None:
    corpus = replace(
        Corpus.from_sentences(corpora.spelled("ab xy")), label_names=(), label_ids=np.full(2, -1)
    )
    refuse(corpus, "no labels", CorpusError)


def test_contexts_that_are_too_close_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the contexts that it names in memory."""
    from rankone.construct.gated import draw

    monkeypatch.setattr(draw, "OFF", -1.0)
    rng = np.random.default_rng(0)
    rows = [
        ([f"w{w}" for w in rng.integers(0, 3, 4)], [f"L{c}" for c in rng.integers(0, 2, 4)])
        for _ in range(12)
    ]
    corpus = Corpus.from_sentences(rows)
    with pytest.raises(PrecisionError) as wanted:
        rankone.memorize(corpus, construction="gated", heads=2)
    with open_engine("here") as engine, pytest.raises(PrecisionError) as found:
        rankone.memorize(parted(corpus, engine, 9), construction="gated", heads=2)
    assert str(found.value) == str(wanted.value)


@given(st.lists(st.integers(0, 4), min_size=1), st.integers(0, 40), st.integers(1, 10))
def test_the_worst_tokens_are_those_of_parts(errors: list[int], count: int, size: int) -> None:
    """Of equal errors the first; those of parts, put together, are those of all."""
    column = np.array(errors, dtype=float)
    found = worst_tokens(column, count)
    wanted = sorted(range(len(errors)), key=lambda i: (-errors[i], i))[:count]
    assert sorted(found.tolist())[:count] == sorted(wanted) or count >= len(errors)
    ranks = np.concatenate(
        [i + worst_tokens(column[i : i + size], count) for i in range(0, len(errors), size)]
    )
    merged = ranks[worst_tokens(column[ranks], count)]
    assert sorted(merged.tolist()[:count]) == sorted(wanted)


def test_a_sample_leaves_out_what_is_not_asked() -> None:
    errors = np.array([-np.inf, 0.1, -np.inf, 0.3, 0.2])
    assert sample_tokens(errors, np.random.default_rng(0)).tolist() == [1, 3, 4]


def test_the_network_as_written_runs_the_same_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with the largest errors and others at random, of all tokens that are asked."""
    ran: list[list[tuple[int, int]]] = []
    whole = verify.dense_outputs

    def watched(network: Any, corpus: Corpus, tokens: Any, wanted: Any, *rest: Any) -> Any:
        ran.append(list(zip(corpus.lines[tokens].tolist(), wanted.tolist(), strict=True)))
        return whole(network, corpus, tokens, wanted, *rest)

    monkeypatch.setattr(verify, "SAMPLE", 80)
    monkeypatch.setattr(verify, "LEAST", 80)
    monkeypatch.setattr(verify, "dense_outputs", watched)
    monkeypatch.setattr(parted_check, "dense_outputs", watched)
    rng = np.random.default_rng(1)
    labels = np.array(["_", "x", "y"])
    rows = [
        ([f"w{w}" for w in rng.integers(0, 9, n)], labels[rng.integers(0, 3, n)].tolist())
        for n in rng.integers(1, 9, 80)
    ]
    same(tasks_of(rows), 60, 2)
    one, other = ran
    assert one == other
    assert len(one) == 80
    assert min(wanted for _, wanted in one) >= 0
