"""A training run between two steps: all that the next step depends on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rankone.errors import TrainingError
from rankone.nn import TokenClassifier
from rankone.train.batches import Batch
from rankone.train.optimizer import Lazy
from rankone.train.processes import Processes
from rankone.train.settings import Settings


@dataclass
class Epoch:
    """What an epoch has come to so far."""

    loss: float = 0.0  # summed over tokens
    right: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass
class Place:
    """How far a run is: ``epoch`` epochs are done, and ``batch`` batches of the next."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    so_far: Epoch = field(default_factory=Epoch)
    curve: list[dict[str, float]] = field(default_factory=list)  # a line of the log per epoch
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Place:
        return cls(**{**document, "so_far": Epoch(**document["so_far"])})


class Run:
    """The network, its optimizer, and the place."""

    def __init__(self, network: TokenClassifier, settings: Settings, processes: Processes) -> None:
        self.network, self.settings, self.processes = network, settings, processes
        learned = {n: p for n, p in network.named_parameters() if p.requires_grad and n != "table"}
        self.names = [*learned, "table"]
        self.dense = list(learned.values())
        self.optimizer = Lazy([p.detach() for p in self.dense], network.table.detach(), settings)
        self.place = Place()

    def step(self, batch: Batch, lr: float) -> None:
        """One batch: loss, gradients, a step; losses and right labels are added up."""
        rows = self.network.table.detach().index_select(0, batch.words).requires_grad_()
        logits = self.network.ragged(functional.embedding(batch.index, rows), batch.sentences)
        loss = functional.cross_entropy(logits, batch.labels, reduction="sum")
        gradients = torch.autograd.grad(loss / batch.tokens, [*self.dense, rows])
        right = (logits.argmax(1) == batch.labels).sum()
        figures = torch.stack([loss.detach().double(), right.double()])
        self.processes.add([*gradients, figures])
        total, correct = figures.tolist()
        if not math.isfinite(total):
            raise self.diverged("the loss", self.place.step + 1)
        self.optimizer.step(gradients, batch.words, rows, lr)
        place = self.place
        place.step += 1
        place.batch += 1
        place.so_far.loss += total
        place.so_far.right += int(correct)
        place.so_far.tokens += batch.tokens

    def check(self) -> None:
        """Weights that are not finite are never kept."""
        for name, tensor in self.tensors().items():
            if not tensor.isfinite().all():
                raise self.diverged(name, self.place.step)

    def diverged(self, what: str, step: int) -> TrainingError:
        epoch = self.place.epoch + (step > self.place.step or self.place.batch > 0)
        return TrainingError(
            f"training diverged: {what} is not finite any more",
            where=f"epoch {epoch}, step {step}",
            remedy=f"give a smaller --lr (it is {self.settings.lr:g}), a smaller --init-std or "
            "fewer blocks (--depth)",
        )

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor that a checkpoint holds, by name."""
        found = {f"weight.{n}": p.detach() for n, p in self.network.named_parameters()}
        for i, slot in enumerate(self.optimizer.slots):
            found |= {f"moment{i}.{n}": x for n, x in zip(self.names, slot, strict=True)}
        return found

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor], place: Place) -> None:
        """Go on from a checkpoint."""
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])
        self.place = place
        self.optimizer.begin(place.step)
