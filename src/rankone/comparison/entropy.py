"""Entropy of labels given their context, and what a network that gives distributions pays."""

from __future__ import annotations

import numpy as np
from flint import arb, ctx

from rankone.construct.exact import Network
from rankone.construct.problem import Problem
from rankone.nn import TokenClassifier
from rankone.nn.exact.evaluate import Sentence, evaluate
from rankone.nn.exact.floats import from_float
from rankone.nn.exact.numbers import ball

BITS = 128


def entropies(network: Network, problem: Problem) -> tuple[float, float]:
    """-sum p(label | context) log p, and the same with the softmax of the network's logits in the
    logarithm, both averaged over all labelled tokens of the corpus, in nats."""
    exact = from_float(network) if isinstance(network, TokenClassifier) else network
    corpus, (targets,) = problem.corpus, problem.targets.parts
    asked = np.flatnonzero(corpus.label_ids >= 0)
    pairs, counts = np.unique(
        np.stack([targets.contexts[asked], corpus.label_ids[asked]]), axis=1, return_counts=True
    )
    size = np.bincount(targets.contexts[asked], minlength=corpus.n_tokens)
    names: dict[Sentence, int] = {}
    places = []
    for token in pairs[0].tolist():
        j = int(corpus.sentence_of[token])
        start, end = corpus.offsets[j : j + 2].tolist()
        sentence = tuple(corpus.token_ids[start:end].tolist())
        places.append((names.setdefault(sentence, len(names)), token - start))
    with ctx.workprec(max(BITS, 64 + exact.count.bits)):
        found = evaluate(exact, list(names))
        own = crossed = arb(0)
        for (j, k), context, label, count in zip(
            places, pairs[0].tolist(), pairs[1].tolist(), counts.tolist(), strict=True
        ):
            logits = [ball(x) for x in found.logits[found.where[j][k]]]
            total = sum((x.exp() for x in logits), arb(0)).log()
            own -= count * (arb(count) / int(size[context])).log()
            crossed += count * (total - logits[label])
        return float(own / len(asked)), float(crossed / len(asked))
