"""One draw of the construction `gated`: codes and keys from hashes, averages, groups, network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import comb

import numpy as np
import torch
from torch import nn

from rankone.arrays import Floats, Ints
from rankone.construct.contextual_mapping import tensor
from rankone.construct.gated.codes import LARGEST, codes, coordinates_for
from rankone.construct.gated.given import (
    GivenGates,
    given_table,
    held_type,
    look_along,
    projections,
    rounding_of_keys,
    with_usual,
)
from rankone.construct.gated.keys import below, hash_positions, hash_words, stream, uniform
from rankone.construct.gated.units import Groups, Units, find_units
from rankone.construct.problem import Problem, end_to_end, joined
from rankone.errors import PrecisionError
from rankone.kernels import rank1_attention_ragged
from rankone.nn import Architecture, Block, SelfAttention, TokenClassifier
from rankone.nn.gated import GatedFeedForward
from rankone.nn.layers import module_of
from rankone.plural import plural
from rankone.spans import spans

CODE = 48  # coordinates of the code of a word: 3e13 codes
QUERY = 2.0  # scores lie in [-3, 3]
KEY, STEP = 1.0, 0.5  # keys and values of words lie in [-1, 1], those of positions in [-1/2, 1/2]
HEADS = (2, 3, 4, 6, 8)  # tried one after the other where the user does not say
ONE_HOT = 32  # so many labels have a coordinate each; more of them share digits
BASE = 16  # of the digits
OFF = 0.2  # how far the function of a group may be off, relative to its height


@dataclass(frozen=True)
class Layout:
    """Where in a vector things are: the code of the word, that of the position, a constant, keys
    and values, the averages, the label."""

    word: int
    position: int
    heads: int
    label: int

    @property
    def one(self) -> int:
        return self.word + self.position

    def key(self, head: int) -> int:
        return self.one + 1 + 2 * head

    def value(self, head: int) -> int:
        return self.key(head) + 1

    @property
    def averages(self) -> Ints:
        return self.one + 1 + 2 * self.heads + np.arange(self.heads)

    @property
    def labels(self) -> Ints:
        return self.one + 1 + 3 * self.heads + np.arange(self.label)

    @property
    def dim(self) -> int:
        return self.one + 1 + 3 * self.heads + self.label


@dataclass(frozen=True)
class LabelCodes:
    """A row per label in few coordinates, the head that reads them, and how high a peak must be."""

    rows: Floats
    weight: Floats
    bias: Floats
    height: float
    one_hot: bool

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


@dataclass(frozen=True)
class Tables:
    """The vectors of words (the last one for all others) and of positions. ``seen`` are rows along
    which heads see keys and values of given vectors; a free table has them as coordinates."""

    layout: Layout
    table: Floats
    positions: Floats | None
    seen: Floats | None = None

    def words(self, at: int) -> Floats:
        """The key or value of every word whose coordinate that is."""
        if self.seen is None:
            return self.table[:, at]
        row = self.seen[at - self.layout.key(0)]
        return np.asarray(self.table[:, : len(row) - 1] @ row[:-1] + row[-1])

    @property
    def reach(self) -> float:
        """No average is larger."""
        if self.seen is None:
            return KEY + STEP
        values = (self.words(self.layout.value(head)) for head in range(self.layout.heads))
        most = max(float(np.abs(value).max()) for value in values)
        return most * (1 + 2.0**-10) + STEP * (self.positions is not None)

    def averages(self, problem: Problem) -> Floats:
        """What the heads add to every token, (tokens, heads)."""
        offsets, columns = end_to_end(problem.parts), []
        ids = joined([part.token_ids for part in problem.parts])
        places = joined([part.positions for part in problem.parts])
        for head in range(self.layout.heads):
            seen = []
            for at in (self.layout.key(head), self.layout.value(head)):
                seen.append(np.take(self.words(at), ids))
                if self.positions is not None:
                    seen[-1] += np.take(self.positions[:, at], places)
            out = np.empty(len(ids))
            for first, last in spans(offsets):
                a, b = int(offsets[first]), int(offsets[last])
                key, value = (column[a:b] for column in seen)
                query = np.full(b - a, QUERY)
                chunk = offsets[first : last + 1] - a
                out[a:b] = rank1_attention_ragged(query, key, value, chunk, causal=problem.causal)
            columns.append(out)
        return np.stack(columns, axis=1)


def usual_labels(problem: Problem) -> Ints:
    """The most frequent label of every word over its contexts, and of all of them for the rest."""
    corpus, contexts = problem.corpus, problem.contexts
    words = joined([part.token_ids for part in problem.parts])[contexts]
    labels, count = problem.labels[contexts], len(corpus.label_names)
    size = len(corpus.vocabulary)
    pairs, often = np.unique(words * count + labels, return_counts=True)
    order = np.lexsort((pairs, -often))  # of two that are equally frequent, the first
    usual = np.full(size + 1, np.bincount(labels).argmax())
    usual[(pairs // count)[order][::-1]] = (pairs % count)[order][::-1]
    return usual


def make_tables(problem: Problem, salt: int, heads: int, usual: Ints, labels: LabelCodes) -> Tables:
    """Codes, keys and values from hashes; a longer code where two words have the same one."""
    if problem.vectors is not None:
        return given_tables(problem, salt, heads, usual, labels)
    words, length = problem.corpus.vocabulary, problem.length
    size = CODE
    while True:
        hashes = hash_words(words, salt + (size << 32))
        numbers = below(stream(hashes, 0), comb(size, size // 2))
        if len(np.unique(numbers)) == len(numbers):
            break
        size += 2
        assert size <= LARGEST
    placed = coordinates_for(length) if problem.placed else 0
    layout = Layout(size, placed, heads, labels.rows.shape[1])
    table = np.zeros((len(words) + 1, layout.dim))
    table[:, :size] = codes(numbers, size)
    table[:, layout.one] = 1.0
    table[:, layout.labels] = labels.rows[usual]
    keyed = hash_words(words, salt)
    for head in range(heads):
        for i, at in enumerate((layout.key(head), layout.value(head))):
            table[:, at] = uniform(stream(keyed, 2 * head + i + 1), KEY)
    return Tables(layout, table, position_table(problem, salt, layout))


def position_table(problem: Problem, salt: int, layout: Layout) -> Floats | None:
    """Codes, keys and values of positions."""
    if not problem.placed:
        return None
    length, hashes = problem.length, hash_positions(problem.length, salt)
    positions = np.zeros((length, layout.dim))
    positions[:, layout.word : layout.one] = codes(np.arange(length), layout.position)
    for head in range(layout.heads):
        for i, at in enumerate((layout.key(head), layout.value(head))):
            positions[:, at] = uniform(stream(hashes, 2 * head + i + 1), STEP)
    return positions


def given_tables(
    problem: Problem, salt: int, heads: int, usual: Ints, labels: LabelCodes
) -> Tables:
    """The given vectors, and the same for all words behind them."""
    vectors = given_table(problem)
    placed = coordinates_for(problem.length) if problem.placed else 0
    layout = Layout(vectors.shape[1], placed, heads, labels.rows.shape[1])
    table = np.zeros((len(vectors), layout.dim))
    table[:, : layout.word] = vectors
    table[:, layout.one] = 1.0
    table[:, layout.labels] = labels.rows[usual[-1]]
    seen = projections(vectors, heads, salt, held_type(problem))
    return Tables(layout, table, position_table(problem, salt, layout), seen)


@dataclass(frozen=True)
class GatedDraft:
    """Units and groups, and the network where none of them is too far off."""

    problem: Problem
    tables: Tables
    usual: Ints
    label_codes: LabelCodes
    groups: Groups
    units: Units
    given: GivenGates | None = None

    @property
    def penalty(self) -> Floats:
        """A power of two, at least twice what a unit can see besides its gates."""
        units = self.units
        most = np.abs(units.slopes).sum(1) * self.tables.reach + np.abs(units.bias)
        return np.asarray(2.0 ** np.ceil(np.log2(np.maximum(2 * most, 1.0))))

    @property
    def min_gap(self) -> float:
        return self.groups.min_gap

    @property
    def fits(self) -> bool:
        own = 0.0 if self.given is None else self.given.off
        return bool(self.groups.off.max(initial=0.0) + own <= OFF)

    @cached_property
    def network(self) -> TokenClassifier | None:
        return assemble(self) if self.fits else None

    def hopeful(self, before: GatedDraft | None) -> bool:
        return before is None

    def refusal(self, draws: int) -> PrecisionError:
        """Name the two contexts of the worst group that are closest."""
        if self.given is not None and self.given.off > self.groups.off.max(initial=0.0):
            return self.given.refusal(self.problem)
        name = "float32" if self.problem.dtype == "float32" else "float64"
        heads = self.tables.layout.heads
        one, two, distance = self.groups.closest()
        (word, here), (_, there) = self.problem.named(one), self.problem.named(two)
        remedy = f"give more heads ({2 * heads})"
        if name == "float32":
            remedy += ", or choose float64"
        return PrecisionError(
            f"{name} cannot hold this corpus with {plural(heads, 'head')}, drawn "
            f"{plural(draws, 'time')}: two contexts of {word!r} with different labels are "
            f"{distance:.1e} apart, at {here} and {there}",
            where=self.problem.corpus.source,
            remedy=remedy,
        )


def draw_gated(problem: Problem, rng: np.random.Generator) -> GatedDraft:
    """As few heads as the precision needs, or as many as were asked for."""
    salt = int(rng.integers(1 << 31))
    usual = usual_labels(problem)
    label_codes = LabelCodes.of(len(problem.corpus.label_names))
    draft: GatedDraft | None = None
    given: GivenGates | None = None
    for heads in (problem.heads,) if problem.heads else HEADS:
        tables = make_tables(problem, salt, heads, usual, label_codes)
        more, height = 0.0, label_codes.height
        if tables.seen is not None:
            vectors = tables.table[:, : tables.layout.word]
            more = rounding_of_keys(vectors, tables.seen)
            most = problem.heads or HEADS[-1]
            given = given or GivenGates.of(problem, vectors, usual, most)
        groups, units = find_units(
            problem, tables.averages(problem), usual, height, label_codes.one_hot, more
        )
        if given is not None:
            units = with_usual(units, usual)
        draft = GatedDraft(problem, tables, usual, label_codes, groups, units, given)
        if given is not None:
            draft = replace(draft, given=given.measured(units, draft.penalty, height))
        if draft.fits:
            break
    assert draft is not None
    return draft


def assemble(draft: GatedDraft) -> TokenClassifier:
    """One block, heads of rank 1 and gated units, and a linear head."""
    dtype = torch.float32 if draft.problem.dtype == "float32" else torch.float64
    layout, table = draft.tables.layout, draft.tables.table
    positions, units, labels = draft.tables.positions, draft.units, draft.label_codes
    words, word = np.unique(units.word, return_inverse=True)
    held = units.position >= 0
    places, place = np.unique(units.position[held], return_inverse=True)
    gates = np.zeros((1 + len(words) + len(places), layout.dim))
    if draft.given is None:
        gates[1 : 1 + len(words), : layout.word] = table[words, : layout.word] - 1
    else:
        gates[1 : 1 + len(words)] = draft.given.rows(words, layout.dim, layout.one)
    if positions is not None:
        at = slice(layout.word, layout.one)
        gates[1 + len(words) :, at] = positions[places, at] - 1
    position = np.zeros(len(word), np.int64)
    position[held] = 1 + len(words) + place
    codes_ = np.concatenate([np.zeros((1, labels.rows.shape[1])), labels.rows])
    # a coordinate per label: only the unit that writes a word's usual label takes the default away
    beside = labels.one_hot & (units.label != draft.usual[units.word])
    minus = np.where(beside, 0, 1 + units.usual)
    whole = {
        "word": 1 + word,
        "position": position,
        "plus": 1 + units.label,
        "minus": minus,
        "reads": layout.averages,
        "writes": layout.labels,
    }
    other = {
        "gates": gates,
        "penalty": draft.penalty,
        "bias1": units.bias,
        "slopes": units.slopes,
        "amplitude": units.amplitude,
        "codes": codes_,
    }
    layer = GatedFeedForward.assemble(
        **{name: torch.from_numpy(np.asarray(x, np.int64)).clone() for name, x in whole.items()},
        **{name: tensor(x).to(dtype) for name, x in other.items()},
    )
    weight = np.zeros((len(labels.bias), layout.dim))
    weight[:, layout.labels] = labels.weight
    attention = heads_of(layout, dtype)
    if draft.tables.seen is not None:
        look_along(attention, draft.tables.seen, layout.one)
    shape = Architecture(
        vocabulary=len(table),
        labels=len(labels.bias),
        dim=layout.dim,
        positions=0 if positions is None else len(positions),
        causal=draft.problem.causal,
        **attention.settings,
        **layer.settings,
    )
    head = {"weight": tensor(weight).to(dtype), "bias": tensor(labels.bias).to(dtype)}
    sizes = {"in_features": layout.dim, "out_features": len(labels.bias)}
    return TokenClassifier.assemble(
        shape,
        nn.Parameter(tensor(table).to(dtype)),
        None if positions is None else nn.Parameter(tensor(positions).to(dtype)),
        [Block(attention, layer)],
        module_of(nn.Linear, head, sizes),
    )


@torch.no_grad()
def heads_of(layout: Layout, dtype: torch.dtype) -> SelfAttention:
    """Head h asks with the constant, compares with key h, and writes the average of value h."""
    attention = SelfAttention(layout.dim, heads=layout.heads, head_size=1, dtype=dtype)
    for parameter in attention.parameters():
        parameter.zero_()
    for h in range(layout.heads):
        attention.key[h, 0, layout.key(h)] = 1.0
        attention.query[h, 0, layout.one] = QUERY
        attention.value[h, 0, layout.value(h)] = 1.0
        attention.output[h, int(layout.averages[h]), 0] = 1.0
    return attention
