"""Every verb on every task: those of the table, and two toys that no table has.

A task is one entry of `rankone.corpus.tasks.TASKS`. Whatever takes a corpus asks nothing of a token
whose label is -1, and a causal task makes a causal model.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import rankone
import tasks
from rankone import Corpus, choices

SENTENCES = [
    (list("abcab"), list("XYXYZ")),
    (list("bca"), list("YXX")),
    (list("abcab"), list("XYXYX")),  # the last label contradicts the first sentence
    (list("cab"), list("XXY")),
    (list("a"), list("X")),
]


@pytest.fixture(params=tasks.ALL)
def corpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    tasks.register(monkeypatch)
    return tasks.corpus_of(SENTENCES, request.param)


def brute_errors(corpus: Corpus, causal: bool) -> int:
    """What no function of sentence (causal: prefix) and place gets right, by counting."""
    seen: dict[object, list[int]] = {}
    for j, sentence in enumerate(corpus.sentences):
        start = int(corpus.offsets[j])
        for k in range(len(sentence.tokens)):
            label = int(corpus.label_ids[start + k])
            if label >= 0:
                context = tuple(sentence.tokens[: k + 1] if causal else sentence.tokens)
                seen.setdefault((context, k), []).append(label)
    return sum(len(labels) - max(map(labels.count, labels)) for labels in seen.values())


def wrong(corpus: Corpus, labels: list[list[str]]) -> int:
    number = {name: i for i, name in enumerate(corpus.label_names)}
    given = np.array([number[label] for sentence in labels for label in sentence])
    return int(((given != corpus.label_ids) & (corpus.label_ids >= 0)).sum())


def test_memorize_certify_predict(corpus: Corpus, tmp_path: Path) -> None:
    causal = tasks.ALL[corpus.task].causal
    result = rankone.memorize(corpus)
    assert result.ok
    assert result.model.network.shape.causal is causal
    assert result.wrong == result.unavoidable == brute_errors(corpus, causal)
    model = result.model
    assert model.reading.get("task", "tags") == corpus.task
    if corpus.task in get_args(choices.Task):  # a toy is not known to those who read directories
        result.save(tmp_path / "model")
        model = rankone.load(tmp_path / "model")
    words = [sentence.tokens for sentence in corpus.sentences]
    assert wrong(corpus, model.predict(words)) == result.wrong
    found = rankone.certify(model, corpus)
    assert found.outcome == "certified"
    assert (found.wrong, found.unavoidable) == (result.wrong, result.unavoidable)
    assert rankone.check_certificate(found, model, corpus).ok


def test_a_wrong_label_refutes_only_where_it_is_asked(corpus: Corpus) -> None:
    """The certificate of another labelling: each asked token changed by itself is noticed."""
    model = rankone.memorize(corpus).model
    names = len(corpus.label_names)
    for token in range(corpus.n_tokens):
        labels = corpus.label_ids.copy()
        asked = labels[token] >= 0
        labels[token] = (labels[token] + 1) % names if asked else -1
        changed = replace(corpus, label_ids=labels)
        found = rankone.certify(model, changed)
        assert (found.wrong == found.unavoidable) == (found.outcome == "certified")
        if not asked:
            assert found.outcome == "certified"


def test_train(corpus: Corpus) -> None:
    causal = tasks.ALL[corpus.task].causal
    settings = {"epochs": 150, "dim": 16, "lr": 0.01, "batch_size": 5}
    result = rankone.train(corpus, settings, evaluate=[corpus])
    assert result.model.network.shape.causal is causal
    assert result.ceilings["input"].errors == brute_errors(corpus, causal)
    assert result.ceilings["input"].accuracy == pytest.approx(
        1 - result.ceilings["input"].errors / len(corpus.asked)
    )
    assert result.wrong == result.ceilings["input"].errors
    assert result.evaluations[0].tokens == len(corpus.asked)
    assert result.curve[-1]["accuracy"] == result.evaluations[0].accuracy
