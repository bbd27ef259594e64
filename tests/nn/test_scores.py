"""Scores: entities by the rules of the shared task, and what is compared with what."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import rankone
from rankone import Corpus
from rankone.nn import Architecture, Model, TokenClassifier
from rankone.nn.scores import compare, entities, score

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def corpus_of(*sentences, scheme="IOB2"):
    """Tags of each sentence in one string; the words are all different."""
    number = iter(range(10_000))
    rows = [
        ([f"w{next(number)}" for _ in tags], tags) for tags in map(str.split, sentences) if tags
    ]
    return replace(Corpus.from_sentences(rows, source="here"), scheme=scheme)


def entities_of(*sentences):
    return entities(" ".join(sentences).split(), corpus_of(*sentences))


def lookup(labels, vocabulary, given, unknown=0):
    """A model without a block that gives each word its own label: ``given[word]``, a number."""
    shape = Architecture(
        vocabulary=len(vocabulary) + 1, labels=len(labels), dim=len(labels), hidden=0
    )
    ids = [given[word] for word in vocabulary]
    table = nn.functional.one_hot(torch.tensor([*ids, unknown]), len(labels)).double()
    head = nn.Linear(len(labels), len(labels), dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.eye(len(labels)))
        head.bias.zero_()
    network = TokenClassifier.assemble(replace(shape, depth=0), nn.Parameter(table), None, [], head)
    return Model(network, tuple(vocabulary), tuple(labels))


def scored(gold, found, labels=None):
    """The scores where `found` is predicted for `gold`, both a list of sentences of tags."""
    corpus, tags = corpus_of(*gold), " ".join(found).split()
    labels = labels or sorted({*tags, *corpus.label_names})
    given = {word: labels.index(tag) for word, tag in zip(corpus.vocabulary, tags, strict=True)}
    return score(lookup(labels, corpus.vocabulary, given), corpus)


# Entities.


@pytest.mark.parametrize(
    ("sentences", "wanted"),
    {
        "none": (["O O O"], []),
        "IOB2": (["B-X I-X O B-Y"], [(0, 2, "X"), (3, 4, "Y")]),
        "IOB1": (["I-X I-X O I-Y"], [(0, 2, "X"), (3, 4, "Y")]),
        "touching in IOB2": (["B-X B-X I-X B-X"], [(0, 1, "X"), (1, 3, "X"), (3, 4, "X")]),
        "touching in IOB1": (["I-X B-X I-X B-X"], [(0, 1, "X"), (1, 3, "X"), (3, 4, "X")]),
        "touching, other types": (["I-X I-Y B-X I-Y"], [(i, i + 1, "XYXY"[i]) for i in range(4)]),
        "stray after O": (["O I-X"], [(1, 2, "X")]),
        "stray after another type": (["B-X I-Y I-Y"], [(0, 1, "X"), (1, 3, "Y")]),
        "stray at the start": (["I-X B-X"], [(0, 1, "X"), (1, 2, "X")]),
        "a border closes": (["B-X I-X", "I-X O"], [(0, 2, "X"), (2, 3, "X")]),
        "a border in IOB1": (["O I-X", "I-X"], [(1, 2, "X"), (2, 3, "X")]),
        "borders all around": (["B-X", "I-X", "B-X"], [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
        "open at the end": (["O B-X I-X"], [(1, 3, "X")]),
        "hyphens in the type": (["B-X-1 I-X-1 I-X-2"], [(0, 2, "X-1"), (2, 3, "X-2")]),
        "a type that looks like a tag": (
            ["B-O I-O", "I-I B-B"],
            [(0, 2, "O"), (2, 3, "I"), (3, 4, "B")],
        ),
    }.values(),
    ids=str,
)
def test_entities_are_those_that_the_shared_task_counts(sentences, wanted):
    assert entities_of(*sentences) == set(wanted)


@st.composite
def annotated(draw):
    """Lengths of sentences, and entities that lie within them and do not overlap."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    found, start = [], 0
    for length in lengths:
        cuts = sorted(draw(st.sets(st.integers(0, length), max_size=5)) | {0, length})
        for a, b in pairwise(cuts):
            kind = draw(st.sampled_from(["", "X", "Y"]))
            found.extend([(start + a, start + b, kind)] if kind else [])
        start += length
    return lengths, found


