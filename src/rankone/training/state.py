"""A training run between two steps: all that the next step depends on."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from rankone.errors import TrainingError
from rankone.nn import TokenClassifier
from rankone.training.batches import Batch
from rankone.training.document import Best, Place
from rankone.training.optimizer import Lazy
from rankone.training.processes import Processes
from rankone.training.settings import Settings

REMEDY = "remove this checkpoint: the one before is used then"


class Run:
    """The network, its optimizer, its progress and, if there is patience, the weights with the best
    evaluation."""

    def __init__(self, network: TokenClassifier, settings: Settings, processes: Processes) -> None:
        self.network, self.settings, self.processes = network, settings, processes
        learned = {n: p for n, p in network.named_parameters() if p.requires_grad and n != "table"}
        self.names = [*learned, "table"]
        self.dense = list(learned.values())
        self.optimizer = Lazy([p.detach() for p in self.dense], network.table.detach(), settings)
        self.place = Place()
        self.best: dict[str, Tensor] = {}

    @property
    def over(self) -> bool:
        """Whether all epochs are done, or patience has run out."""
        settings, best = self.settings, self.place.best
        waited = self.place.epoch - best.epoch if best is not None else 0
        return self.place.epoch >= settings.epochs or (0 < settings.patience <= waited)

    def step(self, batch: Batch, lr: float) -> None:
        """Train on one batch; losses and right labels are added up."""
        rows = self.network.table.detach().index_select(0, batch.words).requires_grad_()
        logits = self.network.ragged(functional.embedding(batch.index, rows), batch.sentences)
        loss = functional.cross_entropy(logits, batch.labels, ignore_index=-1, reduction="sum")
        gradients = torch.autograd.grad(loss / max(1, batch.asked), [*self.dense, rows])
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
        place.so_far.tokens += batch.asked

    def judge(self, figure: float, corpus: str) -> None:
        """Keep these weights if this evaluation is better than all before."""
        if self.place.best is None or figure > self.place.best.figure:
            self.place.best = Best(self.place.epoch, figure, corpus)
            self.best = {name: x.clone() for name, x in self.weights().items()}

    @torch.no_grad()
    def take_best(self) -> None:
        """Go back to the weights of the best epoch."""
        for name, weight in self.weights().items():
            weight.copy_(self.best[name])

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

    def weights(self) -> dict[str, Tensor]:
        return {name: p.detach() for name, p in self.network.named_parameters()}

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor that a checkpoint holds, by name."""
        found = {f"weight.{name}": x for name, x in self.weights().items()}
        for i, slot in enumerate(self.optimizer.slots):
            found |= {f"moment{i}.{n}": x for n, x in zip(self.names, slot, strict=True)}
        return found | {f"best.{name}": x for name, x in self.best.items()}

    def begin(self, place: Place) -> None:
        """Continue from this place; the tensors follow."""
        self.place = place
        self.optimizer.begin(place.step)
        if place.best is not None:
            self.best = {name: torch.empty_like(x) for name, x in self.weights().items()}

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor], place: Place) -> None:
        """Continue from a checkpoint; tensors that this run cannot have are refused."""
        self.begin(place)
        wanted = self.tensors()
        for name in sorted({*wanted, *tensors}):
            given, own = tensors.get(name), wanted.get(name)
            if given is None or own is None or _kind(given) != _kind(own):
                raise TrainingError(
                    f"{name} is {_kind(given)}, and {_kind(own)} with these settings",
                    remedy=REMEDY,
                )
            if not given.isfinite().all():
                raise TrainingError(f"{name} is not finite", remedy=REMEDY)
            own.copy_(given)


def _kind(tensor: Tensor | None) -> str:
    if tensor is None:
        return "missing"
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
