"""Sentences laid end to end, so that no layer computes anything for padding."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Ragged:
    """Sentence j is rows ``offsets[j]:offsets[j + 1]`` of a table with a row per token."""

    def __init__(self, offsets: NDArray[np.int64], device: torch.device | str = "cpu") -> None:
        self.offsets, self.device = offsets, torch.device(device)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @cached_property
    def positions(self) -> Tensor:
        """The place of each token in its sentence, from 0."""
        places = np.arange(self.offsets[-1]) - np.repeat(self.offsets[:-1], self.lengths)
        return torch.from_numpy(places).to(self.device)

    @cached_property
    def mask(self) -> Tensor:
        """Which tokens of the padded table are real, (sentences, longest)."""
        longest = self.lengths.max(initial=0)
        return torch.from_numpy(np.arange(longest) < self.lengths[:, None]).to(self.device)

    def pad(self, rows: Tensor) -> Tensor:
        """(tokens, d) to (sentences, longest, d), with zeros behind the ends."""
        padded = rows.new_zeros(*self.mask.shape, *rows.shape[1:])
        return padded.masked_scatter(self.mask[..., None], rows)
