"""Ceilings: the best accuracy that any function of a given input can reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rankone.corpus import contexts
from rankone.corpus.contexts import Look

INPUTS: Mapping[str, Look] = {  # what a model may see
    "majority": contexts.by_nothing,
    "token": contexts.by_token,
    "set": contexts.by_set,
    "multiset": contexts.by_multiset,
    "sequence": contexts.by_sequence,
    "prefix": contexts.by_prefix,
}


@dataclass(frozen=True)
class Ceiling:
    """The best accuracy of any function of one input, and the errors it must make."""

    accuracy: float
    errors: int

    @classmethod
    def of(cls, errors: int, tokens: int) -> Ceiling:
        return cls((tokens - errors) / tokens, errors)
