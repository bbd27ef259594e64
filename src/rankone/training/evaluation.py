"""Measuring a run: the current model, and its scores on the corpora to evaluate on."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch

from rankone.corpus import Corpus
from rankone.errors import ModelError
from rankone.nn import Model, TokenClassifier
from rankone.nn.scores import Scores, score
from rankone.training.document import Evaluated
from rankone.training.state import Run


class Evaluation:
    """Evaluate after every epoch; the first process does it for all.

    Patience looks at the first corpus: at the F1 of entities if it has entity tags, else at the
    accuracy of tokens.
    """

    def __init__(self, corpus: Corpus, others: Sequence[Corpus]) -> None:
        self.corpus, self.others = corpus, others
        self.watched = others[0].sha256 if others else ""

    def __call__(self, run: Run) -> list[Evaluated]:
        def measured() -> list[Evaluated]:
            return [
                Evaluated(source=scores.source, accuracy=scores.accuracy, f1=scores.f1)
                for scores in measure(run, model_of(run, self.corpus), self.others)
            ]

        if not self.others:
            return []
        found = run.processes.tell(run.processes.first_does(measured)) or []
        if run.settings.patience:
            first = found[0]
            run.judge(first["accuracy"] if first["f1"] is None else first["f1"], self.watched)
        return found


def model_of(run: Run, corpus: Corpus) -> Model:
    """A model with a copy of the current weights."""
    network = copy.deepcopy(run.network).cpu()
    set_unknown_row(network, corpus)
    return Model(network, corpus.vocabulary, corpus.label_names, corpus.reading)


def measure(run: Run, model: Model, corpora: Sequence[Corpus]) -> list[Scores]:
    try:
        with np.errstate(over="raise", invalid="raise"):
            return [score(model, corpus) for corpus in corpora]
    except (FloatingPointError, ModelError):
        raise run.diverged("the output", run.place.step) from None


@torch.no_grad()
def set_unknown_row(network: TokenClassifier, corpus: Corpus) -> None:
    """Unknown words are most like the rarest words: their row is the mean of those rows."""
    times = np.bincount(corpus.token_ids, minlength=len(corpus.vocabulary))
    alike = np.flatnonzero(times == times.min())
    network.table[-1] = network.table[torch.from_numpy(alike)].mean(0)
