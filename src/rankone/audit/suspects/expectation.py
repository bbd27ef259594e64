"""What is expected of each token: by models that have not seen its sentence (`linear`), and by a
model of the user's, if there is one, as far as it explains the labels better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.audit.suspects.linear import HeldOut, Models, expected, normalised, train
from rankone.audit.suspects.tags import Tags
from rankone.audit.suspects.view import Ground, Place, View
from rankone.audit.suspects.votes import Numbers, Scores
from rankone.corpus.parted import PartedCorpus
from rankone.engines import Ref, Shared, Table

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the user's model in what is expected
LEAST = 1e-5  # probabilities below it count as this


@dataclass(frozen=True)
class Expectation:
    """The models, the user's scores of the first tokens of each part, and their share."""

    held_out: HeldOut
    given: Sequence[Ref | None]
    share: float = 0.0

    @classmethod
    def of(
        cls,
        corpus: PartedCorpus,
        ground: Shared,
        places: Sequence[Place],
        tags: Tags,
        probabilities: Floats | None,
    ) -> Expectation:
        """`probabilities` are those of the user's model, for the first tokens of the corpus."""
        engine = corpus.engine
        found = cls(train(corpus, ground, places, len(tags.names)), [None] * len(corpus.parts))
        if probabilities is None:
            return found
        given = []
        for part in corpus.parts:
            mine = probabilities[part.start : part.start + part.tokens]
            scores = tags.expert(mine, LEAST)
            given.append(engine.put({"scores": scores}) if len(mine) else None)
        found = cls(found.held_out, given)
        refs = engine.each(
            misfits,
            [
                (ground, part.columns, place, *found.of_part(number))
                for number, (part, place) in enumerate(zip(corpus.parts, places, strict=True))
                if given[number] is not None
            ],
        )
        total = np.sum([engine.take(ref)["misfits"] for ref in refs], axis=0)
        engine.drop(refs)
        return cls(found.held_out, given, SHARES[int(np.argmin(total))])

    def of_part(self, number: int) -> tuple[Ref, list[Ref], Ref | None, float]:
        """The arguments of `Expected`, for a part."""
        return self.held_out.folds[number], self.held_out.models, self.given[number], self.share

    def drop(self, corpus: PartedCorpus) -> None:
        """Forget the tables."""
        given = [ref for ref in self.given if ref is not None]
        corpus.engine.drop([*self.held_out.models, *self.held_out.folds, *given])


@dataclass(frozen=True)
class Expected:
    """The same in the process that works on a part."""

    folds: Table
    models: Models
    given: Table | None
    share: float

    @classmethod
    def of(cls, folds: Table, models: list[Table], given: Table | None, share: float) -> Expected:
        return cls(folds, {k: table[k] for table in models for k in table}, given, share)

    def scores(self, some: View, sentences: Ints | slice, tokens: Ints | slice) -> Scores:
        """The logarithms of the probabilities of labels, for these sentences of the part."""
        found = expected(some, self.folds["folds"][:, sentences], self.models)
        if self.given is not None and self.share > 0:
            given = self.model(tokens)
            found[: len(given)] = mix(found[: len(given)], given, self.share)
        return found

    def model(self, tokens: Ints | slice) -> Scores:
        """What the user's model says of these tokens, of which it may know the first only."""
        assert self.given is not None
        scores: Scores = self.given["scores"]
        return scores[tokens if isinstance(tokens, slice) else tokens[tokens < len(scores)]]


def misfits(
    ground: Ground,
    columns: Table,
    place: Place,
    folds: Table,
    models: list[Table],
    given: Table,
    share: float,
) -> Table:
    """How badly each share of the user's model explains the labels of a part."""
    view, found = View.of(ground, columns, place), np.zeros(len(SHARES))
    both = Expected.of(folds, models, given, share)
    for sentences, tokens, some in view.slices():
        two = both.model(tokens)
        one = both.scores(some, sentences, tokens)[: len(two)]
        found += misfit(one, two, some.tags.ids[: len(two)])
    return {"misfits": found}


def misfit(one: Scores, two: Scores, labels: Numbers) -> Floats:
    """What each mixture of two models loses on the labels, in logarithms of probabilities."""
    asked = np.flatnonzero(labels >= 0)
    rows = np.arange(len(asked)), labels[asked]
    mixed = (mix(one[asked], two[asked], share) for share in SHARES)
    return np.array([-float(scores[rows].sum()) for scores in mixed])


def mix(one: Scores, two: Scores, share: float) -> Scores:
    """The mixture of two models' log probabilities. The one that explains the labels best leaves a
    model that knows nothing without a say; of two that know the same, both have half."""
    return normalised((1 - share) * one + share * two)
