"""Selective shift (Yun, Bhojanapalli, Rawat, Reddi and Kumar 2020): a layer for every grid value.

Words are points of a grid. Attention layers, one for every value that the id of a word can have,
give every context an id of its own (`shift`). Feed-forward layers, one for every context, turn ids
into labels. With softmax, scores are multiplied by a finite factor (`softmax`).

The paper's value map replaces a column by its value. Here layer 0 copies the id u.X to a coordinate
s, and layer i adds the label c_i of the context with id p_i delta to a coordinate y, so that no
value can be taken for an id. For ids within delta/4 of what they should be::

    s += relu(u.X + delta) - delta           u.X
    y += c_i gate(s / delta; p_i, p_i)       c_i if s is at p_i delta, 0 if it is at another id
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from flint import fmpq

from rankone.construct.exact import (
    Asked,
    all_sentences,
    asked_contexts,
    label_head,
    refuse_causal,
    refuse_repeats,
)
from rankone.construct.problem import Problem
from rankone.construct.vardi2022 import gate
from rankone.construct.yun2020.shift import Grid, Kind, Shift, grid
from rankone.construct.yun2020.softmax import softmax_factor
from rankone.deadline import tick
from rankone.errors import UnfitError
from rankone.nn.exact import ExactBlock, ExactFeedForward, ExactNetwork, Sparse
from rankone.nn.exact.evaluate import Sentence

NAME = "the selective shift of Yun et al."
MOST = 1 << 17  # layers: more take gigabytes


def build_hardmax(problem: Problem, seed: int) -> ExactNetwork:  # noqa: ARG001
    """The construction as printed; there is nothing to draw."""
    return _build(problem, "hardmax")


def build_softmax(problem: Problem, seed: int) -> ExactNetwork:  # noqa: ARG001
    """The same with softmax: ids are off by delta/8 at most."""
    return _build(problem, "softmax")


def _build(problem: Problem, kind: Kind) -> ExactNetwork:
    refuse_causal(problem, NAME)
    refuse_repeats(problem, NAME)
    words, labels = len(problem.corpus.vocabulary), len(problem.corpus.label_names)
    n = problem.length if problem.placed else problem.longest
    shift = Shift(grid(words, problem.placed), n, n if problem.placed else 1)
    asked = asked_contexts(problem)
    _refuse_size(problem, shift.depth + 1 + len(asked))
    d = shift.grid.d
    one, s, y, dim = d, d + 1, d + 2, d + 3
    table = ({**shift.grid.point(word), one: 1} for word in range(words))
    places = (dict.fromkeys(range(d), k) for k in range(n))
    factor = softmax_factor(shift) if kind == "softmax" else 1
    points = _points(problem, shift, asked)
    head, bias = label_head(labels, y, dim)
    return ExactNetwork(
        Sparse.of(table, dim),
        Sparse.of(places, dim) if problem.placed else None,
        (*shift.blocks(dim, one, kind, factor), *_value_map(shift.grid, points, s, y, dim)),
        head,
        bias,
    )


def _value_map(
    grid: Grid, points: Sequence[tuple[int, int]], s: int, y: int, dim: int
) -> list[ExactBlock]:
    """A copy of u.X in s, then a layer for every id with its label."""
    delta = fmpq(1, grid.inverse)
    layers = [ExactFeedForward.of([(grid.u, delta, {s: 1})], dim, {s: -delta})]
    for p, label in points:
        tick()
        layers.append(ExactFeedForward.of(gate({s: grid.inverse}, p, p, {y: label}), dim))
    return [ExactBlock(feedforward=layer) for layer in layers]


def _points(problem: Problem, shift: Shift, asked: Sequence[Asked]) -> list[tuple[int, int]]:
    """Id and label, from 1, of every context that is asked, once all contexts are found apart."""
    found: dict[Sentence, list[int]] = {}
    owners: dict[int, tuple[Hashable, tuple[Sentence, int]]] = {}
    for sentence in all_sentences(problem):
        tick()
        found[sentence] = shift.ids(sentence)
        for k, p in enumerate(found[sentence]):
            context = (sentence, k) if problem.placed else (frozenset(sentence), sentence[k])
            owner, known = owners.setdefault(p, (context, (sentence, k)))
            if owner != context:
                _refuse_collision(problem, known, (sentence, k))
    return [(found[a.sentence][a.place], a.label + 1) for a in asked]


def _refuse_collision(problem: Problem, *contexts: tuple[Sentence, int]) -> None:
    words = problem.corpus.vocabulary
    named = [
        f"{words[sentence[k]]!r}, word {k + 1} of {' '.join(words[w] for w in sentence)!r}"
        for sentence, k in contexts
    ]
    raise UnfitError(
        f"{NAME} gives the same id to {' and to '.join(named)}",
        where=problem.corpus.source,
        remedy="give another max_length (memorize --max-length), or choose another construction",
    )


def _refuse_size(problem: Problem, layers: int) -> None:
    if layers > MOST:
        raise UnfitError(
            f"{NAME} would have {layers:,} layers here, one for every value of an id and one for "
            f"every context; {MOST:,} is the limit",
            where=problem.corpus.source,
            remedy="give a smaller corpus, or choose another construction",
        )
