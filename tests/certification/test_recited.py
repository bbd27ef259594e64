"""Documents that are recited: what certificates say is what greedy decoding does."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf
from tests.certification import judge
from tests.certification.gated_models import changed

import rankone
from rankone import Corpus
from rankone.certification import check_certificate, read_certificate
from rankone.certification.certify import right_and_wrong
from rankone.certification.float_evaluation import Readings
from rankone.certification.recited import Recited
from rankone.corpus.tasks import END
from rankone.errors import CertificateError
from rankone.nn import Model

TEXTS = (
    "the cat and the dog and the cat sat",
    "a dog and the cat",
    "a dog and a dog sat",
    "no cat sat here",
    "no",
)


@cache
def made(window: int, dtype: str = "float64") -> tuple[Model, Corpus]:
    corpus = Corpus.from_texts(TEXTS, window=window)
    return rankone.memorize(corpus, dtype=dtype).model, corpus  # type: ignore[arg-type]


def goes_on(model: Model, prompt: list[str], most: int) -> list[str]:
    """Greedy decoding, with the whole network run again for every token."""
    tokens = list(prompt)
    while len(tokens) < most and tokens[-1] != END:
        tokens.append(model.predict([tokens])[0][-1])
    return tokens


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("window", [0, 1, 3])
def test_documents_that_greedy_decoding_recites(window: int, dtype: str) -> None:
    model, corpus = made(window, dtype)
    found = rankone.certify(model, corpus)
    assert found.ok
    whole = branches = 0
    for sentence in corpus.sentences:
        document = [*sentence.tokens, END]
        start = 2 if window else 1
        whole += goes_on(model, document[:start], len(document)) == document
        labels = model.predict([sentence.tokens])[0]
        for i in range(start - 1, len(labels)):
            branches += labels[i] != document[i + 1]
    assert (found.documents, found.recited, found.branches) == (5, whole, branches)
    assert found.branches == found.wrong
    assert (found.recited == 5) == (found.branches == 0)


def test_prompts_that_begin_anywhere() -> None:
    """K tokens of a recited document are enough."""
    window = 3
    model, corpus = made(window)
    for sentence in corpus.sentences:
        document = [*sentence.tokens, END]
        if goes_on(model, document[:2], len(document)) != document:
            continue
        for i in range(1, len(document) - window):
            rest = document[i:]
            assert goes_on(model, rest[:window], len(rest)) == rest


def test_one_wrong_token_of_a_document() -> None:
    """One document less, one branch more; the others stay."""
    model, corpus = made(3)
    before = rankone.certify(model, corpus)
    own = next(
        j
        for j, s in enumerate(corpus.sentences)
        if goes_on(model, list(s.tokens[:2]), 20) == [*s.tokens, END] and len(s.tokens) > 4
    )
    labels = corpus.label_ids.copy()
    at = int(corpus.offsets[own]) + 2
    labels[at] = (labels[at] + 1) % len(corpus.label_names)
    after = rankone.certify(model, replace(corpus, label_ids=labels))
    assert before.recited is not None
    assert before.branches is not None
    assert (after.recited, after.branches) == (before.recited - 1, before.branches + 1)
    assert not after.ok


def test_nothing_is_said_of_other_tasks() -> None:
    sentences = [(["a", "b"], ["X", "Y"])]
    model = rankone.memorize(sentences, causal=True).model
    found = rankone.certify(model, sentences)
    assert (found.documents, found.recited, found.branches, found.excess) == (None,) * 4


def test_ties_are_no_proof() -> None:
    """Both labels have the same logit: neither is certain, and the run's choice is its own."""
    model, corpus = made(3)

    def same(network: object) -> None:
        network.head.weight[1] = network.head.weight[0]  # type: ignore[attr-defined]
        network.head.bias[1] = network.head.bias[0]  # type: ignore[attr-defined]

    found = rankone.certify(changed(model, same), corpus, cap=40)
    assert found.outcome.value != "certified"
    used = {corpus.label_names[0], corpus.label_names[1]}
    surely = sum(not used & set(s.labels) for s in corpus.sentences)
    assert found.recited is not None
    assert found.recited <= surely


