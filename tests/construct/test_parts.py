"""A corpus in parts: however it is cut, the model is the same; and tokens without a label."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
import rankone
from rankone import Corpus
from rankone.construct import contextual_mapping, verify
from rankone.construct.line import cells
from rankone.construct.problem import bounds, end_to_end, pieces, pose
from rankone.corpus.parts import numbered
from rankone.corpus.targets import choose_targets
from rankone.errors import ConflictError, CorpusError, PrecisionError, SettingError
from rankone.spans import spans

MEASURED = {"max_error", "margin", "dense_error", "dense_difference"}  # in the order of sums


def cut(corpus: Corpus, at: list[int]) -> list[Corpus]:
    """The sentences between these numbers, as parts."""
    edges = sorted({0, corpus.n_sentences, *(i for i in at if 0 < i < corpus.n_sentences)})
    found = []
    for a, b in pairwise(edges):
        first, last = corpus.offsets[a], corpus.offsets[b]
        found.append(
            replace(
                corpus,
                token_ids=corpus.token_ids[first:last],
                label_ids=corpus.label_ids[first:last],
                lines=corpus.lines[first:last],
                offsets=corpus.offsets[a : b + 1] - first,
                file_ids=corpus.file_ids[a:b],
            )
        )
    return found


def same(whole: rankone.Memorized, parts: rankone.Memorized) -> None:
    assert whole.model.files() == parts.model.files()
    one, other = whole.to_json(), parts.to_json()
    for name in one.keys() - {"seconds", *MEASURED}:
        assert one[name] == other[name], name
    for name in MEASURED:
        assert one[name] == pytest.approx(other[name], abs=1e-6), name


settings = st.fixed_dictionaries(
    {
        "positions": st.booleans(),
        "causal": st.booleans(),
        "readout": st.sampled_from(["merged", "paper"]),
        "head_size": st.integers(1, 2),
        "seed": st.integers(0, 99),
        "verify": st.sampled_from(["sample", "dense"]),
    }
)


@given(corpora.corpora, st.lists(st.integers(1, 11), max_size=4), settings, st.booleans())
def test_any_cut_gives_the_same_model(
    corpus: Corpus, at: list[int], how: dict[str, Any], given_vectors: bool
) -> None:
    if given_vectors:
        how["vectors"] = np.random.default_rng(0).normal(size=(len(corpus.vocabulary), 3))
    same(rankone.memorize(corpus, **how), rankone.memorize(cut(corpus, at), **how))


@pytest.mark.parametrize("name", ["toy", "builtin"])
@pytest.mark.parametrize("at", [[30], [1, 2, 3, 4, 5], [7, 31, 59]])
def test_any_cut_of_a_larger_corpus(
    name: str, at: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where spans and tables end within a part, or reach over several."""
    corpus = rankone.read_corpus("toy") if name == "toy" else rankone.builtin_corpus(60)
    whole = rankone.memorize(corpus, verify="dense")
    same(whole, rankone.memorize(cut(corpus, at), verify="dense"))
    monkeypatch.setattr(verify, "SAMPLE", 40)
    same(rankone.memorize(corpus), rankone.memorize(cut(corpus, at)))
    few = lambda offsets, size=50: spans(offsets, size)  # noqa: E731
    monkeypatch.setattr(contextual_mapping, "spans", few)
    monkeypatch.setattr(cells, "SPAN", 20)
    same(rankone.memorize(corpus), rankone.memorize(cut(corpus, at)))


@given(corpora.corpora, st.lists(st.integers(1, 11), max_size=4), st.booleans(), st.booleans())
def test_targets_of_parts_are_those_of_the_whole(
    corpus: Corpus, at: list[int], positions: bool, causal: bool
) -> None:
    how = {"positions": positions, "causal": causal, "strict": False}
    parts = cut(corpus, at)
    whole, found = choose_targets([corpus], **how), choose_targets(parts, **how)
    for name in ("contexts", "labels"):
        joined = np.concatenate([getattr(part, name) for part in found.parts])
        assert joined.tolist() == getattr(whole.parts[0], name).tolist()
    assert [len(part.labels) for part in found.parts] == [part.n_tokens for part in parts]
    assert (found.unavoidable, found.conflicts) == (whole.unavoidable, whole.conflicts)


@given(corpora.corpora, st.lists(st.integers(1, 11), max_size=4), st.data())
def test_parts_laid_end_to_end(corpus: Corpus, at: list[int], data: st.DataObject) -> None:
    parts = cut(corpus, at)
    assert end_to_end(parts).tolist() == corpus.offsets.tolist()
    assert bounds(parts)[-1] == corpus.n_tokens
    first = data.draw(st.integers(0, corpus.n_tokens - 1))
    last = data.draw(st.integers(first + 1, corpus.n_tokens))
    held = [part.token_ids[where].tolist() for part, where in pieces(parts, first, last)]
    assert list(chain(*held)) == corpus.token_ids[first:last].tolist()
    assert all(held)
    problem = pose(parts)
    for token in (first, last - 1):
        word = corpus.vocabulary[corpus.token_ids[token]]
        assert problem.named(token) == (word, corpus.place(token))