def spell(lengths, found, scheme):
    """Tags of the sentences: IOB2 begins all with B-, IOB1 where the entity before touches."""
    tags = ["O"] * sum(lengths)
    starts = set(np.cumsum([0, *lengths]).tolist())
    for a, b, kind in found:
        touches = any(end == a and other == kind for _, end, other in found) and a not in starts
        tags[a:b] = [f"I-{kind}"] * (b - a)
        if scheme == "IOB2" or touches:
            tags[a] = f"B-{kind}"
    bounds = np.cumsum([0, *lengths])
    return [" ".join(tags[a:b]) for a, b in pairwise(bounds)]


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2"])
@given(text=annotated())
def test_entities_are_read_as_they_were_written(scheme, text):
    lengths, found = text
    assert entities_of(*spell(lengths, found, scheme)) == set(found)


def test_a_file_has_the_same_entities_in_either_scheme(tmp_path):
    file = tmp_path / "iob1.txt"
    file.write_text("a I-X\nb I-X\nc B-X\nd O\n\ne I-X\nf I-Y\n")
    kept, other = rankone.read_corpus(file), rankone.read_corpus(file, scheme="iob2")
    assert (kept.scheme, other.scheme) == ("IOB1", "IOB2")
    for corpus in (kept, other):
        tags = [corpus.label_names[i] for i in corpus.label_ids]
        assert entities(tags, corpus) == {(0, 2, "X"), (2, 3, "X"), (4, 5, "X"), (5, 6, "Y")}


