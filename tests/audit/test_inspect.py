"""The audit: against brute force, and against the published figures of real corpora."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import corpora
import rankone
from rankone import Corpus
from rankone.corpus import contexts
from rankone.corpus.tallies import best_targets


@given(corpora.sentences())
def test_ceilings_equal_brute_force(sentences: corpora.Sentences) -> None:
    audit = rankone.inspect(Corpus.from_sentences(sentences))
    tokens = sum(len(words) for words, _ in sentences)
    for name, ceiling in audit.ceilings.items():
        assert ceiling.errors == corpora.errors(sentences, corpora.LOOKS[name]), name
        assert ceiling.accuracy == pytest.approx(1 - ceiling.errors / tokens)


@given(corpora.sentences())
def test_contexts_are_the_first_token_that_looks_the_same(sentences: corpora.Sentences) -> None:
    corpus = Corpus.from_sentences(sentences)
    for function, name in (
        (contexts.by_token, "token"),
        (contexts.by_set, "set"),
        (contexts.by_multiset, "multiset"),
        (contexts.by_proportions, "proportions"),
        (contexts.by_prefix_proportions, "prefix proportions"),
        (contexts.by_sequence, "sequence"),
        (contexts.by_prefix, "prefix"),
    ):
        seen: dict[Any, int] = {}
        looks = [corpora.LOOKS[name](words, k) for words, _ in sentences for k in range(len(words))]
        expected = [seen.setdefault(look, i) for i, look in enumerate(looks)]
        assert function(corpus).tolist() == expected, name


@pytest.mark.parametrize("number", [0, 1])
def test_sentences_that_collide_in_their_number_are_still_told_apart(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    class Stuck:
        """By 1 all sentences of one length get the same number, by 0 all sentences."""

        def integers(self, _: int, size: int, dtype: Any) -> np.ndarray[Any, Any]:
            return np.full(size, number, dtype=dtype)

    monkeypatch.setattr(np.random, "default_rng", lambda *_: Stuck())
    corpus = Corpus.from_sentences(corpora.spelled("ab xy", "ba xy", "ab xy"))
    assert contexts.by_sequence(corpus).tolist() == [0, 1, 2, 3, 0, 1]
    for later in ("ac xy", "cb xy"):  # two that differ in one word, either way
        for pair in (("ab xy", later), (later, "ab xy")):
            corpus = Corpus.from_sentences(corpora.spelled(*pair))
            assert contexts.by_sequence(corpus).tolist() == [0, 1, 2, 3]
    # The second has the words of the first and of what follows it.
    corpus = Corpus.from_sentences(corpora.spelled("ab xy", "abab xyxy", "ab xy"))
    assert contexts.by_sequence(corpus).tolist() == [0, 1, 2, 3, 4, 5, 0, 1]


def test_copies_are_found_whichever_run_of_sentences_they_stand_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spans = contexts.spans
    monkeypatch.setattr(contexts, "spans", lambda offsets: spans(offsets, 4))
    corpus = Corpus.from_sentences(corpora.spelled("ab xy", "ba xy", "abc xyz", "ab xy", "ba xy"))
    assert contexts.by_sequence(corpus).tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3]


@given(corpora.sentences())
def test_the_best_label_is_the_most_frequent_one_and_of_equals_the_first(
    sentences: corpora.Sentences,
) -> None:
    corpus = Corpus.from_sentences(sentences)
    labels = [label for _, row in sentences for label in row]
    for groups in (contexts.by_token(corpus), contexts.by_sequence(corpus)):
        found = best_targets(groups, corpus.label_ids)
        alike = [[labels[j] for j in np.flatnonzero(groups == group)] for group in groups]
        assert [corpus.label_names[i] for i in found.labels] == [
            max(dict.fromkeys(row), key=row.count) for row in alike
        ]
        assert found.members.tolist() == [i for i, row in enumerate(alike) if len({*row}) > 1]


LOOKS = {
    contexts.by_sequence,
    contexts.by_prefix,
    contexts.by_proportions,
    contexts.by_prefix_proportions,
}


@pytest.mark.parametrize(
    ("how", "same"),
    [
        ({"positions": True, "causal": False}, contexts.by_sequence),
        ({"positions": True, "causal": True}, contexts.by_prefix),
        ({"positions": False, "causal": False}, contexts.by_proportions),
        ({"positions": False, "causal": False, "depth": 2}, contexts.by_proportions),
        ({"positions": False, "causal": True}, contexts.by_prefix_proportions),
    ],
)
def test_what_attention_sees(how: dict[str, Any], same: Callable[[Corpus], Any]) -> None:
    corpus = Corpus.from_sentences(corpora.spelled("ab xy", "ba xy", "aabb xxyy", "abab xyxy"))
    assert contexts.visible_contexts(corpus, **how).tolist() == same(corpus).tolist()
    others = (by(corpus).tolist() for by in LOOKS - {same})
    assert same(corpus).tolist() not in others


def nested(tokens: list[str], depth: int) -> list[Any]:
    """What layer after layer of causal attention sees of every token, written out."""
    classes: list[Any] = list(tokens)
    for _ in range(depth):
        classes = [(own, corpora.shares(classes[: k + 1])) for k, own in enumerate(classes)]
    return classes


@pytest.mark.parametrize("depth", [2, 3])
@given(sentences=corpora.sentences(max_sentences=6, max_length=5))
def test_what_deep_causal_attention_sees(depth: int, sentences: corpora.Sentences) -> None:
    corpus = Corpus.from_sentences(sentences)
    classes = [each for tokens, _ in sentences for each in nested(tokens, depth)]
    first = [classes.index(each) for each in classes]
    found = contexts.visible_contexts(corpus, positions=False, causal=True, depth=depth)
    assert found.tolist() == first


def test_deep_causal_attention_does_not_count_the_first_word() -> None:
    """All of these tokens have seen nothing but a; b has seen different shares of it."""
    corpus = Corpus.from_sentences(corpora.spelled("aa xx", "ab xy", "aab xxy"))
    found = contexts.visible_contexts(corpus, positions=False, causal=True, depth=9)
    assert found.tolist() == [0, 0, 0, 3, 0, 0, 6]


def test_conflicts_name_every_line_by_label(tmp_path: Path) -> None:
    path = tmp_path / "odd.conll"
    path.write_text("a X\nb Y\n\na X\nb Z\n\na X\nb Y\n\nb Q\n")
    audit = rankone.inspect(rankone.read_corpus(path))
    (conflict,) = audit.conflicts
    assert (conflict.token, conflict.position) == ("b", 2)
    assert conflict.labels == {"Y": [2, 8], "Z": [5]}
    assert str(conflict) == "'b' (token 2): Y on lines 2, 8; Z on line 5"
    assert (audit.disagreeing_sequences, audit.disagreeing_copies) == (1, 3)
    assert (audit.distinct_sentences, audit.surplus_copies) == (2, 2)
    assert not audit.ok


def test_copies_are_at_odds_whichever_label_was_seen_first() -> None:
    audit = rankone.inspect(corpora.spelled("c x", "ab yx", "ab xx", "c x"))
    assert (audit.disagreeing_sequences, audit.disagreeing_copies) == (1, 2)
    assert [conflict.labels for conflict in audit.conflicts] == [{"y": [2], "x": [3]}]


def test_counts_of_a_small_corpus() -> None:
    audit = rankone.inspect(Corpus.from_sentences(corpora.spelled("d z", "aaab xxxy", "abcd xyqy")))
    assert (audit.sentences, audit.tokens, audit.vocabulary) == (3, 9, 4)
    assert (audit.longest, audit.longest_line) == (4, 2)
    assert list(audit.labels.items()) == [("x", 4), ("y", 3), ("z", 1), ("q", 1)]
    assert audit.sentences_with_repeated_token == 1
    assert audit.mean_length == 3
    assert (audit.distinct_sentences, audit.surplus_copies) == (3, 0)
    assert audit.ok
    assert audit.conflicts == ()


def test_an_unlabelled_corpus_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("a\nb\n")
    with pytest.raises(rankone.RankOneError, match="no labels"):
        rankone.inspect(rankone.read_corpus(path, labelled=False))


CONLL = ("conll2003/eng.train", 14041, 203621, 113)
EWT = ("ud-english-ewt/en_ewt-ud-train.conllu.gz", 12544, 204577, 159)
WNUT = ("wnut17/wnut17train.conll", 3394, 62730, 41)
FIGURES = [  # corpus, how it is read, words, labels, errors of the ceilings
    (
        CONLL,
        {},
        23623,
        8,
        {"token": 3438, "set": 271, "multiset": 271, "sequence": 2, "prefix": 334},
    ),
    (
        CONLL,
        {"scheme": "iob2"},
        23623,
        9,
        {"token": 5246, "set": 328, "multiset": 328, "sequence": 2, "prefix": 334},
    ),
    (
        CONLL,
        {"scheme": "iob2", "lower": True},
        21009,
        9,
        {"token": 7785, "set": 439, "multiset": 439, "sequence": 10, "prefix": 455},
    ),
    (
        CONLL,
        {"label_column": 2},
        23623,
        45,
        {"token": 9575, "set": 367, "multiset": 364, "sequence": 0, "prefix": 622},
    ),
    (WNUT, {}, 14878, 13, {"token": 822, "set": 83, "multiset": 83, "sequence": 20, "prefix": 48}),
    (
        EWT,
        {},
        19674,
        17,
        {"token": 14578, "set": 1342, "multiset": 1342, "sequence": 7, "prefix": 660},
    ),
]


@pytest.mark.parametrize(("corpus", "how", "words", "labels", "errors"), FIGURES)
def test_figures_of_the_shared_corpora(
    shared: Path,
    corpus: tuple[str, int, int, int],
    how: dict[str, Any],
    words: int,
    labels: int,
    errors: dict[str, int],
) -> None:
    name, sentences, tokens, longest = corpus
    audit = rankone.inspect(rankone.read_corpus(shared / name, **how))
    assert (audit.sentences, audit.tokens, audit.longest) == (sentences, tokens, longest)
    assert (audit.vocabulary, len(audit.labels)) == (words, labels)
    assert {key: audit.ceilings[key].errors for key in errors} == errors


@pytest.mark.parametrize(
    ("corpus", "repeats", "surplus", "at_odds"),
    [(CONLL, 6219, 1350, (2, 7)), (WNUT, 1957, 103, (11, 24)), (EWT, 5851, 810, (5, 11))],
)
def test_repeats_of_the_shared_corpora(
    shared: Path,
    corpus: tuple[str, int, int, int],
    repeats: int,
    surplus: int,
    at_odds: tuple[int, int],
) -> None:
    audit = rankone.inspect(rankone.read_corpus(shared / corpus[0]))
    assert audit.sentences_with_repeated_token == repeats
    assert audit.surplus_copies == surplus
    assert (audit.disagreeing_sequences, audit.disagreeing_copies) == at_odds


@pytest.mark.parametrize(
    ("name", "sentences", "tokens", "words", "longest"),
    [
        ("conll2003/eng.testa", 3250, 51362, 9966, 109),
        ("conll2003/eng.testb", 3453, 46435, 9488, 124),
        ("wnut17/emerging.dev.conll", 1009, 15733, 4102, 82),
        ("wnut17/emerging.test.annotated", 1287, 23394, 6348, 105),
        ("ud-english-ewt/en_ewt-ud-dev.conllu", 2001, 25147, 5494, 75),
        ("ud-english-ewt/en_ewt-ud-test.conllu", 2077, 25094, 5629, 81),
    ],
)
def test_counts_of_the_other_splits(
    shared: Path, name: str, sentences: int, tokens: int, words: int, longest: int
) -> None:
    corpus = rankone.read_corpus(shared / name)
    assert (corpus.n_sentences, corpus.n_tokens) == (sentences, tokens)
    assert (len(corpus.vocabulary), corpus.longest) == (words, longest)


def test_iob2_gives_the_published_entity_counts(shared: Path) -> None:
    labels = rankone.inspect(rankone.read_corpus(shared / CONLL[0], scheme="iob2")).labels
    assert {kind: labels[f"B-{kind}"] for kind in ("LOC", "MISC", "ORG", "PER")} == {
        "LOC": 7140,
        "MISC": 3438,
        "ORG": 6321,
        "PER": 6600,
    }


def test_the_mean_length_is_no_whole_number() -> None:
    audit = rankone.inspect([(["a"], ["X"]), (["a", "b"], ["X", "X"])])
    assert audit.mean_length == 1.5
