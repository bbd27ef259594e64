"""What stands for a label in the features, and the head that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from rankone.arrays import Floats
from rankone.construct.gated.codes import LARGEST, codes
from rankone.construct.gated.keys import below, hash_words, stream
from rankone.construct.mixtures import LEAD
from rankone.construct.problem import Problem
from rankone.errors import SizeError

ONE_HOT = 32  # so many labels have a coordinate each; more of them share digits
BASE = 16  # of the digits
SHARP = 8.0  # a code leads by so much for every coordinate in which another one differs
LABELS = 1 << 20  # the number of the stream of hashes for codes of labels: no head has it
DRAWS = 8  # of codes of labels: two are the same once in a hundred million draws
MODEST = 64  # distributions that always fit
NUMBERS = 1 << 27  # in a table with a coordinate for each distribution: a gigabyte


@dataclass(frozen=True)
class LabelCodes:
    """A row per label in few coordinates, the head that reads them, and how high a peak must be."""

    rows: Floats
    weight: Floats
    bias: Floats
    height: float
    one_hot: bool
    sharp: float = 1.0

    @classmethod
    def wanted_by(cls, problem: Problem, salt: int) -> LabelCodes:
        """Those that a problem needs: with distributions, labels have codes that are far apart."""
        names, mixtures = problem.corpus.label_names, problem.mixtures
        if mixtures is None:
            return cls.of(len(names))
        check_distributions(problem)
        leaders, lead = mixtures.leaders(problem.labels), LEAD[problem.dtype]
        return cls.apart(names, mixtures.columns(len(names), leaders, lead), salt)

    @classmethod
    def apart(cls, names: Sequence[str], mixed: Floats, salt: int) -> LabelCodes:
        """A code for each label, with as many ones as zeros, and a coordinate for each column of
        `mixed`, which has the logits of a distribution.

        With the features y in the coordinates of codes, the logit of code c is SHARP (2 c . y -
        |c|^2): for a code it leads by SHARP for every coordinate in which the other one differs,
        and for y = 0 all are equal. `Mixtures` are read there.
        """
        size = LARGEST
        for more in range(DRAWS):
            hashes = stream(hash_words(names, salt + (more << 32))[:-1], LABELS)
            numbers = below(hashes, comb(size, size // 2))
            if len(np.unique(numbers)) == len(names):
                break
        own = codes(numbers, size).astype(float)
        rows = np.zeros((len(names) + mixed.shape[1], size + mixed.shape[1]))
        rows[: len(names), :size] = own
        rows[len(names) :, size:] = np.eye(mixed.shape[1])
        weight = np.concatenate([2 * SHARP * own, mixed], axis=1)
        bias = np.full(len(names), -SHARP * size / 2)
        return cls(rows, weight, bias, 1.0, False, SHARP)

    @classmethod
    def of(cls, count: int) -> LabelCodes:
        """A coordinate per label, or digits: the label whose digits are nearest wins."""
        if count <= ONE_HOT:
            return cls(np.eye(count), np.eye(count), np.zeros(count), 2.0, True)
        size = 1
        while BASE**size < count:
            size += 1
        numbers = np.arange(count)
        digits = np.stack([numbers // BASE**i % BASE for i in range(size)], axis=1).astype(float)
        digits -= BASE // 2
        return cls(digits, 2 * digits, -(digits**2).sum(1), 1.0, False)


def check_distributions(problem: Problem) -> None:
    """Refuse as many distributions as would not fit in memory."""
    assert problem.mixtures is not None
    count, labels = len(problem.mixtures), len(problem.corpus.label_names)
    if (labels + count) * (count + LARGEST) > NUMBERS and count > MODEST:
        longer = "give a longer window (memorize --window)"
        raise SizeError(
            f"{count:,} distributions over {labels:,} next tokens: each takes a coordinate, in all "
            f"{(labels + count) * count / 1e9 * 8:.1f} GB, of at most {NUMBERS / 1e9 * 8:.1f}",
            where=problem.corpus.source,
            remedy=f"{longer if problem.window else 'give fewer documents, or longer ones'}, so "
            "that fewer contexts have several next tokens (rankone inspect --task next counts "
            "them); or take less text",
        )
