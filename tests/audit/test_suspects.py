"""Suspects: planted errors are found, and said in a way that a person can act on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankone
from rankone import Corpus, RankOneError, inspect
from rankone.arrays import Floats
from rankone.audit.suspects.expectation import SHARES, Expectation, Expected, misfit, mix
from rankone.audit.suspects.tags import Tags
from rankone.audit.suspects.view import View, surveyed
from rankone.audit.suspects.votes import Numbers, Scores
from rankone.corpus.parted import parted
from rankone.engines import open_engine

PEOPLE = "Anna Bruno Clara David Emma Felix Greta Hugo".split()
PLACES = "Oslo Paris Quito Rome Sofia Tokyo Vienna York".split()


def sentences() -> list[tuple[list[str], list[str]]]:
    """Who lives where, who travels where: 128 sentences without an error."""
    made = []
    for i, person in enumerate(PEOPLE):
        for j, place in enumerate(PLACES):
            other = PLACES[(i + j + 3) % len(PLACES)]
            made.append(([person, "lives", "in", place, "."], ["B-PER", "O", "O", "B-LOC", "O"]))
            made.append(
                (
                    [person, "travels", "to", "New", other, "today"],
                    ["B-PER", "O", "O", "B-LOC", "I-LOC", "O"],
                )
            )
    return made


def planted(where: int, labels: list[str]) -> Corpus:
    made = sentences()
    made[where] = (made[where][0], labels)
    return Corpus.from_sentences(made)


def test_an_error_comes_first_with_its_proposal_and_its_evidence() -> None:
    corpus = planted(40, ["B-PER", "O", "O", "B-PER", "O"])
    first, second = inspect(corpus, suspects=2).suspects
    assert (first.line, first.position, first.label, first.proposal) == (41, 4, "B-PER", "B-LOC")
    assert first.token == corpus.sentences[40].tokens[3]
    assert first.sentence == tuple(corpus.sentences[40].tokens)
    assert first.score > 0.5 > second.score
    assert first.evidence
    for row in first.evidence:
        other = corpus.sentences[row.line - 1]
        assert row.label == "B-LOC"
        assert other.labels[other.tokens.index(first.token)] == "B-LOC"
        assert f"[{first.token}]" in row.text


@pytest.mark.parametrize(
    ("labels", "position", "label", "proposal"),
    [
        (["B-PER", "O", "O", "B-PER", "I-PER", "O"], 4, "B-PER I-PER", "B-LOC I-LOC"),
        (["B-PER", "O", "O", "B-LOC", "O", "O"], 5, "O", "I-LOC"),
        (["B-PER", "O", "O", "O", "B-LOC", "O"], 4, "O B-LOC", "B-LOC I-LOC"),
        (["O", "O", "O", "B-LOC", "I-LOC", "O"], 1, "O", "B-PER"),
        (["B-PER", "O", "O", "B-LOC", "I-LOC", "B-LOC"], 6, "B-LOC", "O"),
    ],
)
def test_an_entity_is_one_finding(
    labels: list[str], position: int, label: str, proposal: str
) -> None:
    corpus = planted(41, labels)
    first = inspect(corpus, suspects=1).suspects[0]
    assert first.sentence == tuple(corpus.sentences[41].tokens)
    assert (first.position, first.label, first.proposal) == (position, label, proposal)
    assert len(first.lines) == len(label.split())


def test_entities_in_iob1_are_judged_alike_and_proposed_in_iob1(tmp_path: Path) -> None:
    path = tmp_path / "iob1.conll"
    rows = []
    for k, (tokens, labels) in enumerate(sentences()):
        labels = [f"I-{label[2:]}" if label != "O" else label for label in labels]
        labels[3] = "I-PER" if k == 40 else labels[3]
        rows += [f"{token} {label}" for token, label in zip(tokens, labels, strict=True)] + [""]
    path.write_text("\n".join(rows) + "\n")
    corpus = rankone.read_corpus(path)
    assert corpus.scheme == "IOB1"
    first = inspect(corpus, suspects=1).suspects[0]
    assert (first.label, first.proposal) == ("I-PER", "I-LOC")
    assert rows[first.line - 1] == f"{first.token} I-PER"
    assert first.file == str(path)
    # A name that touches another of its type is spelled with B-.
    tags = Tags.of(corpus)
    assert tags.spelled(["B-X", "B-X", "I-X", "B-Y", "O"]) == ["I-X", "B-X", "I-X", "I-Y", "O"]


def test_parts_of_speech() -> None:
    made = []
    for i in range(120):
        verb = ("runs", "sleeps", "waits")[i % 3]
        made.append((["the", f"dog{i % 7}", verb, "."], ["DET", "NOUN", "VERB", "PUNCT"]))
    made[50] = (made[50][0], ["DET", "VERB", "VERB", "PUNCT"])
    first = inspect(made, suspects=1).suspects[0]
    assert (first.line, first.position, first.proposal) == (51, 2, "NOUN")


def test_other_splits_vote_but_are_not_listed() -> None:
    bad = Corpus.from_sentences(
        [(["Anna", "lives", "in", "Oslo", "."], ["B-PER", "O", "O", "B-PER", "O"])], source="dev"
    )
    good = Corpus.from_sentences(sentences(), source="train")
    audit = inspect(bad, against=good, suspects=100)
    assert audit.suspects[0].position == 4
    assert audit.suspects[0].file == "dev"
    assert {row.file for row in audit.suspects[0].evidence} == {"train"}
    assert {suspect.file for suspect in audit.suspects} == {"dev"}


def test_findings_do_not_overlap_and_are_in_order() -> None:
    corpus = rankone.read_corpus("builtin")
    found = inspect(corpus, suspects=300).suspects
    assert len(found) == 300
    places = [
        (s.file, s.lines[0] if s.file else s.line, s.position + k)
        for s in found
        for k in range(len(s.lines))
    ]
    assert len(places) == len(set(places))
    scores = [suspect.score for suspect in found]
    assert scores == sorted(scores, reverse=True)
    assert inspect(corpus, suspects=20).suspects == found[:20]


@pytest.mark.parametrize(
    "made",
    [
        [(["a"], ["X"])],
        [(["a"], ["X"]), (["a"], ["Y"])],
        [(["a", "b"], ["O", "O"])],
        [(["a"], ["O"]), (["b"], ["B-X"])],
    ],
)
def test_tiny_corpora(made: list[tuple[list[str], list[str]]]) -> None:
    labels = {label for _, row in made for label in row}
    for suspect in inspect(made, suspects=10).suspects:
        assert suspect.proposal in labels
        assert suspect.proposal != suspect.label


def test_a_model_speaks_too() -> None:
    """Two labels that the files cannot decide between."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    words = ["".join("abcdefghij"[int(digit)] for digit in str(i)) for i in range(400)]
    corpus = Corpus.from_sentences([([w], ["XY"[y]]) for w, y in zip(words, labels, strict=True)])
    chances = np.full((400, 2), 0.05)
    chances[np.arange(400), corpus.label_ids] = 0.95
    wrong = [17, 230, 311]
    chances[wrong] = chances[wrong, ::-1]
    found = inspect(corpus, suspects=3, probabilities=chances).suspects
    assert sorted(suspect.line - 1 for suspect in found) == wrong


