"""What constructions with exact weights share: the contexts that are asked, the head, the draft."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf, log2
from typing import Self

import numpy as np
from flint import ctx, fmpq

from rankone.construct.problem import Draft, Draw, Problem
from rankone.corpus import Corpus
from rankone.corpus.contexts import sentences_with_repeats
from rankone.deadline import tick, time_left
from rankone.errors import PrecisionError, UnfitError
from rankone.nn import TokenClassifier
from rankone.nn.exact import ExactNetwork, Sparse
from rankone.nn.exact.evaluate import Sentence, evaluate
from rankone.nn.exact.floats import to_float64
from rankone.nn.exact.numbers import ZERO, Vector, exact
from rankone.plural import plural

PER_BIT = 2e-7  # seconds for an exponential, per bit of precision, and what goes with it
Network = ExactNetwork | TokenClassifier
Build = Callable[[Problem, int], Network]  # the problem and a seed


@dataclass(frozen=True)
class Asked:
    """A context for which a label is asked: place k of a sentence (rows of the table), the label
    from 0, and the number of its first token in the corpus."""

    sentence: Sentence
    place: int
    label: int
    token: int


def asked_contexts(problem: Problem) -> list[Asked]:
    """Every context for which a label is asked, once."""
    found = []
    for token in problem.contexts.tolist():
        part, at = problem.part_of(token)
        j = int(part.sentence_of[at])
        start, end = part.offsets[j : j + 2].tolist()
        sentence = tuple(part.token_ids[start:end].tolist())
        found.append(Asked(sentence, at - start, int(problem.labels[token]), token))
    return found


def all_sentences(problem: Problem) -> list[Sentence]:
    """Every different sentence of the corpus, asked or not, in order."""
    found: dict[Sentence, None] = {}
    for part in problem.parts:
        for a, b in zip(part.offsets[:-1].tolist(), part.offsets[1:].tolist(), strict=True):
            found[tuple(part.token_ids[a:b].tolist())] = None
    return list(found)


def features(network: ExactNetwork, asked: Sequence[Asked], bits: int) -> list[Vector]:
    """What the head of a network makes of every asked context, at this precision: a network that is
    still without a readout shows any coordinate through its head."""
    sentences = list(dict.fromkeys(context.sentence for context in asked))
    number = {sentence: j for j, sentence in enumerate(sentences)}
    with ctx.workprec(bits):
        found = evaluate(network, sentences)
    return [found.logits[found.where[number[a.sentence]][a.place]] for a in asked]


def label_head(labels: int, y: int, dim: int) -> tuple[Sparse, tuple[fmpq, ...]]:
    """Row 2c at coordinate y and bias -c^2 for label c = 1, 2, ...: the c nearest y wins."""
    rows = ({y: 2 * c} for c in range(1, labels + 1))
    return Sparse.of(rows, dim), tuple(exact(-c * c) for c in range(1, labels + 1))


def whole_weights(
    vectors: Sequence[Mapping[int, fmpq]], coordinates: Sequence[int], seed: int
) -> tuple[dict[int, int], list[fmpq]]:
    """Whole numbers w from 1 to N^2 for which N different vectors have different products with w,
    and these products. Vectors are given by their entries other than 0, {coordinate: number}.

    Lemma 13 of Park et al. 2021 in whole numbers: two vectors that differ in coordinate c have
    equal products for at most one value of w_c, whatever the other weights are. So two given ones
    have equal products with probability at most 1 / N^2, and some two of the N (N - 1) / 2 pairs
    with probability below 1/2: two draws are enough on average.
    """
    if len({frozenset(vector.items()) for vector in vectors}) < len(vectors):
        raise ValueError("vectors must be different")
    rng = np.random.default_rng(seed)
    while True:
        tick()
        drawn = rng.integers(1, len(vectors) ** 2, len(coordinates), endpoint=True).tolist()
        w = dict(zip(coordinates, drawn, strict=True))
        sums = [sum((w[c] * x for c, x in vector.items()), ZERO) for vector in vectors]
        if len(set(sums)) == len(vectors):
            return w, sums


_cap: ContextVar[float] = ContextVar("cap", default=inf)


@contextmanager
def digit_limit(cap: float) -> Iterator[None]:
    """Inside, a construction that needs more decimal digits than this gives up."""
    token = _cap.set(cap)
    try:
        yield
    finally:
        _cap.reset(token)


def check_digits(needed: float) -> None:
    """Give up if this many digits are over the limit."""
    if needed > _cap.get():
        shown = f"{needed:,.0f}" if needed < 1e9 else f"{needed:.1e}"
        raise PrecisionError(
            f"needs {shown} digits, more than the cap of {_cap.get():,.0f}",
            remedy="give a larger cap (compare --cap)",
        )


def softmax_seconds(parts: Sequence[Corpus], digits: float) -> float:
    """About how long all scores of a corpus take with so many digits."""
    scores = sum(float((part.lengths**2).sum()) for part in parts)
    return scores * digits * log2(10) * PER_BIT


def check_cost(problem: Problem, digits: float) -> None:
    """Give up if softmax with so many digits would go over the limit of digits, or of time."""
    check_digits(digits)
    needed = softmax_seconds(problem.parts, digits)
    if needed > time_left():
        raise PrecisionError(
            f"would take about {needed:,.0f} s with {digits:,.0f} digits",
            remedy="give more time (compare --seconds)",
        )


def single_part(problem: Problem) -> Corpus:
    """The corpus, if it is in one part."""
    if len(problem.parts) > 1:
        raise UnfitError(
            "this construction takes a corpus in one part",
            where=problem.corpus.source,
            remedy="give the whole corpus, or choose line",
        )
    return problem.corpus


def refuse_repeats(problem: Problem, theorem: str) -> None:
    """Without positions, most theorems are about sequences of different tokens."""
    repeats = 0 if problem.placed else sum(map(sentences_with_repeats, problem.parts))
    if repeats:
        raise UnfitError(
            f"{plural(repeats, 'sentence repeats', 'sentences repeat')} a token, which {theorem} "
            "excludes",
            where=problem.corpus.source,
            remedy="turn positions on (leave out --no-positions)",
        )


def refuse_causal(problem: Problem, theorem: str) -> None:
    if problem.causal:
        raise UnfitError(
            f"{theorem} has no causal attention",
            where=problem.corpus.source,
            remedy="leave out causal (memorize --causal), or choose another construction",
        )


@dataclass(frozen=True)
class ExactDraft:
    """A network that is the same every time: another draw would not help."""

    network: TokenClassifier | None
    min_gap: float = inf

    def hopeful(self, before: Self | None) -> bool:  # noqa: ARG002
        return False

    def refusal(self, draws: int) -> PrecisionError:  # noqa: ARG002
        return PrecisionError(
            "float64 rounds this network's numbers too much: it labels tokens wrongly",
            remedy="run it in exact arithmetic: rankone compare --constructions NAME",
        )


def in_float64(build: Build) -> Draw:
    """A construction for `memorize`: its weights as float64 numbers, or a refusal."""

    def draw(problem: Problem, rng: np.random.Generator) -> Draft:
        network = build(problem, int(rng.integers(1 << 31)))
        return ExactDraft(to_float64(network) if isinstance(network, ExactNetwork) else network)

    return draw