def test_files_of_parts_are_kept_apart() -> None:
    one, two = (
        replace(corpus, files=(name,))
        for corpus, name in zip(
            cut(Corpus.from_sentences(corpora.spelled("ab xy", "ab xx")), [1]), "pq", strict=True
        )
    )
    (conflict,) = choose_targets([one, two], positions=True, causal=False, strict=False).conflicts
    assert conflict.files == {"y": ["p"], "x": ["q"]}
    with pytest.raises(ConflictError):
        rankone.memorize([one, two], strict=True)


def test_parts_with_other_words_are_no_parts() -> None:
    one, two = (Corpus.from_sentences(corpora.spelled(text)) for text in ("ab xy", "ba xy"))
    with pytest.raises(SettingError, match="number their words differently"):
        rankone.memorize([one, two])
    assert rankone.memorize(numbered([one, two])).wrong == 0


def test_parts_that_are_read_have_no_columns() -> None:
    part = Corpus.from_sentences(corpora.spelled("ab xy"))
    for parts in (part, [part]):
        with pytest.raises(SettingError, match="no columns to choose from"):
            rankone.memorize(parts, label_column=2)


def test_what_is_too_close_is_named_in_its_part() -> None:
    vectors = np.array([[1.0], [1e60], [np.nextafter(1.0, 2.0)]])  # of a, c, b
    corpus = Corpus.from_sentences(corpora.spelled("ac xy", "bc zy", "abc xxy", "bac zzx"))
    messages = []
    for parts in ([corpus], cut(corpus, [1, 2])):
        with pytest.raises(PrecisionError) as caught:
            rankone.memorize(parts, vectors=vectors)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@given(corpora.sentences(), st.randoms(use_true_random=False), settings, st.booleans())
def test_tokens_without_a_label_are_not_asked(
    sentences: corpora.Sentences, random: Any, how: dict[str, Any], given_vectors: bool
) -> None:
    """The others are as right as can be, by brute force; those may get any label."""
    corpus = Corpus.from_sentences(sentences)
    asked = np.array([random.random() < 0.6 for _ in range(corpus.n_tokens)])
    asked[random.randrange(corpus.n_tokens)] = True
    corpus = replace(corpus, label_ids=np.where(asked, corpus.label_ids, -1))
    if given_vectors:
        how["vectors"] = np.random.default_rng(0).normal(size=(len(corpus.vocabulary), 3))
    cuts = [random.randrange(12) for _ in range(2)]
    result = rankone.memorize(corpus, **how)
    same(result, rankone.memorize(cut(corpus, cuts), **how))
    look = {
        (True, False): "sequence",
        (True, True): "prefix",
        (False, False): "proportions",
        (False, True): "prefix proportions",
    }[how["positions"], how["causal"]]
    seen: dict[Any, list[int]] = {}
    labels, token = corpus.label_ids.tolist(), 0
    for words, _ in sentences:
        for k in range(len(words)):
            if labels[token] >= 0:
                seen.setdefault(corpora.LOOKS[look](words, k), []).append(labels[token])
            token += 1
    least = sum(len(group) - max(map(group.count, group)) for group in seen.values())
    found = result.model.label_ids(corpus.token_ids, corpus.offsets)
    assert (found != corpus.label_ids)[asked].sum() == result.wrong == result.unavoidable == least
    assert result.tokens == corpus.n_tokens
    if how["readout"] == "paper":
        most = len(seen) + (0 if given_vectors else 2)  # and two for the unknown word
        assert result.hidden_units == most
    if how["verify"] == "dense":
        contexts = choose_targets(
            [corpus], positions=how["positions"], causal=how["causal"], strict=False
        )
        assert result.dense_tokens == (contexts.parts[0].labels >= 0).sum()


def test_a_corpus_that_asks_nothing_is_refused() -> None:
    corpus = Corpus.from_sentences(corpora.spelled("ab xy"))
    with pytest.raises(CorpusError, match="no token has a label"):
        rankone.memorize(replace(corpus, label_ids=np.full(2, -1)))


def test_words_that_are_not_asked_cost_no_units() -> None:
    """Every sentence has its label at its last token only."""
    corpus = rankone.builtin_corpus(200)
    last = np.isin(np.arange(corpus.n_tokens), corpus.offsets[1:] - 1)
    result = rankone.memorize(replace(corpus, label_ids=np.where(last, corpus.label_ids, -1)))
    assert result.ok
    assert result.hidden_units < rankone.memorize(corpus).hidden_units / 3


def test_progress_goes_on_from_part_to_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "HELD", 8)  # several batches in each part
    corpus = Corpus.from_sentences(corpora.spelled("abcd xyxy", "ba yx", "acb xxy", "dcba xyyx"))
    shares: list[float] = []

    def told(stage: str, share: float) -> None:
        if stage == "dense":
            shares.append(share)

    rankone.memorize(cut(corpus, [1, 2]), verify="dense", progress=told)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(set(shares)) > 4
