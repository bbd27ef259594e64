"""Sentences laid end to end, so that no layer computes anything for padding; sentences longer than
the table of positions are refused, or cut into pieces of its length."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from rankone.arrays import Ints
from rankone.errors import LengthError
from rankone.plural import plural
from rankone.spans import places


class Ragged:
    """Sentence j is rows ``offsets[j]:offsets[j + 1]`` of a table with a row per token."""

    def __init__(self, offsets: Ints, device: torch.device | str = "cpu") -> None:
        self.offsets, self.device = offsets, torch.device(device)

    @cached_property
    def lengths(self) -> Ints:
        return np.diff(self.offsets)

    @cached_property
    def positions(self) -> Tensor:
        """The place of each token in its sentence, from 0."""
        return torch.from_numpy(places(self.offsets)).to(self.device)

    @cached_property
    def mask(self) -> Tensor:
        """Which tokens of the padded table are real, (sentences, longest)."""
        longest = self.lengths.max(initial=0)
        return torch.from_numpy(np.arange(longest) < self.lengths[:, None]).to(self.device)

    def pad(self, rows: Tensor) -> Tensor:
        """(tokens, d) to (sentences, longest, d), padded with zeros."""
        padded = rows.new_zeros(*self.mask.shape, *rows.shape[1:])
        return padded.masked_scatter(self.mask[..., None], rows)


SPLIT = "split the sentence, or make a model with more of them (max_length)"
LONGER = "make a model with more of them (max_length, memorize --max-length)"  # for whole documents


def check_lengths(
    lengths: Ints, positions: int, where: Callable[[int], str], remedy: str = SPLIT
) -> None:
    """Refuse a sentence that is longer than the table of positions (0: there is none)."""
    if positions and len(lengths) and lengths.max() > positions:
        first = int(np.flatnonzero(lengths > positions)[0])
        raise LengthError(
            f"{int(lengths[first])} tokens, but the table of positions has "
            f"{plural(positions, 'row')}",
            where=where(first),
            remedy=remedy,
        )


def in_pieces(lengths: Ints, longest: int) -> int:
    """The number of sentences that must be cut (`longest` 0: none)."""
    return int((lengths > longest).sum()) if longest else 0


def cut(offsets: Ints, longest: int) -> Ints:
    """The offsets of the pieces: a sentence is cut into pieces of `longest` tokens and one with the
    rest.

    >>> cut(np.array([0, 2, 9]), 3).tolist()
    [0, 2, 5, 8, 9]
    """
    lengths = np.diff(offsets)
    if not in_pieces(lengths, longest):
        return offsets
    pieces = np.maximum(1, -(-lengths // longest))
    number = places(np.append(0, np.cumsum(pieces)))  # of a piece in its sentence
    return np.append(np.repeat(offsets[:-1], pieces) + number * longest, offsets[-1])
