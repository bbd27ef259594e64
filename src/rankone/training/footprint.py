"""How much memory training would take, computed before anything is allocated."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import prod

import numpy as np

from rankone.corpus import Corpus
from rankone.errors import SizeError
from rankone.memory import installed
from rankone.nn import Architecture
from rankone.training.settings import Settings


def check_memory(corpus: Corpus, settings: Settings) -> None:
    """Refuse settings that need more memory than this machine has."""
    shape = settings.network(corpus)
    size, limit = needed(shape, corpus, settings), installed(unknown=sys.maxsize)
    if size > limit:
        raise SizeError(
            f"training would take at least {size / 1e9:,.1f} GB "
            f"({parameters(shape):,} parameters, {batch_tokens(corpus, settings):,} tokens in the "
            f"largest batch), and this machine has {limit / 1e9:,.1f} GB",
            where=corpus.source,
            remedy="give a smaller dim, hidden, depth, head_size, max_length or batch_size",
        )


def needed(shape: Architecture, corpus: Corpus, settings: Settings) -> int:
    """Bytes, at least: weights, gradients, moments, the best weights, and the activations of a
    batch that its gradients need."""
    moments = 2 if settings.optimizer == "adam" else int(settings.momentum > 0)
    copies = 2 + moments + (settings.patience > 0)
    kept = shape.depth * (2 * shape.dim + shape.hidden) + shape.labels
    numbers = copies * parameters(shape) + kept * batch_tokens(corpus, settings)
    return numbers * (4 if settings.dtype == "float32" else 8)


def parameters(shape: Architecture) -> int:
    """The number of parameters, without listing every block."""
    shapes = replace(shape, depth=1).parameter_shapes()
    sizes = {name: prod(size) for name, size in shapes.items()}
    block = sum(size for name, size in sizes.items() if name.startswith("blocks."))
    return sum(sizes.values()) + (shape.depth - 1) * block


def batch_tokens(corpus: Corpus, settings: Settings) -> int:
    """The number of tokens in the largest possible batch."""
    return int(np.sort(corpus.lengths)[-settings.batch_size :].sum())