def test_a_model_that_knows_nothing_has_no_say() -> None:
    corpus = planted(40, ["B-PER", "O", "O", "B-PER", "O"])
    chances = np.full((corpus.n_tokens, len(corpus.label_names)), 1 / len(corpus.label_names))
    found = inspect(corpus, suspects=5, probabilities=chances).suspects
    assert [s.line for s in found] == [s.line for s in inspect(corpus, suspects=5).suspects]


def blend(one: Scores, two: Scores, labels: Numbers) -> Scores:
    return mix(one, two, SHARES[int(misfit(one, two, labels).argmin())])


def test_two_models_are_blended_by_what_they_explain() -> None:
    labels = np.tile([0, 1], 100).astype(np.int32)
    good = np.where(np.eye(2)[labels] > 0, 0.8, 0.2)
    ill = np.full((200, 2), 0.5)
    one, two = (np.log(chances).astype(np.float32) for chances in (good, ill))
    assert blend(one, two, labels) == pytest.approx(one, abs=1e-6)
    assert blend(two, one, labels) == pytest.approx(one, abs=1e-6)
    # Of two that know a half each, both have a say: log odds of 2 become 1 everywhere.
    first = np.arange(200) < 100
    halves = [np.where(side[:, None], one, two) for side in (first, ~first)]
    mixed = np.exp(blend(halves[0], halves[1], labels))[np.arange(200), labels]
    assert mixed == pytest.approx(np.full(200, 2 / 3), abs=1e-6)


def test_no_token_is_judged_by_its_own_sentence() -> None:
    one, two = (
        planted(40, ["B-PER", "O", "O", "B-LOC", "O"]),
        planted(40, ["O", "O", "O", "O", "O"]),
    )
    scores = [expected(one), expected(replace(one, label_ids=_renamed(two, one)))]
    a, b = one.offsets[40:42]
    assert (scores[0][a:b] == scores[1][a:b]).all()
    assert (scores[0] != scores[1]).any()


def expected(corpus: Corpus) -> Floats:
    whole = parted(corpus, open_engine("here"), corpus.n_tokens)
    seen, (place,) = surveyed(whole)
    ground, engine = whole.engine.share(seen), whole.engine
    tags = Tags.of(corpus)
    folds, models, _, _ = Expectation.of(whole, ground, [place], tags, None).of_part(0)
    view = View.of(seen, engine.take(whole.parts[0].columns), place)
    model = Expected.of(engine.take(folds), [engine.take(ref) for ref in models], None, 0.0)
    return model.scores(view, slice(None), slice(None))


def _renamed(corpus: Corpus, like: Corpus) -> np.ndarray:
    number = [like.label_names.index(name) for name in corpus.label_names]
    return np.array(number, dtype=np.int32)[corpus.label_ids]


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"suspects": -1}, "suspects=-1"),
        ({"suspects": 0, "probabilities": np.ones((2, 1))}, "suspects=0 with probabilities"),
        ({"suspects": 1, "probabilities": np.ones((3, 2)) / 2}, "3 tokens"),
        ({"suspects": 1, "probabilities": np.array([[3.0, -2.0]] * 2)}, "negative"),
    ],
)
def test_settings_that_cannot_be_used(how: dict[str, Any], what: str) -> None:
    with pytest.raises(RankOneError, match=what):
        inspect([(["a", "b"], ["X", "Y"])], **how)
