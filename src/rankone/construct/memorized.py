"""What `memorize` returns: the model and the figures of its verification."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankone.corpus import Conflict
from rankone.documents import figures
from rankone.nn import Model
from rankone.plural import plural


@dataclass(frozen=True, repr=False)
class Memorized:
    """A model, and the figures of its verification.

    ``asked`` counts the tokens for which the task asks for a label. ``wrong`` counts those whose
    label differs from the file's, ``unavoidable`` those that every function of the model's input
    gets wrong; they are equal. ``bits`` is the conditional entropy of the text, in bits per token
    that is asked: the cross-entropy of a model that gives every next token its share, which is the
    least there is (None: labels have no shares). ``max_error`` is the largest distance between
    output and label over all that are asked (for other heads than those of label numbers, (1 -
    lead) / 2, with the lead of the wanted logit over all others), ``margin`` is 1/2 minus that.
    ``min_gap`` is the smallest distance, along the readout's direction, of two context ids that it
    tells apart, where the border between the cells of two words counts as 1 (None if there is
    nothing to tell apart). ``least_units`` is a lower bound on ``hidden_units`` for the kind of
    readout that was built (None: not known). ``parameters`` counts every number stored,
    ``dense_parameters`` what the network would hold with all matrices of eq. 2 and 3 written out,
    ``paper_parameters`` is what Corollary 1 allows: 4 (s + d) + d (2 n N + d). ``dense_error`` is
    ``max_error`` for the ``dense_tokens`` tokens that also went through the network with its
    matrices multiplied out, ``dense_difference`` how far its outputs are from the fast path's.
    ``remarks`` lists the conditions of the paper that the corpus does not meet.
    """

    model: Model
    source: str
    tokens: int
    asked: int
    sentences: int
    wrong: int
    unavoidable: int
    bits: float | None
    hidden_units: int
    least_units: int | None
    parameters: int
    dense_parameters: int
    paper_parameters: int
    max_error: float
    margin: float
    min_gap: float | None
    dense_tokens: int
    dense_error: float
    dense_difference: float
    draws: int
    settings: dict[str, Any]
    seconds: dict[str, float]
    conflicts: tuple[Conflict, ...]
    remarks: tuple[str, ...]

    def __repr__(self) -> str:
        unit = "document" if self.model.task.whole else "token"
        right = f"{self.asked - self.wrong:,} of {plural(self.asked, unit)} right"
        units = plural(self.hidden_units, "hidden unit")
        return f"Memorized({self.source!r}: {right}, {units}, margin {self.margin:.3f})"

    @property
    def ok(self) -> bool:
        return self.wrong == self.unavoidable and self.margin > 0

    @property
    def accuracy(self) -> float:
        return 1 - self.wrong / self.asked

    def to_json(self) -> dict[str, Any]:
        """The figures, without the model."""
        return {"accuracy": self.accuracy, **figures(self, "model")}

    def save(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write the model directory with this report in it; returns the files."""
        return self.model.save(directory, report=self.to_json())
