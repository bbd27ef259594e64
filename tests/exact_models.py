"""Problems and certificates for constructions with exact weights."""

from __future__ import annotations

import rankone
from corpora import Sentences
from rankone import Corpus
from rankone.certification.certificate import Certificate, Outcome
from rankone.construct.problem import Problem, pose
from rankone.nn.exact import ExactModel, ExactNetwork


def posed(sentences: Sentences, positions: bool = False) -> Problem:
    corpus = Corpus.from_sentences(sentences)
    return pose([corpus], positions=positions, length=corpus.longest if positions else 1)


def certify(problem: Problem, network: ExactNetwork) -> Certificate:
    """The certificate of a network on its own corpus, which must hold."""
    corpus = problem.corpus
    model = ExactModel(network, corpus.vocabulary, corpus.label_names, corpus.reading)
    found = rankone.certify(model, corpus)
    assert found.mapping is found.labels is Outcome.CERTIFIED
    assert found.wrong == found.unavoidable
    return found
