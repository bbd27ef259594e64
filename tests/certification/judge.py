"""The judge of certificates: the network once more, literally and slowly, in mpmath."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import mpmath
import numpy as np
import torch
from hypothesis import strategies as st
from mpmath import mp, mpf

import corpora
import dense_truth
from rankone import Corpus
from rankone.nn import Architecture, Evaluator, Model, TokenClassifier

DIGITS = 150  # sums of products of four float64 numbers are exact, so hardmax sees its ties
Vector = list[mpf]


# Equations 2 to 5 and 20, one token at a time. Nothing is imported from the package.


def dot(a: Sequence[mpf], b: Sequence[mpf]) -> mpf:
    return sum((x * y for x, y in zip(a, b, strict=True)), mpf(0))


def softmax(scores: Vector) -> Vector:
    weights = [mpmath.exp(score - max(scores)) for score in scores]
    return [weight / sum(weights) for weight in weights]


def hardmax(scores: Vector) -> Vector:
    marks = [mpf(score == max(scores)) for score in scores]
    return [mark / sum(marks) for mark in marks]


def self_attention(
    p: dict[str, Any], Z: list[Vector], kind: str, causal: bool, window: int = 0
) -> list[Vector]:
    """Eq. 2 (eq. 5 for hardmax), and eq. 20 where there is a v1; tokens are the entries of Z."""
    if "attention.v1" in p:
        v1, v2, w = (p[f"attention.{name}"] for name in ("v1", "v2", "output"))
        heads = [([v1], [v2], [v1], [[x] for x in w])]
    else:
        names = ("key", "query", "value", "output")
        heads = list(zip(*(p[f"attention.{name}"] for name in names), strict=True))
    out = []
    for k, z in enumerate(Z):
        seen = Z[: k + 1] if causal else Z
        seen = seen[-window:] if window else seen
        total = list(z)
        for WK, WQ, WV, WO in heads:
            query = [dot(row, z) for row in WQ]
            scores = [dot([dot(row, x) for row in WK], query) for x in seen]
            weights = hardmax(scores) if kind == "hardmax" else softmax(scores)
            average = [dot(weights, [dot(row, x) for x in seen]) for row in WV]
            total = [a + dot(row, average) for a, row in zip(total, WO, strict=True)]
        out.append(total)
    return out


def feed_forward(p: dict[str, Any], h: Vector) -> Vector:
    """Eq. 3; matrices of rank 1 are multiplied out."""
    q = {name.removeprefix("feedforward."): value for name, value in p.items()}
    if "gain" in q:
        W1 = [[g * a for a in q["direction"]] for g in q["gain"]]
        W2 = [[w * t for t in q["out_gain"]] for w in q["out_direction"]]
    elif "gates" in q:
        return gated(q, h)
    else:
        W1, W2 = q["weight1"], q["weight2"]
    hidden = [max(dot(row, h) + b, mpf(0)) for row, b in zip(W1, q["bias1"], strict=True)]
    added = [dot(row, hidden) for row in W2]
    return [x + y + b for x, y, b in zip(h, added, q["bias2"], strict=True)]


def gated(q: dict[str, Any], h: Vector) -> Vector:
    """A gated layer, unit by unit."""
    out = list(h)
    index = {name: [int(x) for x in q[name]] for name in ("word", "position", "plus", "minus")}
    reads, writes = ([int(x) for x in q[name]] for name in ("reads", "writes"))
    for j, (w, p) in enumerate(zip(index["word"], index["position"], strict=True)):
        fine = dot(q["gates"][w], h) + dot(q["gates"][p], h)
        seen = dot(q["slopes"][j], [h[i] for i in reads])
        active = max(q["penalty"][j] * fine + seen + q["bias1"][j], mpf(0)) * q["amplitude"][j]
        for i, x, y in zip(
            writes, q["codes"][index["plus"][j]], q["codes"][index["minus"][j]], strict=True
        ):
            out[i] += active * (x - y)
    return out


def numbers(values: Any) -> Any:
    """Nested lists of floats as the exact numbers they are."""
    return mpf(values) if isinstance(values, float) else [numbers(value) for value in values]


class Literal:
    """The equations with the parameters of a network, for one sentence after the other."""

    def __init__(self, network: TokenClassifier) -> None:
        self.shape = network.shape
        self.p = {name: numbers(p.detach().double().tolist()) for name, p in parameters(network)}

    def block(self, number: int) -> dict[str, Any]:
        start = f"blocks.{number}."
        return {n.removeprefix(start): p for n, p in self.p.items() if n.startswith(start)}

    def __call__(self, ids: Sequence[int]) -> tuple[list[Vector], list[Vector]]:
        """Context ids (what the first attention layer puts out), and features."""
        Z = [self.p["table"][i] for i in ids]
        if self.shape.positions:
            places = self.p["positions"][: len(ids)]
            pairs = zip(Z, places, strict=True)
            Z = [[x + e for x, e in zip(z, place, strict=True)] for z, place in pairs]
        step = self.p.get("step")
        if step:
            moving = enumerate(Z)
            Z = [[x + k * e for x, e in zip(z, step, strict=True)] for k, z in moving]
        context_ids = None
        for number in range(self.shape.depth):
            block = self.block(number)
            Z = self_attention(block, Z, self.shape.attention, self.shape.causal, self.shape.window)
            context_ids = context_ids or Z
            Z = [feed_forward(block, z) for z in Z]
        assert context_ids is not None
        if step:  # nothing reads it but keys
            moving = [not e for e in step]
            context_ids = [
                [x * keep for x, keep in zip(q, moving, strict=True)] for q in context_ids
            ]
        return context_ids, Z

    def logits(self, z: Vector) -> Vector:
        pairs = zip(self.p["head.weight"], self.p["head.bias"], strict=True)
        return [dot(row, z) + bias for row, bias in pairs]


def parameters(network: TokenClassifier) -> Iterator[tuple[str, torch.Tensor]]:
    return network.named_parameters()


@contextmanager
def digits(count: int = DIGITS) -> Iterator[None]:
    with mp.workdps(count):
        yield


# What a certificate should say.


@dataclass(frozen=True)
class Truth:
    """Per token of a corpus: context id, features, logits, what it sees and its label."""

    context_ids: list[Vector]
    features: list[Vector]
    logits: list[Vector]
    looks: list[object]
    gold: list[int]

    @property
    def labels(self) -> list[int]:
        return [max(range(len(row)), key=row.__getitem__) for row in self.logits]

    @property
    def wrong(self) -> list[int]:
        pairs = zip(self.labels, self.gold, strict=True)
        return [i for i, (found, label) in enumerate(pairs) if found != label and label >= 0]

    @property
    def lead(self) -> mpf:
        """The smallest distance between the two largest logits of a token."""
        ordered = (sorted(row) for row in self.logits)
        return min((row[-1] - row[-2] for row in ordered if len(row) > 1), default=mpf(1))

    def distances(self) -> dict[tuple[int, int], mpf]:
        """|q_i - q_j| for all i < j that look at different things."""
        return {
            (i, j): mpmath.norm([a - b for a, b in zip(q, q_, strict=True)])
            for (i, q), (j, q_) in combinations(enumerate(self.context_ids), 2)
            if self.looks[i] != self.looks[j]
        }


def look(shape: Architecture) -> corpora.Look:
    """What a token can see, by brute force."""
    if shape.window:
        return lambda tokens, k: tuple(tokens[max(0, k + 1 - shape.window) : k + 1])
    if shape.positions:
        return corpora.LOOKS["prefix" if shape.causal else "sequence"]
    if shape.causal:
        return corpora.LOOKS["prefix" if shape.depth > 1 else "prefix proportions"]
    return corpora.LOOKS["proportions"]


def truth(model: Model, sentences: corpora.Sentences) -> Truth:
    literal, see = Literal(model.network), look(model.network.shape)
    context_ids, features, looks, gold = [], [], [], []
    for tokens, labels in sentences:
        first, last = literal([model.vocabulary.index(token) for token in tokens])
        context_ids += first
        features += last
        looks += [see(tokens, k) for k in range(len(tokens))]
        gold += [model.labels.index(label) if label in model.labels else -1 for label in labels]
    return Truth(context_ids, features, [literal.logits(z) for z in features], looks, gold)


def float_run(model: Model, corpus: Corpus) -> np.ndarray:
    """The features of the run in the network's own type, one row per token."""
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    return np.asarray(Evaluator(model.network).run(rows, corpus.offsets, lambda z: z.T))