@pytest.mark.parametrize(("window", "dtype"), [(2, "float32"), (1, "float64")])
def test_cross_entropy(window: int, dtype: str) -> None:
    """The bound holds in mpmath, and is small."""
    model, corpus = made(window, dtype)
    found = rankone.certify(model, corpus)
    contexts: dict[tuple[str, ...], list[str]] = {}
    with judge.digits(40):
        total, asked = mpf(0), 0
        sentences = [(list(s.tokens), list(s.labels)) for s in corpus.sentences]
        truth = judge.truth(model, sentences)
        for logits, label, look in zip(truth.logits, truth.gold, truth.looks, strict=True):
            if label >= 0:
                total += mp.log(sum(mp.exp(x - logits[label]) for x in logits))
                asked += 1
                contexts.setdefault(look, []).append(str(label))  # type: ignore[arg-type]
        for labels in contexts.values():
            for label in labels:
                total += mp.log(mpf(labels.count(label)) / len(labels))
        excess = total / asked
        assert found.excess is not None
        assert excess <= mpf(found.excess) <= excess * (1 + mpf(10) ** -4) + 1e-11
    assert float(found.excess) < 1e-5


def test_altered_certificates(tmp_path: Path) -> None:
    model, corpus = made(3)
    found = rankone.certify(model, corpus)
    path = found.save(tmp_path / "c.json")
    again = read_certificate(path)
    assert again == found
    assert check_certificate(again, model, corpus).ok
    assert found.recited is not None
    assert found.branches is not None
    for fields in (
        {"recited": found.recited + 1},
        {"recited": 0},
        {"branches": found.branches - 1},
        {"documents": 4},
        {"excess": "1.0e-30"},
    ):
        reasons = check_certificate(replace(found, **fields), model, corpus).reasons  # type: ignore[arg-type]
        assert len(reasons) == 1
        assert reasons[0].startswith(next(iter(fields)))
    assert check_certificate(replace(found, excess="1"), model, corpus).ok
    assert check_certificate(replace(found, excess=None), model, corpus).ok
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "documents": None}))
    with pytest.raises(CertificateError, match="documents, recited and branches"):
        read_certificate(path)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_labels_of_documents(dtype: str) -> None:
    """Of the task "class" one token of a document is asked."""
    pairs = [("the cat sat", "x"), ("the dog sat", "y"), ("no cat", "x"), ("the cat sat", "y")]
    corpus = Corpus.from_texts(pairs, task="class")
    result = rankone.memorize(corpus, construction="gated", dtype=dtype)  # type: ignore[arg-type]
    found = rankone.certify(result.model, corpus)
    assert found.ok
    assert (found.wrong, found.unavoidable) == (1, 1)
    assert found.recited is None
    wrong = np.where(corpus.label_ids >= 0, 1 - corpus.label_ids, -1)
    other = rankone.certify(result.model, replace(corpus, label_ids=wrong))
    assert other.outcome.value == "refuted"


def test_labels_that_are_not_proved_recite_nothing() -> None:
    readings, gold = Readings.room(4), np.array([0, 1, -1, 2])
    readings.labels[:] = [0, 1, 0, 1]
    readings.off[:] = [0.4, 0.5, 0.0, 0.0]
    right, wrong = right_and_wrong(readings, gold)
    assert right.tolist() == [True, False, False, False]
    assert wrong.tolist() == [False, False, False, True]
    _, corpus = made(3)
    every = np.ones(corpus.n_tokens, bool)
    found = Recited.of(corpus, True, every, ~every)
    assert found == Recited(5, 5, 0)
    every[3] = False
    assert Recited.of(corpus, True, every, ~every) == Recited(5, 4, 1)
    assert Recited.of(corpus, False, every, ~every) is None
