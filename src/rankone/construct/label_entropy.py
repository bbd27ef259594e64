"""Labels as distributions: how often a context has each, their entropy, and what a network pays."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from flint import arb, ctx

from rankone.construct.exact import asked_contexts, features
from rankone.construct.problem import Problem
from rankone.nn.exact import ExactNetwork
from rankone.nn.exact.numbers import Vector, ball

Counts = Mapping[int, int]  # how often each label is seen
PRECISE = 256  # bits


@dataclass(frozen=True)
class Entropies:
    """H(label | context) of a corpus, and the cross-entropy of a network on it: nats per label."""

    data: float
    network: float


def entropies(network: ExactNetwork, problem: Problem) -> Entropies:
    """Both, for a network whose logits are log-probabilities."""
    asked, counts = asked_contexts(problem), label_counts(problem)
    seen = [counts[context.token] for context in asked]
    logits = features(network, asked, max(PRECISE, 64 + network.count.bits))
    return Entropies(float(conditional_entropy(seen)), float(cross_entropy(logits, seen)))


def label_counts(problem: Problem) -> dict[int, Counter[int]]:
    """How often every context, named by its first token, has each label."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for part, own in zip(problem.parts, problem.targets.parts, strict=True):
        for context, label in zip(own.contexts.tolist(), part.label_ids.tolist(), strict=True):
            if label >= 0:
                counts[context][label] += 1
    return counts


def conditional_entropy(counts: Iterable[Counts]) -> arb:
    """H(label | context) in nats, per label of the corpus."""
    total, tokens = arb(0), 0
    with ctx.workprec(PRECISE):
        for own in counts:
            n = sum(own.values())
            total -= sum((k * (arb(k) / n).log() for k in own.values()), arb(0))
            tokens += n
        return total / tokens


def cross_entropy(logits: Iterable[Vector], counts: Iterable[Counts]) -> arb:
    """The mean of -log softmax(logits)[label] in nats, for contexts with these logits."""
    total, tokens = arb(0), 0
    with ctx.workprec(PRECISE):
        for own, seen in zip(logits, counts, strict=True):
            exponentials = (ball(logit).exp() for logit in own)
            normal = sum(exponentials, arb(0)).log()
            total += sum((k * (normal - own[c]) for c, k in seen.items()), arb(0))
            tokens += sum(seen.values())
        return total / tokens
