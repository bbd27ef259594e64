"""Verification: run the finished model over its corpus, by the fast path and as written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from rankone.arrays import Floats, Ints
from rankone.construct.heads import LabelHead, Outputs
from rankone.construct.problem import Problem, joined
from rankone.corpus import Corpus
from rankone.nn import Evaluator, SelfAttention, TokenClassifier
from rankone.nn.gated import GatedFeedForward
from rankone.nn.layers import FeedForwardLayer
from rankone.nn.masks import and_window

SAMPLE, LEAST = 1000, 100  # tokens checked by the dense network, if not all are:
WORK = 4e9  # fewer than that many if this many weights of its hidden units would be multiplied
SCORES, FEWEST = 1e7, 20  # and fewer still if these would see so many tokens
WRITTEN = 1 << 23  # numbers in a matrix of units that is written out
HELD = 1 << 20  # scores or hidden activations held at once by it


@dataclass(frozen=True)
class Check:
    """Labels and leads of some tokens against what they should be. Checks of parts merge.

    A label is right if its logit leads all others. The error of a token is (1 - lead) / 2: for a
    head of label numbers the distance of the output y from its label. ``wrong`` counts tokens
    whose label is not that of the file, ``unavoidable`` those whose context should get another;
    ``max_error`` is the largest error; ``difference`` how far outputs are at most from those of
    the fast path. ``head_error`` bounds how far the rounding of the head may shift the border
    between two labels: a label is right while the two errors together stay below 1/2.
    """

    tokens: int
    wrong: int
    unavoidable: int
    max_error: float
    head_error: float = 0.0
    difference: float = 0.0

    @property
    def margin(self) -> float:
        return 0.5 - self.max_error

    def holds(self, reserve: float) -> bool:
        """Whether just the unavoidable labels are wrong, and `reserve` is left of the margin."""
        return self.wrong == self.unavoidable and self.margin - self.head_error >= reserve

    @classmethod
    def merge(cls, checks: Sequence[Check]) -> Check:
        """Counts are added, errors are the largest; NaN stays NaN."""
        counts = (sum(getattr(c, name) for c in checks) for name in COUNTS)
        errors = (float(np.max([getattr(c, name) for c in checks])) for name in ERRORS)
        return cls(*counts, *errors)


COUNTS, ERRORS = ("tokens", "wrong", "unavoidable"), ("max_error", "head_error", "difference")


def check_outputs(found: Outputs, labels: Ints, wanted: Ints, fast: Floats | None = None) -> Check:
    """Check tokens with these labels in the file (-1: nothing is asked) and these targets; `fast`
    are the values of the fast path."""
    wrong, unavoidable = found.labels != labels, wanted != labels
    if labels.min(initial=0) < 0:
        wrong, unavoidable = wrong & (labels >= 0), unavoidable & (labels >= 0)
    return Check(
        tokens=len(labels),
        wrong=int(np.count_nonzero(wrong)),
        unavoidable=int(np.count_nonzero(unavoidable)),
        max_error=float(found.errors.max(initial=-np.inf)),
        head_error=found.rounding,
        difference=0.0 if fast is None else float(np.abs(found.values - fast).max(initial=0.0)),
    )


def outputs(evaluator: Evaluator, head: LabelHead, part: Corpus, wanted: Ints) -> Outputs:
    """The outputs of all tokens of a part by the fast path."""
    chunks, at = [], 0
    for z in evaluator.features(part.token_ids, part.offsets):
        chunks.append(head.read(z, wanted[at : at + z.shape[1]]))
        at += z.shape[1]
    return Outputs.joined(chunks)


def check_fast(network: TokenClassifier, problem: Problem) -> tuple[Check, list[Outputs]]:
    """Check every token of every part by the fast path."""
    head, found, checks = LabelHead(network.head), [], []
    evaluator = Evaluator(network, only=head.seen)
    for part, targets in zip(problem.parts, problem.targets.parts, strict=True):
        found.append(outputs(evaluator, head, part, targets.labels))
        checks.append(check_outputs(found[-1], part.label_ids, targets.labels))
    return Check.merge(checks), found


def check_dense(
    network: TokenClassifier,
    problem: Problem,
    fast: Sequence[Outputs],
    rng: np.random.Generator,
    every: bool,
    progress: Callable[[float], None],
) -> Check:
    """Check the network with all matrices multiplied out, on a sample or on `every` token for which
    a label is asked. Each part runs its own tokens."""
    errors, count = joined([found.errors for found in fast]), sample_size(network, problem)
    tokens = np.flatnonzero(errors != -np.inf) if every else sample_tokens(errors, rng, count)
    checks = list[Check]()
    cuts = np.searchsorted(tokens, problem.bounds)
    for i, (a, b) in enumerate(pairwise(cuts.tolist())):
        if a == b:
            continue
        at = tokens[a:b] - problem.bounds[i]
        part, wanted = problem.parts[i], problem.targets.parts[i].labels[at]

        def tell(share: float, a: int = a, b: int = b) -> None:
            progress((a + share * (b - a)) / len(tokens))

        found = dense_outputs(network, part, at, wanted, tell)
        checks.append(check_outputs(found, part.label_ids[at], wanted, fast[i].values[at]))
    return Check.merge(checks)


def sample_size(network: TokenClassifier, problem: Problem) -> int:
    """How many tokens the network as written runs: fewer where that is much work."""
    units = network.shape.hidden * network.shape.dim
    count = int(np.clip(WORK / max(1, units), LEAST, SAMPLE))
    if network.shape.window:
        return count
    return int(np.clip(SCORES / problem.longest, min(FEWEST, count), count))


def sample_tokens(errors: Floats, rng: np.random.Generator, count: int = SAMPLE) -> Ints:
    """So many tokens in order: those with the largest errors, and others at random. Tokens whose
    error is -infinity are left out: nothing is asked of them."""
    asked = None
    if errors.min() == -np.inf:  # rare; a list of all tokens takes memory
        asked = np.flatnonzero(errors != -np.inf)
        errors = errors[asked]
    chosen = chosen_tokens(len(errors), worst_tokens(errors, worst_of(count)), rng, count)
    return chosen if asked is None else asked[chosen]


def worst_of(count: int) -> int:
    """How many tokens of a sample are those with the largest errors."""
    return count // 40


def worst_tokens(errors: Floats, count: int) -> Ints:
    """So many tokens with the largest errors; of those with equal ones the first."""
    if count >= len(errors):
        return np.argsort(-errors, kind="stable")
    least = errors[np.argpartition(-errors, count - 1)[count - 1]] if count else np.inf
    tied = np.flatnonzero(errors == least)
    above = np.flatnonzero(errors > least)
    return np.append(above, tied[: count - len(above)])


def chosen_tokens(total: int, worst: Ints, rng: np.random.Generator, count: int) -> Ints:
    """So many of all tokens in order: the worst ones, and others at random."""
    if total <= count:
        return np.arange(total)
    others = np.setdiff1d(rng.choice(total, count, replace=False), worst)
    return np.sort(np.concatenate([worst, rng.permutation(others)[: count - len(worst)]]))


@torch.no_grad()
def dense_outputs(
    network: TokenClassifier,
    corpus: Corpus,
    tokens: Ints,
    wanted: Ints,
    progress: Callable[[float], None] = lambda _: None,
) -> Outputs:
    """The outputs of some tokens from the network with all matrices multiplied out; it shares
    nothing with the fast path.

    Padded batches go through the modules' own matrices: whole sentences through all blocks but the
    last, and only the tokens that are asked for through the last. A token costs as many scores as
    its sentence, or its window, has tokens (with several blocks, their square), and an activation
    per unit. Where units are many, they are written out so many at a time.
    """
    shape, head = network.shape, LabelHead(network.head)
    # Filled piece by piece: pieces kept in a list would leave holes of the size of activations.
    labels, done = np.empty(len(tokens), dtype=np.int64), 0
    values, errors = np.empty(len(tokens)), np.empty(len(tokens))
    parts = _written_out(network.blocks[-1].feedforward, shape.dim)
    step = max(1, HELD // max(1, shape.hidden if len(parts) == 1 else 1, shape.labels))
    for z, own in _gathered(_attended(network, corpus, tokens), 1 if len(parts) == 1 else step):
        for i in range(0, len(own), step):
            piece, some = z[i : i + step], own[i : i + step]
            features = piece
            for added in parts:
                features = features + added(piece)
            found = head.read_logits(features, network.head(features), wanted[some])
            labels[some], values[some], errors[some] = found.labels, found.values, found.errors
        done += len(own)
        progress(done / len(tokens))
    return Outputs(labels, values, errors, 0.0)


def _gathered(
    batches: Iterable[tuple[torch.Tensor, Ints]], least: int
) -> Iterator[tuple[torch.Tensor, Ints]]:
    """The same in batches of at least so many tokens, but for the last one."""
    rows, numbers = list[torch.Tensor](), list[Ints]()
    for z, own in batches:
        rows.append(z)
        numbers.append(own)
        if sum(map(len, rows)) >= least:
            yield torch.cat(rows), np.concatenate(numbers)
            rows, numbers = [], []
    if rows:
        yield torch.cat(rows), np.concatenate(numbers)


def _written_out(layer: FeedForwardLayer, dim: int) -> list[Callable[[torch.Tensor], torch.Tensor]]:
    """Functions whose sum it adds, with matrices that are made when they are called."""
    if isinstance(layer, GatedFeedForward) and layer.hidden * dim > WRITTEN:
        return layer.in_pieces(WRITTEN)
    full = layer.expand()
    return [lambda h: full(h) - h]


def _attended(
    network: TokenClassifier, corpus: Corpus, tokens: Ints
) -> Iterator[tuple[torch.Tensor, Ints]]:
    """What the attention of the last block puts out for tokens, and which of `tokens` these are."""
    shape = network.shape
    earlier = [block.expand() for block in network.blocks[:-1]]
    attention = network.blocks[-1].attention.expand()
    assert isinstance(attention, SelfAttention)
    if shape.window and shape.depth == 1:
        step = max(1, HELD // (shape.window * shape.dim))
        for i in range(0, len(tokens), step):
            some = tokens[i : i + step]
            back = np.arange(1 - shape.window, 1)
            places = corpus.positions[some, None] + back
            near = np.where(places >= 0, some[:, None] + back, some[:, None])
            ids, spots = (torch.from_numpy(x) for x in (corpus.token_ids[near], places))
            asked = torch.full((len(some), 1), shape.window - 1)
            mask = torch.from_numpy(places >= 0)[:, None]
            z = attention.at(network.embed(ids, spots), asked, mask)
            yield z[:, 0], np.arange(i, i + len(some))
        return
    step = max(1, HELD // max(1, shape.hidden, shape.labels))  # rows of activations held at once
    whole = shape.depth > 1
    sizes = shape.heads, shape.head_size, shape.dim
    before = np.empty(0, np.int64)  # a long sentence comes again and again
    for sentences, asking in batches(corpus, tokens, *sizes, whole=whole):
        starts = corpus.offsets[sentences][:, None]
        if not np.array_equal(sentences, before):
            n, before = int(corpus.lengths[sentences].max()), sentences
            there = np.arange(n) < corpus.lengths[sentences][:, None]
            ids_ = np.zeros(there.shape, dtype=np.int64)
            ids_[there] = corpus.token_ids[(starts + np.arange(n))[there]]
            real = None if there.all() else torch.from_numpy(there[:, None])
            seen = and_window(real, n, shape.window, torch.device("cpu"))
            z = network.embed(torch.from_numpy(ids_))
            for block in earlier:
                z = block.attention(z, seen, causal=shape.causal)
                pieces = torch.split(z.flatten(0, 1), step)
                z = torch.cat([block.feedforward(piece) for piece in pieces]).view_as(z)
            projected = attention.project(z)
        asked = torch.from_numpy(tokens[asking] - starts)
        h = attention.at(z, asked, seen, causal=shape.causal, projected=projected)
        own, first = np.unique(asking, return_index=True)  # rows are filled up with copies
        yield h.flatten(0, 1)[first], own


def batches(
    corpus: Corpus, tokens: Ints, heads: int, head_size: int, dim: int = 1, *, whole: bool = False
) -> Iterator[tuple[Ints, Ints]]:
    """Sentences, and for each a row of places in `tokens` that lie in it; rows may repeat one.

    `tokens` are in order. A sentence of n tokens gets as many rows as needed for m of them at a
    time, with m n <= `HELD` over all heads; sentences of similar length are put together. (The
    limit also holds for the numbers in their vectors and keys and, if they are run as a `whole`,
    for n^2 scores each.)
    """
    home = corpus.sentence_of[tokens]
    most = np.maximum(1, HELD // (heads * corpus.lengths[home]))
    first = np.flatnonzero(np.diff(home, prepend=-1))
    counts = np.diff(first, append=len(home))
    within = np.arange(len(home)) - np.repeat(first, counts)
    starts = np.flatnonzero(within % most == 0)
    counts = np.diff(starts, append=len(home))
    order = np.argsort(-corpus.lengths[home[starts]], kind="stable")
    starts, counts = starts[order], counts[order]
    while len(starts):
        n = int(corpus.lengths[home[starts[0]]])
        widest = np.maximum.accumulate(counts)
        width = heads * np.maximum(widest, max(head_size, n) if whole else head_size)
        width = np.maximum(width, dim)
        fits = width * n * np.arange(1, len(starts) + 1) <= HELD
        size = max(1, int(fits.argmin()) if not fits.all() else len(fits))
        inner = np.minimum(np.arange(widest[size - 1]), counts[:size, None] - 1)
        yield home[starts[:size]], starts[:size, None] + inner
        starts, counts = starts[size:], counts[size:]
