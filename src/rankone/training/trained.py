"""What `train` returns: the model, its figures, and the ceilings to compare them with."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankone.corpus import Ceiling, Corpus, contexts
from rankone.corpus.tallies import best_targets
from rankone.corpus.tasks import task_of
from rankone.corpus.tokenizers import shown
from rankone.documents import figures
from rankone.nn import Model
from rankone.nn.scores import Scores
from rankone.plural import plural
from rankone.training.document import Document, EpochLine, Reading
from rankone.training.evaluation import measure, model_of
from rankone.training.settings import Settings
from rankone.training.state import Run


@dataclass(frozen=True, repr=False)
class Trained:
    """A model, and how it came to be.

    ``accuracy`` and ``wrong`` are those of the finished model on its own corpus, as `predict` runs
    it; ``curve`` has the loss and accuracy of every epoch. ``ceilings`` are the best
    that any function could reach: of the ``token`` alone, without any attention, and of the
    ``input``, all that this network sees. ``attention_share`` is how much of what attention could
    add to the token alone was reached, 1 for all of it; below 0 the token alone would do better.
    ``best_epoch`` is the epoch whose weights these are, if the run had patience; without it they
    are those of the last. ``reading`` is how files were asked to be read, ``remarks`` what a reader
    of the figures should know, ``files`` what the run wrote.
    """

    model: Model
    source: str
    tokens: int
    sentences: int
    parameters: int
    epochs: int
    best_epoch: int | None
    steps: int
    loss: float
    accuracy: float
    wrong: int
    ceilings: dict[str, Ceiling]
    curve: tuple[EpochLine, ...]
    evaluations: tuple[Scores, ...]
    settings: dict[str, Any]
    reading: Reading
    seconds: dict[str, float]
    tokens_per_second: float
    remarks: tuple[str, ...]
    files: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        after = plural(self.epochs, "epoch")
        return f"Trained({self.source!r}: accuracy {self.accuracy:.4%} after {after})"

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
        return {"attention_share": self.attention_share, **figures(self, "model", "files")}

    def save(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write the model directory with this report in it; returns the files."""
        return self.model.save(directory, report=self.to_json())


def finish(
    run: Run, corpus: Corpus, others: list[Corpus], document: Document, remarks: list[str]
) -> Trained:
    """The model and its figures; with patience it is that of the best epoch."""
    run.check()
    place, best = run.place, run.place.best
    if best is not None:
        run.take_best()
    model = model_of(run, corpus)
    own, *evaluations = measure(run, model, (corpus, *others))
    return Trained(
        model=model,
        source=corpus.source,
        tokens=corpus.n_tokens,
        sentences=corpus.n_sentences,
        parameters=sum(p.numel() for p in model.network.parameters()),
        epochs=place.epoch,
        best_epoch=best.epoch if best is not None else None,
        steps=place.step,
        loss=place.curve[best.epoch - 1 if best is not None else -1]["loss"],
        accuracy=own.accuracy,
        wrong=own.tokens - own.right,
        ceilings=ceilings(corpus, run.settings),
        curve=tuple(place.curve),
        evaluations=tuple(evaluations),
        settings={**run.settings.to_json(), "scheme": corpus.scheme},
        reading=document.reading | _tokenizer(document.reading),
        seconds={"train": place.seconds},
        tokens_per_second=place.epoch * corpus.n_tokens / place.seconds,
        remarks=tuple(remarks),
    )


def _tokenizer(reading: Reading) -> Reading:
    return {key: shown(str(name)) for key, name in reading.items() if key == "tokenizer"}


def ceilings(corpus: Corpus, settings: Settings) -> dict[str, Ceiling]:
    """The best of any function of the token, and of all that the network sees."""
    seen = {
        "token": contexts.by_token(corpus),
        "input": contexts.visible_contexts(
            corpus, positions=settings.positions, causal=task_of(corpus.task).causal
        ),
    }
    errors = {name: best_targets(seen[name], corpus.label_ids).errors for name in seen}
    return {name: Ceiling.of(e, len(corpus.asked)) for name, e in errors.items()}


def attention_share(accuracy: float, ceilings: dict[str, Ceiling]) -> float | None:
    token, full = ceilings["token"].accuracy, ceilings["input"].accuracy
    return (accuracy - token) / (full - token) if full > token else None