# Models to certify.

WORDS, LABELS, LONGEST = "abcdef", "XYZ", 7


def random_model(seed: int = 0, dtype: torch.dtype = torch.float64, **shape: Any) -> Model:
    """Every weight random; words a to f and labels X to Z."""
    sizes = {"vocabulary": len(WORDS) + 1, "labels": len(LABELS), "dim": 3, "hidden": 5}
    network = TokenClassifier(Architecture(**{**sizes, **shape}), dtype=dtype)
    names = tuple(WORDS[: network.shape.vocabulary - 1]), tuple(LABELS[: network.shape.labels])
    return Model(dense_truth.randomize(network, seed), *names)


@torch.no_grad()
def plain_model(
    table: Sequence[Sequence[float]],
    *,
    v1: Sequence[float],
    v2: Sequence[float],
    output: Sequence[float],
    p: Sequence[float] | None = None,
    labels: int = 2,
    **shape: Any,
) -> Model:
    """Rank-1 attention with the given numbers and no hidden unit.

    `p` makes the head decide for the label whose number is nearest to p . z; without it there is
    no head.
    """
    sizes = {"vocabulary": len(table) + 1, "labels": labels, "dim": len(v1), "hidden": 0}
    network = TokenClassifier(Architecture(**sizes, feedforward="rank1", **shape))
    for parameter in network.parameters():
        parameter.zero_()
    layer = network.blocks[0].attention
    for target, given in ((layer.v1, v1), (layer.v2, v2), (layer.output, output)):
        target.copy_(torch.tensor(given, dtype=torch.float64))
    network.table[:-1] = torch.tensor(table, dtype=torch.float64)
    if p is not None:
        set_number_head(network, p)
    return Model(network, tuple(WORDS[: len(table)]), tuple("XYZUVW"[:labels]))


