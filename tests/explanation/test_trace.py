"""The way through a memorised model: every number is that of the model."""

from __future__ import annotations

import numpy as np
import pytest

from rankone import Corpus, Model, builtin_corpus, memorize
from rankone.corpus.builtin import toy_corpus
from rankone.explanation.readout_plots import busiest, plot_sentence, plot_staircase
from rankone.explanation.trace import LONGEST, staircase, trace
from rankone.nn.classifier import Architecture, TokenClassifier

CORPORA = {"toy": toy_corpus(), "builtin": builtin_corpus(40)}


@pytest.fixture(scope="module", params=CORPORA)
def pair(request: pytest.FixtureRequest) -> tuple[Corpus, Model]:
    corpus = CORPORA[request.param]
    return corpus, memorize(corpus).model


def test_a_sentence_is_traced_as_the_model_labels_it(pair: tuple[Corpus, Model]) -> None:
    corpus, model = pair
    found = trace(model, corpus)
    assert found is not None
    assert len(found.words) <= LONGEST
    assert list(found.labels) == model.predict([found.words])[0]
    np.testing.assert_allclose(found.weights.sum(1), 1)
    average = found.weights @ found.keys
    np.testing.assert_allclose(found.ids, found.alone + average, rtol=1e-12)
    shown = {label: 1.0 + model.labels.index(label) for label in model.labels}
    np.testing.assert_allclose(found.outputs, [shown[x] for x in found.labels], atol=1e-6)
    different = len(set(found.labels))
    short = [j for j in range(corpus.n_sentences) if corpus.lengths[j] <= LONGEST]
    spans = [corpus.label_ids[corpus.offsets[j] : corpus.offsets[j + 1]] for j in short]
    assert different == max(len(set(span.tolist())) for span in spans)
    axes = plot_sentence(found, shown).axes
    assert [text.get_text() for text in axes[0].get_yticklabels()] == found.words


def test_the_staircase_goes_through_every_context_id(pair: tuple[Corpus, Model]) -> None:
    corpus, model = pair
    found = staircase(model, corpus)
    assert found is not None
    assert (np.diff(found.ids) > 0).all()
    np.testing.assert_allclose(found(found.ids), found.labels, atol=1e-6)
    assert set(found.labels) == set(found.numbers[np.unique(corpus.label_ids)])
    first, last = busiest(found, 10)
    assert last - first == min(10, len(found.ids))
    changes = np.diff(found.labels) != 0
    most = max(changes[i : i + 9].sum() for i in range(max(1, len(changes) - 8)))
    assert changes[first : last - 1].sum() == most
    above, below = plot_staircase(found).axes
    assert above.get_ylabel() == below.get_ylabel()
    shown = sum(len(line.get_xdata()) for line in above.lines if line.get_marker() == "o")
    assert shown == min(40, len(found.ids))


def test_other_networks_are_left_out() -> None:
    corpus = toy_corpus(4, 2)
    good = memorize(corpus).model
    for shape in (
        Architecture(5, 2, 3, 4, depth=2, feedforward="rank1"),
        Architecture(5, 2, 3, 4, feedforward="dense"),
        Architecture(5, 2, 3, 4, attention="softmax", feedforward="rank1"),
        Architecture(5, 2, 3, 4, feedforward="rank1"),
    ):
        model = Model(TokenClassifier(shape), good.vocabulary, good.labels)
        assert trace(model, corpus) is None
        assert staircase(model, corpus) is None
