"""What a checkpoint says about its run, field by field."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, NotRequired, TypedDict

from msgspec import Meta

from rankone.training.settings import Settings

Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Amount = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Reading = dict[str, int | str | bool | None]  # keyword arguments of `read_corpus`


class Evaluated(TypedDict):
    """Scores on another corpus after an epoch; ``f1`` is None without entity tags."""

    source: str
    accuracy: Share
    f1: Share | None


class EpochLine(TypedDict):
    """An epoch in the log."""

    epoch: Count
    loss: Amount
    accuracy: Share
    tokens_per_second: Amount
    evaluations: NotRequired[list[Evaluated]]


@dataclass
class Epoch:
    """The sums of an epoch so far."""

    loss: Amount = 0.0  # summed over tokens
    right: Count = 0
    tokens: Count = 0  # for which the task asks for a label
    seconds: Amount = 0.0


@dataclass
class Best:
    """The epoch with the best evaluation, its score, and the corpus it was measured on."""

    epoch: Count
    figure: Share
    corpus: str


@dataclass
class Place:
    """How far a run is: ``epoch`` epochs are done, and ``batch`` batches of the next."""

    step: Count = 0
    epoch: Count = 0
    batch: Count = 0
    so_far: Epoch = field(default_factory=Epoch)
    curve: list[EpochLine] = field(default_factory=list)
    seconds: Amount = 0.0
    best: Best | None = None

    def fits(self, batches: int) -> bool:
        """Whether a run with this number of batches per epoch can be here."""
        epochs = [line["epoch"] for line in self.curve]
        begun = self.so_far.tokens > 0 and self.so_far.seconds > 0
        return (
            self.step == self.epoch * batches + self.batch
            and self.batch < batches
            and epochs == list(range(1, self.epoch + 1))
            and (begun if self.batch else self.so_far == Epoch())
            and (self.seconds > 0) == (self.epoch > 0)
            and (self.best is None or 0 < self.best.epoch <= self.epoch)
        )


@dataclass(frozen=True)
class Start:
    """What a run starts with: its current settings, and how it reads, computes and saves.

    ``changes`` says what was changed, and when, each time the run was resumed.
    """

    settings: Settings
    reading: Reading
    threads: Annotated[int, Meta(ge=1)]
    checkpoint_seconds: Amount
    changes: list[str]


@dataclass(frozen=True)
class Document(Start):
    """All of a run that is not a tensor.

    ``corpus`` is its SHA-256. Names of files are for the reader: nothing is opened because of
    them.
    """

    corpus: str
    processes: Annotated[int, Meta(ge=1)]
    device: str
    evaluated: list[str]
    place: Place