@torch.no_grad()
def swallowed_by_rounding() -> Model:
    """Words a and b of 1e16 plus 1 and 3, less 1e16: labels X and Z; float64 has 0 and 4 instead.

    The first number of a word is what attention adds to the second.
    """
    model = plain_model(
        [[1.0, 1e16], [3.0, 1e16]],
        v1=[1.0, 0.0],
        v2=[0.0, 0.0],
        output=[0.0, 1.0],
        p=[0.0, 1.0],
        labels=4,
    )
    model.network.blocks[0].feedforward.bias2[1] = -1e16
    return model


@torch.no_grad()
def set_number_head(network: TokenClassifier, p: Sequence[float]) -> None:
    """Rows 2c p, as float64 rounds them, and biases -c^2."""
    number = torch.arange(1.0, network.shape.labels + 1, dtype=torch.float64)
    row = 2 * torch.tensor(p, dtype=torch.float64)
    network.head.weight.copy_(number[:, None] * row)
    network.head.bias.copy_(-(number**2))


@st.composite
def shapes(draw: st.DrawFn, *, kinds: Sequence[str] = ("rank1", "softmax")) -> dict[str, Any]:
    """What `random_model` takes, of every kind; causal ones of several layers have positions."""
    attention = draw(st.sampled_from(kinds))
    depth, causal = draw(st.integers(1, 3)), draw(st.booleans())
    many = attention != "rank1"
    return {
        "seed": draw(st.integers(0, 10**6)),
        "dtype": draw(st.sampled_from([torch.float64, torch.float64, torch.float32])),
        "attention": attention,
        "feedforward": draw(st.sampled_from(["dense", "rank1"])),
        "depth": depth,
        "causal": causal,
        "positions": LONGEST if causal and depth > 1 else draw(st.sampled_from([0, LONGEST])),
        "heads": draw(st.integers(1, 2)) if many else 1,
        "head_size": draw(st.integers(1, 2)) if many else 1,
        "dim": draw(st.integers(1, 4)),
    }


def sentences(max_sentences: int = 4, max_length: int = 5) -> st.SearchStrategy[list[str]]:
    """Sentences of one-letter words, not labelled yet."""
    text = st.text(WORDS, min_size=1, max_size=max_length)
    return st.lists(text, min_size=1, max_size=max_sentences)


def labelled(texts: Sequence[str], labels: Sequence[int]) -> corpora.Sentences:
    """Texts with these label numbers, running on through all of them."""
    names = iter(LABELS[label] for label in labels)
    return [(list(text), [next(names) for _ in text]) for text in texts]
