"""The audit of a corpus in parts is that of the whole, wherever it is cut and whatever keeps it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone import Audit, Corpus, RankOneError, inspect
from rankone.audit.suspects import linear, sample
from rankone.corpus.join import join
from rankone.corpus.parted import parted
from rankone.engines import Engine, open_engine

WORDS = ["Al", "al", "AL", "b", "b1", "b2", ".", "New", "York"]
TAGS = {
    "plain": ["X", "Y", "Z"],
    "IOB1": ["O", "I-A", "B-A", "I-B"],
    "IOB2": ["O", "B-A", "I-A", "B-B"],
}


@st.composite
def files(draw: st.DrawFn, scheme: str, name: str) -> Corpus:
    """Sentences of a few words, some of them copies with other labels, or spelled otherwise."""
    row = st.tuples(st.sampled_from(WORDS), st.sampled_from(TAGS[scheme]))
    rows = draw(st.lists(st.lists(row, min_size=1, max_size=5), min_size=1, max_size=8))
    for i in draw(st.lists(st.integers(0, len(rows) - 1), max_size=4)):
        labels = draw(st.permutations([label for _, label in rows[i]]))
        spelled = draw(st.sampled_from([str, str.upper, lambda word: f"{word}-"]))
        rows.append([(spelled(w), y) for (w, _), y in zip(rows[i], labels, strict=True)])
    made = [([w for w, _ in row], [y for _, y in row]) for row in rows]
    corpus = Corpus.from_sentences(made, source=name)
    labels = corpus.label_ids.copy()
    labels[
        draw(st.lists(st.integers(0, corpus.n_tokens - 1), max_size=3, unique=True))[
            : corpus.n_tokens - 1
        ]
    ] = -1
    return replace(corpus, label_ids=labels)


@st.composite
def splits(draw: st.DrawFn) -> tuple[list[Corpus], list[Corpus]]:
    """A corpus of one or two files, and up to two other splits that belong to it."""
    scheme = draw(st.sampled_from(list(TAGS)))
    own = [draw(files(scheme, name)) for name in ("train", "more")[: draw(st.integers(1, 2))]]
    others = [draw(files(scheme, name)) for name in ("dev", "test")[: draw(st.integers(0, 2))]]
    return own, others


def figures(audit: Audit) -> dict[str, Any]:
    found = audit.to_json()
    del found["seconds"]
    return found


def of_parts(
    engine: Engine, own: list[Corpus], others: list[Corpus], size: int, **how: Any
) -> dict[str, Any]:
    one, *rest = [
        [parted(corpus, engine, size) for corpus in corpora_] for corpora_ in (own, others)
    ]
    return figures(inspect(one, against=rest[0], **how))


def alike(own: list[Corpus], others: list[Corpus]) -> bool:
    """Whether the files may be joined at all."""
    try:
        join([*own, *others])
    except RankOneError:
        return False
    return True


@given(splits(), st.integers(1, 12), st.integers(1, 4))
def test_an_audit_of_parts_is_that_of_the_whole(
    found: tuple[list[Corpus], list[Corpus]], size: int, buckets: int
) -> None:
    if alike(*found):
        engine = open_engine("here")
        engine.workers = buckets
        own, others = found
        assert of_parts(engine, own, others, size) == figures(inspect(own, against=others))


@pytest.mark.parametrize("scheme", TAGS)
def test_suspects_of_parts_are_those_of_the_whole(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a sample that is smaller than the corpus, so that what is drawn matters."""
    monkeypatch.setattr(sample, "SAMPLE", 60)
    monkeypatch.setattr(linear, "FOLDS", 2)
    made = [(words, labels) for words, labels in _sentences(scheme)]
    own = [Corpus.from_sentences(made[a:b], source=f"{a}") for a, b in ((0, 30), (30, 50))]
    others = [Corpus.from_sentences(made[50:], source="dev")]
    own[0].label_ids[[3, 30, 31]] = -1  # nothing is asked of them
    expected = figures(inspect(own, against=others, suspects=4, above=0.3))
    assert len(expected["suspects"]) > 4
    assert {row["file"] for s in expected["suspects"] for row in s["evidence"]} >= {"0", "30"}
    for size, buckets in ((11, 3), (90, 2)):
        engine = open_engine("here")
        engine.workers = buckets
        assert of_parts(engine, own, others, size, suspects=4, above=0.3) == expected
    with open_engine("disk", scratch=tmp_path) as engine:
        assert of_parts(engine, own, others, 64, suspects=4, above=0.3) == expected


def _sentences(scheme: str) -> list[tuple[list[str], list[str]]]:
    """Names with a rule, which some of them break."""
    names = TAGS[scheme]
    made = []
    for i in range(70):
        place = f"{'New ' * (i % 3 == 0)}{'Oslo Rome York Bonn'.split()[i % 4]}".split()
        person = "Anna Bo Cy".split()[i % 3]
        first, inner = ("I-A", "I-A") if scheme == "IOB1" else (names[1], names[2])
        labels = [first, *[inner] * (len(place) - 1)]
        other = "I-B" if scheme == "IOB1" else names[3 % len(names)]
        if i % 19 == 5:
            labels[-1], other = names[0], first
        made.append(([person, "in", *place, "."], [other, names[0], *labels, names[0]]))
    return made