def shared_task_counts(gold, found):
    """Entities that are right, found and wanted, by the rules of the shared task's own program.

    It goes through the lines once, an empty line after each sentence counting as O for both, and
    keeps the tags of the line before.
    """

    def split(tag):
        return (tag[0], tag[2:]) if tag != "O" else ("O", "")

    def ends(before, now):
        closes = (before[0], now[0]) in {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")}
        return closes or (before[0] != "O" and before[1] != now[1])

    def begins(before, now):
        opens = (before[0], now[0]) in {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I")}
        return opens or (now[0] != "O" and before[1] != now[1])

    lines = []
    for wanted, given_tags in zip(gold, found, strict=True):
        lines += zip(map(split, wanted.split()), map(split, given_tags.split()), strict=True)
        lines.append((("O", ""), ("O", "")))
    right = guessed = correct = 0
    last, last_guess, both = ("O", ""), ("O", ""), False
    for tag, guess in lines:
        ended, guess_ended = ends(last, tag), ends(last_guess, guess)
        if both and ended and guess_ended and last[1] == last_guess[1]:
            right, both = right + 1, False
        elif both and (ended != guess_ended or tag[1] != guess[1]):
            both = False
        if begins(last, tag) and begins(last_guess, guess) and tag[1] == guess[1]:
            both = True
        correct += begins(last, tag)
        guessed += begins(last_guess, guess)
        last, last_guess = tag, guess
    return right, guessed, correct


@st.composite
def tagged_twice(draw):
    """Gold and predicted tags of the same sentences, in any order, with much in common."""
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    tag = st.sampled_from(TAGS)
    gold, found = (
        [" ".join(draw(st.lists(tag, min_size=n, max_size=n))) for n in lengths] for _ in range(2)
    )
    mixed = [
        " ".join(draw(st.sampled_from(pair)) for pair in zip(a.split(), b.split(), strict=True))
        for a, b in zip(gold, found, strict=True)
    ]
    return gold, mixed


@given(tags=tagged_twice())
def test_figures_are_those_of_the_shared_task(tags):
    gold, found = tags
    right, guessed, correct = shared_task_counts(gold, found)
    scores = scored(gold, found)
    assert scores.precision == (right / guessed if guessed else 0.0)
    assert scores.recall == (right / correct if correct else 0.0)
    if guessed or correct:
        assert scores.f1 == pytest.approx(2 * right / (guessed + correct), abs=0)
    pairs = list(zip(" ".join(gold).split(), " ".join(found).split(), strict=True))
    assert scores.right == sum(a == b for a, b in pairs)
    assert scores.tokens == len(pairs)
    assert scores.accuracy == scores.right / len(pairs)


def test_figures_by_hand():
    gold = ["B-X I-X O B-Y", "B-X O B-Y I-Y"]  # four entities
    found = ["B-X I-X O B-X", "B-X I-X B-Y I-Y"]  # four: two right, a wrong type, one too long
    scores = scored(gold, found)
    assert (scores.precision, scores.recall, scores.f1) == (0.5, 0.5, 0.5)
    assert (scores.tokens, scores.right, scores.accuracy) == (8, 6, 0.75)
    one = scored(["B-X O O", "B-X O"], ["B-X O B-X", "O O"])
    assert (one.precision, one.recall, one.f1) == (0.5, 0.5, 0.5)
    rare = scored(["B-X O O", "B-X O"], ["B-X O O", "O O"])
    assert (rare.precision, rare.recall) == (1.0, 0.5)
    assert rare.f1 == pytest.approx(2 / 3)


@given(text=annotated().filter(lambda text: text[1]))
def test_predicting_in_another_scheme_spoils_the_accuracy_but_not_f1(text):
    lengths, found = text
    scores = scored(spell(lengths, found, "IOB2"), spell(lengths, found, "IOB1"))
    assert (scores.precision, scores.recall, scores.f1) == (1.0, 1.0, 1.0)
    assert scores.right < scores.tokens  # the first entity begins with I-, not B-


def test_nothing_found_and_nothing_right():
    scores = scored(["B-X O"], ["O O"])
    assert (scores.precision, scores.recall, scores.f1) == (0.0, 0.0, 0.0)
    scores = scored(["B-X O"], ["O B-X"])
    assert (scores.precision, scores.recall, scores.f1) == (0.0, 0.0, 0.0)


# Labels and words that the model does not have.


def test_labels_that_are_no_entity_tags_have_no_f1():
    corpus = rankone.read_corpus("toy")
    assert corpus.scheme is None
    model = lookup(corpus.label_names, corpus.vocabulary, dict.fromkeys(corpus.vocabulary, 0))
    scores = score(model, corpus)
    assert scores.precision is scores.recall is scores.f1 is None
    assert scores.right == (corpus.label_ids == 0).sum()
    assert scores.to_json()["f1"] is None


def test_a_label_that_the_model_does_not_have_is_never_right_but_counts():
    scores = scored(["B-X O B-Z O"], ["B-X O O O"], labels=["O", "B-X"])
    assert (scores.right, scores.tokens) == (3, 4)
    assert (scores.precision, scores.recall, scores.f1) == (1.0, 0.5, pytest.approx(2 / 3))
    # Not even where the number of the label is that of another one, or the last one.
    scores = scored(["B-Z I-Z"], ["O B-X"], labels=["O", "B-X"])
    assert scores.right == 0


def test_labels_are_compared_by_name_not_by_number():
    scores = scored(["B-X O I-X"], ["B-X O I-X"], labels=["I-X", "O", "extra", "B-X"])
    assert scores.right == 3
    assert scores.f1 == 1.0


def test_words_are_looked_up_by_name_and_others_get_the_last_row():
    rows = [(["the", "cat", "sat"], ["O", "B-X", "O"]), (["dog", "sat"], ["B-X", "O"])]
    corpus = replace(Corpus.from_sentences(rows), scheme="IOB2")
    model = lookup(["O", "B-X"], ["sat", "the", "cat"], {"sat": 0, "the": 0, "cat": 1}, unknown=1)
    scores = score(model, corpus)
    assert (scores.unknown, scores.right, scores.f1) == (1, 5, 1.0)
    model = lookup(["O", "B-X"], ["sat", "the", "cat"], {"sat": 0, "the": 0, "cat": 1}, unknown=0)
    assert score(model, corpus).right == 4


def test_unknown_words_are_counted_as_often_as_they_come():
    rows = [(["a", "new", "new"], ["x", "y", "y"]), (["new", "other"], ["y", "y"])]
    corpus = Corpus.from_sentences(rows)
    assert score(lookup(["x", "y"], ["a"], {"a": 0}, unknown=1), corpus).unknown == 4
    every = dict.fromkeys(corpus.vocabulary, 0)
    assert score(lookup(["x", "y"], corpus.vocabulary, every), corpus).unknown == 0


def test_sentences_that_are_labelled_in_pieces_are_counted():
    corpus = Corpus.from_sentences([(["a"], ["x"]), (["a"] * 3, ["x"] * 3)], source="here")
    shape = Architecture(vocabulary=2, labels=1, dim=1, hidden=1, positions=2)
    model = Model(TokenClassifier(shape), ("a",), ("x",))
    assert score(model, corpus).in_pieces == 1


def test_the_figures_say_of_which_corpus_they_are():
    scores = scored(["B-X O"], ["B-X O"])
    assert scores.source == "here"
    assert scores.to_json() == {
        "source": "here",
        "tokens": 2,
        "unknown": 0,
        "right": 2,
        "accuracy": 1.0,
        "in_pieces": 0,
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
    }


def test_predictions_made_elsewhere_can_be_compared():
    corpus = corpus_of("B-X O", "I-X")
    model = lookup(["O", "B-X", "I-X"], ["w0"], {"w0": 0})
    scores = compare(model, corpus, np.array([1, 0, 2]), unknown=2)
    assert (scores.right, scores.unknown, scores.f1) == (3, 2, 1.0)
