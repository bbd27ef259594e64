"""All settings of the experiment. The defaults are the paper's values, where it gives them."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from typing import Any, get_args

from rankone.choices import Accuracy, Dtype, Optimizer, Schedule, TrainedAttention
from rankone.construct.problem import position_rows
from rankone.corpus import Corpus
from rankone.corpus.tasks import task_of
from rankone.errors import SettingError
from rankone.nn import Architecture

LARGEST = (1 << 31) - 1
LEAST = {"depth": 1, "epochs": 1, "batch_size": 1, "dim": 1, "heads": 1, "max_length": 1}
MOST = {
    "depth": 1000,
    "epochs": 1_000_000,  # each epoch has a line in checkpoints
    "patience": 1_000_000,
    "max_length": 1 << 24,
}
CHANGEABLE = "epochs", "patience", "lr", "schedule", "accuracy"  # when a run is resumed
CHOICES: dict[str, Any] = {
    "attention": TrainedAttention,
    "optimizer": Optimizer,
    "schedule": Schedule,
    "accuracy": Accuracy,
    "dtype": Dtype,
}


@dataclass(frozen=True)
class Settings:
    """Stated by the paper: ``depth`` 1, 3 or 6, ``epochs`` 400, ``batch_size`` 32, attention of
    eq. 20, no layer normalisation. The rest it leaves open; docs/training.md says why these.

    ``attention`` is "rank1" (eq. 20), "theorem2" (eq. 20 with v1 and v2 constructed, and fixed) or
    "softmax" (eq. 2: ``heads`` heads of size ``head_size``, 0 for dim / heads). ``hidden`` 0 is
    4 dim. ``positions`` adds a learned row per position, ``max_length`` of them (None: as many as
    the longest sentence of the corpus needs). ``init_std`` is the initial standard deviation of
    the two tables; that of matrices follows from their fan-in.
    ``schedule`` "linear" lets the learning rate ``lr`` decay to 0. ``accuracy`` is counted as the
    epoch runs ("running") or with the weights at its end ("after"). ``patience`` ends a run when
    the evaluation has not improved for this number of epochs, and keeps the best (0: never).

    What would have no effect is refused: heads without softmax, momentum without SGD, a length of
    the table of positions without positions.
    """

    depth: int = 1
    epochs: int = 400
    batch_size: int = 32
    attention: TrainedAttention = "rank1"
    dim: int = 32
    hidden: int = 0
    heads: int = 1
    head_size: int = 0
    positions: bool = True
    max_length: int | None = None
    optimizer: Optimizer = "adam"
    lr: float = 1e-3
    momentum: float = 0.0
    schedule: Schedule = "constant"
    init_std: float = 0.02
    accuracy: Accuracy = "running"
    dtype: Dtype = "float32"
    seed: int = 0
    patience: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name in CHOICES:
                sound = value in get_args(CHOICES[name])
                wanted = f"one of {', '.join(get_args(CHOICES[name]))}"
            elif type(field.default) is int or field.default is None:
                least, most = LEAST.get(name, 0), MOST.get(name, LARGEST)
                sound = type(value) is int and least <= value <= most
                sound = sound or (value is None and field.default is None)
                wanted = f"a whole number from {least} to {most}"
            elif type(field.default) is bool:
                sound, wanted = type(value) is bool, "True or False"
            else:
                wanted = "a number from 0 to below 1" if name == "momentum" else "a number from 0"
                largest = 1.0 - 2**-53 if name == "momentum" else sys.float_info.max
                sound = type(value) in (int, float) and 0 <= value <= largest
            SettingError.unless(sound, name, value, wanted)
        if not self.lr:
            raise SettingError("a learning rate of 0 learns nothing", remedy="give lr > 0")
        self._check_effects()
        if self.attention == "softmax" and not self.head_size and self.dim % self.heads:
            raise SettingError(
                f"{self.heads} heads do not divide {self.dim} dimensions",
                remedy="give a head_size, or a dim that the heads divide",
            )

    def _check_effects(self) -> None:
        """Refuse settings that would be ignored."""
        for name, needed, value, there in (
            ("heads", "attention", "softmax", self.attention == "softmax"),
            ("head_size", "attention", "softmax", self.attention == "softmax"),
            ("momentum", "optimizer", "sgd", self.optimizer == "sgd"),
            ("max_length", "positions", "True", self.positions),
        ):
            default = next(f.default for f in fields(self) if f.name == name)
            if getattr(self, name) != default and not there:
                raise SettingError(
                    f"{name} {getattr(self, name)} has no effect with {needed} "
                    f"{getattr(self, needed)}",
                    remedy=f"leave {name} out, or choose {needed} {value}",
                )

    def network(self, corpus: Corpus) -> Architecture:
        """The shape of the network for this corpus; one row of the table is for unknown words."""
        full = self.attention == "softmax"
        return Architecture(
            vocabulary=len(corpus.vocabulary) + 1,
            labels=len(corpus.label_names),
            dim=self.dim,
            hidden=self.hidden or 4 * self.dim,
            positions=position_rows(corpus, True, self.max_length) if self.positions else 0,
            depth=self.depth,
            attention="softmax" if full else "rank1",
            heads=self.heads if full else 1,
            head_size=(self.head_size or self.dim // self.heads) if full else 1,
            causal=task_of(corpus.task).causal,
        )

    def differences(self, other: Settings, allowed: Collection[str] = ()) -> list[str]:
        """What another run would do differently, apart from what is `allowed`. When to stop is not
        a difference, unless the learning rate depends on it."""
        if self.schedule == other.schedule == "constant":
            allowed = (*allowed, "epochs", "patience")
        mine, theirs = asdict(self), asdict(other)
        return [
            f"{name} {theirs[name]}, not {mine[name]}"
            for name in mine
            if mine[name] != theirs[name] and name not in allowed
        ]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


NAMES = tuple(field.name for field in fields(Settings))
