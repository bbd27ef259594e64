"""The sentences of a page: words, labels, lines, contexts, and what the model chooses."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rankone.arrays import Ints
from rankone.audit.digest import tails
from rankone.corpus import Corpus
from rankone.corpus.ceilings import INPUTS, Ceiling
from rankone.corpus.contexts import visible_contexts
from rankone.corpus.tallies import best_targets
from rankone.corpus.tasks import asks_next
from rankone.errors import CorpusError
from rankone.explorer.packing import Arrays, whole
from rankone.nn import Model
from rankone.nn.scores import label_ids

REMEDY = "give the corpus that the model was made for, or leave FILE out"


@dataclass(frozen=True)
class SentencesData:
    """A corpus in the numbers of a model.

    Words are numbered as rows of the model's table; those that it does not have come after them
    (``words``), and all of them are its last row. ``labels`` are labels of the file that the model
    does not have, numbered likewise. A context is the number of the first token that has it.
    """

    model: Model
    corpus: Corpus

    @cached_property
    def rows(self) -> Ints:
        """The number of every word of the corpus's vocabulary."""
        rows, known = self.model.rows(self.corpus.vocabulary), len(self.model.vocabulary)
        new = np.flatnonzero(rows == known)
        rows[new] = known + np.arange(len(new))
        return rows

    @cached_property
    def words(self) -> list[str]:
        unknown = np.flatnonzero(self.rows >= len(self.model.vocabulary))
        return [self.corpus.vocabulary[i] for i in unknown.tolist()]

    @cached_property
    def labels(self) -> list[str]:
        return sorted({*self.corpus.label_names} - {*self.model.labels})

    @cached_property
    def gold(self) -> Ints:
        """The label of every token, -1 where none is asked."""
        number = {name: i for i, name in enumerate([*self.model.labels, *self.labels])}
        numbers = [*(number[name] for name in self.corpus.label_names), -1]
        return np.array(numbers, np.int64)[self.corpus.label_ids]

    @cached_property
    def chosen(self) -> Ints:
        """The label that the model chooses for every token."""
        return label_ids(self.model, self.corpus)[0]

    @cached_property
    def contexts(self) -> Ints:
        shape = self.model.network.shape
        return visible_contexts(
            self.corpus,
            positions=shape.positions > 0,
            causal=shape.causal,
            depth=shape.depth,
            window=shape.window,
        )

    def check(self) -> None:
        """Refuse a corpus with no word, or no label, that the model has."""
        known = len(self.model.vocabulary)
        if not (self.rows < known).any():
            raise CorpusError(
                "the model has none of its words", where=self.corpus.source, remedy=REMEDY
            )
        if self.corpus.labelled and not {*self.corpus.label_names} & {*self.model.labels}:
            raise CorpusError(
                "the model has none of its labels", where=self.corpus.source, remedy=REMEDY
            )

    def figures(self) -> dict[str, Any]:
        corpus = self.corpus
        asked = corpus.asked
        best = best_targets(self.contexts, corpus.label_ids)
        files = [corpus.source if file is None else file for file in corpus.files]
        ceilings = {}
        if corpus.labelled and not asks_next(corpus.task):  # of texts they would take too long
            for name, look in INPUTS.items():
                errors = best_targets(look(corpus), corpus.label_ids).errors
                ceilings[name] = asdict(Ceiling.of(errors, len(asked)))
        return {
            "format": corpus.format,
            "task": corpus.task,
            "scheme": corpus.scheme,
            "sentences": corpus.n_sentences,
            "tokens": corpus.n_tokens,
            "asked": len(asked),
            "labelled": corpus.labelled,
            "files": tails(files),
            "words": self.words,
            "labels": self.labels,
            "right": int((self.chosen == self.gold)[asked].sum()),
            "unavoidable": best.errors if corpus.labelled else None,
            "unknown": int((self.rows[corpus.token_ids] >= len(self.model.vocabulary)).sum()),
            "ceilings": ceilings,
        }

    def arrays(self) -> Arrays:
        corpus = self.corpus
        own = np.arange(corpus.n_tokens)
        best = best_targets(self.contexts, corpus.label_ids)
        steps = np.diff(corpus.lines, prepend=0)
        return {
            "corpus.tokens": whole(self.rows[corpus.token_ids]),
            "corpus.lengths": whole(corpus.lengths),
            "corpus.gold": whole(self.gold + 1),
            "corpus.chosen": whole(self.chosen),
            "corpus.back": whole(own - self.contexts),
            "corpus.unavoidable": whole(
                np.flatnonzero((best.labels != corpus.label_ids) & (corpus.label_ids >= 0))
            ),
            "corpus.lines": steps.astype(np.int32),
            "corpus.files": whole(corpus.file_ids),
        }
