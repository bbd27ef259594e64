"""Entity scores against seqeval, which is compatible with the shared task's conlleval.

seqeval without a mode reads tags as the shared task does, and so do we: I-X goes on with an open X
of its sentence and opens one everywhere else (after O, after another type, at the start). That is
IOB1 as it is meant, and for IOB2 it says what a stray I-X counts as. (Its mode "strict" drops stray
tags instead.) Where a figure is 0 / 0 both say 0; seqeval warns.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import accuracy_score, f1_score, precision_score, recall_score
from sklearn.exceptions import UndefinedMetricWarning

from rankone import Corpus
from rankone.nn import Architecture, Model, TokenClassifier
from rankone.nn.scores import Scores, compare

Tags = list[list[str]]
TYPES = ["PER", "creative-work", "creative", "work", "_", "B"]  # "_" is seqeval's name for no type


def scores(gold: Tags, found: Tags) -> Scores:
    """Those of rankone, for a model that has labels of its own, in another order."""
    labels = tuple(sorted({*chain.from_iterable(found), "B-more"}))
    network = TokenClassifier(Architecture(vocabulary=1, labels=len(labels), dim=1, hidden=0))
    corpus = Corpus.from_sentences([(["word"] * len(tags), tags) for tags in gold])
    ids = np.array([labels.index(tag) for tag in chain.from_iterable(found)])
    return compare(Model(network, (), labels), replace(corpus, scheme="IOB2"), ids, unknown=0)


def assert_same(gold: Tags, found: Tags) -> None:
    ours = scores(gold, found)
    assert ours.precision == precision_score(gold, found, zero_division=0)
    assert ours.recall == recall_score(gold, found, zero_division=0)
    # seqeval takes F1 from the rounded precision and recall.
    assert ours.f1 == pytest.approx(f1_score(gold, found, zero_division=0), rel=1e-14, abs=0)
    assert ours.accuracy == accuracy_score(gold, found)


LENGTHS = st.lists(st.integers(1, 8), min_size=1, max_size=5)


@st.composite
def any_tags(draw: st.DrawFn, lengths: list[int]) -> Tags:
    """Tags in any order, most of them malformed; few types, so that many touch."""
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2))
    tag = st.sampled_from(["O", *(f"{kind}-{type_}" for kind in "BI" for type_ in types)])
    return [draw(st.lists(tag, min_size=n, max_size=n)) for n in lengths]


@st.composite
def well_formed(draw: st.DrawFn, lengths: list[int], scheme: str) -> Tags:
    """Entities that do not overlap, written in IOB2 or IOB1."""
    types, sentences = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2)), []
    for n in lengths:
        cuts, tags, before = sorted(draw(st.sets(st.integers(1, n))) | {0, n}), [], ""
        for a, b in pairwise(cuts):
            type_ = draw(st.sampled_from(["", *types]))
            first = "B" if scheme == "IOB2" or type_ == before else "I"
            tags += (
                [f"{first}-{type_}", *[f"I-{type_}"] * (b - a - 1)] if type_ else ["O"] * (b - a)
            )
            before = type_
        sentences.append(tags)
    return sentences


@st.composite
def tagged_twice(draw: st.DrawFn, *kinds: str) -> tuple[Tags, Tags]:
    """Gold tags, and predicted ones that agree with them in places."""

    def tags(lengths: list[int], kind: str) -> Tags:
        return draw(any_tags(lengths) if kind == "any" else well_formed(lengths, kind))

    lengths = draw(LENGTHS)
    gold, other = (tags(lengths, kind) for kind in kinds)
    keep = draw(st.lists(st.booleans(), min_size=len(gold), max_size=len(gold)))
    found = [a if kept else b for a, b, kept in zip(gold, other, keep, strict=True)]
    if kinds[1] == "any":  # well-formed sentences stay whole; here single tags are kept too
        found = [
            [draw(st.sampled_from(pair)) for pair in zip(*pair_of, strict=True)]
            for pair_of in zip(gold, found, strict=True)
        ]
    return gold, found


@pytest.mark.parametrize(
    "kinds", [("IOB2", "IOB2"), ("IOB1", "IOB1"), ("IOB1", "IOB2"), ("IOB2", "any"), ("any", "any")]
)
@given(data=st.data())
def test_figures_are_those_of_seqeval(kinds: tuple[str, str], data: st.DataObject) -> None:
    assert_same(*data.draw(tagged_twice(*kinds)))


BY_HAND = {
    "I-X after O": ("O B-X I-X", "O I-X I-X", (1, 1)),
    "I-X at the start": ("B-X O", "I-X O", (1, 1)),
    "I-X after another type": ("B-X B-Y", "B-X I-Y", (1, 1)),
    "I-X goes on with X": ("B-X B-X", "B-X I-X", (0, 0)),
    "a sentence ends an entity": ("B-X | B-X", "B-X | I-X", (1, 1)),
    "hyphens in a type": ("B-a-b I-a-b", "B-a-b I-a-c", (0, 0)),
    "a type that begins alike": ("B-a-b B-a", "B-a-b I-a", (1, 1)),
    "half of what is found": ("B-X O O", "B-X O B-X", (0.5, 1)),
    "half of what is wanted": ("B-X O B-X", "B-X O O", (1, 0.5)),
}


@pytest.mark.parametrize(("gold", "found", "figures"), BY_HAND.values(), ids=BY_HAND)
def test_by_hand(gold: str, found: str, figures: tuple[float, float]) -> None:
    """So that the two are not wrong in the same way."""
    wanted, given_tags = (
        [sentence.split() for sentence in text.split("|")] for text in (gold, found)
    )
    ours = scores(wanted, given_tags)
    assert (ours.precision, ours.recall) == figures
    assert_same(wanted, given_tags)


@pytest.mark.parametrize(
    ("gold", "found", "undefined"),
    [
        ("O O", "O O", {precision_score, recall_score, f1_score}),
        ("B-X O", "O O", {precision_score}),
        ("O O", "O B-X", {recall_score}),
        ("B-X O", "O B-X", set()),
    ],
)
def test_nothing_to_count(gold: str, found: str, undefined: set[object]) -> None:
    ours = scores([gold.split()], [found.split()])
    for score, figure in (
        (precision_score, ours.precision),
        (recall_score, ours.recall),
        (f1_score, ours.f1),
    ):
        if score in undefined:
            with pytest.warns(UndefinedMetricWarning):
                assert score([gold.split()], [found.split()]) == 0.0
        else:
            assert score([gold.split()], [found.split()]) == 0.0
        assert figure == 0.0
