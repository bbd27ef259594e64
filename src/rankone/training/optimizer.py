"""Adam and SGD that update only the rows of the token table that are in the batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from rankone.training.settings import Settings

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # the usual ones of Adam


class Lazy:
    """One step of torch's own optimizer, on all dense weights and the rows of the batch together.

    The moments of a row do not change while no batch has it ("lazy", as in torch's SparseAdam);
    SGD without momentum is the same either way. ``slots`` are the moments: of each dense weight,
    and of the table.
    """

    def __init__(self, dense: Iterable[Tensor], table: Tensor, settings: Settings) -> None:
        self.dense, self.table, self.settings = list(dense), table, settings
        moments = 2 if settings.optimizer == "adam" else int(settings.momentum > 0)
        self.slots = [[torch.zeros_like(w) for w in self.weights] for _ in range(moments)]
        self.steps = [torch.zeros((), device=table.device) for _ in self.weights]

    @property
    def weights(self) -> list[Tensor]:
        return [*self.dense, self.table]

    def begin(self, step: int) -> None:
        """Continue after this number of steps."""
        for counter in self.steps:
            counter.fill_(step)

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], words: Tensor, rows: Tensor, lr: float) -> None:
        """`rows` are ``table[words]``, and the last of the `gradients` is theirs."""
        rows = rows.detach()
        gradients = [g.contiguous() for g in gradients]  # fused steps ignore strides
        moments = [[*slot[:-1], slot[-1].index_select(0, words)] for slot in self.slots]
        weights = [*self.dense, rows]
        if self.settings.optimizer == "adam":
            adam(
                weights,
                gradients,
                moments[0],
                moments[1],
                [],
                self.steps,
                fused=True,
                amsgrad=False,
                beta1=BETA1,
                beta2=BETA2,
                lr=lr,
                weight_decay=0.0,
                eps=EPSILON,
                maximize=False,
            )
        else:
            sgd(
                weights,
                gradients,
                list(moments[0]) if moments else [None] * len(weights),
                fused=True,
                weight_decay=0.0,
                momentum=self.settings.momentum,
                lr=lr,
                dampening=0.0,
                nesterov=False,
                maximize=False,
            )
        self.table.index_copy_(0, words, rows)
        for slot, moved in zip(self.slots, moments, strict=True):
            slot[-1].index_copy_(0, words, moved[-1])
