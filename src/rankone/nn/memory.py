"""What an editable model keeps besides its weights: the labelled sentences it was made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
import safetensors
import torch
from msgspec import Meta
from safetensors.torch import load as deserialize
from safetensors.torch import save as serialize

from rankone import choices
from rankone.arrays import Ints
from rankone.documents import read_bytes
from rankone.errors import ModelError

COLUMNS = ("token_ids", "label_ids", "offsets")


class Made(TypedDict):
    """The settings of `memorize` that decide on the weights, in config.json: with them and the
    corpus a model can be made again."""

    construction: Literal["gated"]
    positions: bool
    causal: bool
    heads: Annotated[int, Meta(ge=1, le=64)] | None
    dtype: choices.Dtype
    directions: Annotated[int, Meta(ge=1, le=64)]
    strict: bool
    max_length: Annotated[int, Meta(ge=1, le=1 << 24)] | None
    seed: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


@dataclass(frozen=True, eq=False)
class Memory:
    """Sentence j is the run ``offsets[j]:offsets[j + 1]`` of rows of the model's vocabulary, with
    the numbers of its labels (-1: none is asked).

    ``state`` is whatever the construction likes to keep for the next change. It is not saved, and
    made again where it is missing.
    """

    token_ids: Ints
    label_ids: Ints
    offsets: Ints
    state: Any = field(default=None, repr=False)

    def to_bytes(self) -> bytes:
        """The contents of memory.safetensors."""
        columns = {name: getattr(self, name).astype(np.int32) for name in COLUMNS}
        return serialize({name: torch.from_numpy(x) for name, x in columns.items()})

    @classmethod
    def read(cls, path: Path, words: int, labels: int) -> Memory:
        """The same from a file, checked."""

        def refused(what: str) -> ModelError:
            remedy = "save the model again, or name its corpus"
            return ModelError(what, where=str(path), remedy=remedy)

        try:
            tensors = deserialize(read_bytes(path))
        except safetensors.SafetensorError as error:
            raise refused(f"damaged ({error})") from None
        found = {name: (tensor.dtype, tensor.dim()) for name, tensor in tensors.items()}
        if found != dict.fromkeys(COLUMNS, (torch.int32, 1)):
            raise refused(f"not the columns {', '.join(COLUMNS)}, of 32-bit whole numbers")
        ids, label_ids, offsets = (tensors[name].numpy().astype(np.int64) for name in COLUMNS)
        lengths = np.diff(offsets)
        if len(label_ids) != len(ids) or not len(lengths) or offsets[0] != 0:
            raise refused("columns of different lengths, or none")
        if offsets[-1] != len(ids) or lengths.min() < 1:
            raise refused("sentences that do not lie end to end")
        if ids.min() < 0 or ids.max() >= words or label_ids.min() < -1 or label_ids.max() >= labels:
            raise refused("numbers of words or labels that the model does not have")
        return cls(ids, label_ids, offsets)
