"""What `train_model` returns: the model, its figures, and the ceilings beside them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rankone.corpus import Ceiling
from rankone.nn import Model
from rankone.train.scores import Scores


@dataclass(frozen=True)
class Trained:
    """A model, and how it came to be.

    ``accuracy`` and ``wrong`` are those of the finished model on its own corpus, run in float64 as
    `predict` runs it; ``curve`` has the loss and accuracy of every epoch. ``ceilings`` are the best
    that any function could reach: of the ``token`` alone, without any attention, and of the
    ``input``, all that this network sees. ``attention_share`` tells how much of what attention
    could add to the token alone was reached, 1 for all of it; below 0 the token alone would do
    better. ``remarks`` says what a reader of the figures should know.
    """

    model: Model
    source: str
    tokens: int
    sentences: int
    parameters: int
    epochs: int
    steps: int
    loss: float
    accuracy: float
    wrong: int
    ceilings: dict[str, Ceiling]
    curve: list[dict[str, float]]
    evaluations: list[Scores]
    settings: dict[str, Any]
    seconds: float
    tokens_per_second: float
    remarks: list[str]
    files: list[Path]

    @property
    def ok(self) -> bool:
        """Whether every label is right that can be."""
        return self.wrong == self.ceilings["input"].errors

    @property
    def attention_share(self) -> float | None:
        """None where attention can add nothing."""
        return attention_share(self.accuracy, self.ceilings)

    def to_json(self) -> dict[str, Any]:
        """The figures, without the model."""
        names = [f.name for f in fields(self) if f.name not in ("model", "files")]
        figures = {name: getattr(self, name) for name in names}
        figures["ceilings"] = {
            name: {"accuracy": c.accuracy, "errors": c.errors} for name, c in self.ceilings.items()
        }
        figures["evaluations"] = [scores.to_json() for scores in self.evaluations]
        return {"ok": self.ok, "attention_share": self.attention_share, **figures}


def attention_share(accuracy: float, ceilings: dict[str, Ceiling]) -> float | None:
    token, full = ceilings["token"].accuracy, ceilings["input"].accuracy
    return (accuracy - token) / (full - token) if full > token else None
