"""Labels for a corpus in parts, written part by part: nothing holds all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rankone.arrays import Ints
from rankone.corpus import Corpus
from rankone.corpus.parted import PartedCorpus, corpus_of, sentences_of
from rankone.corpus.tasks import of_texts
from rankone.errors import SettingError
from rankone.files import write_file
from rankone.nn import Model
from rankone.nn.readout import Reader
from rankone.nn.scores import Counts, Figures, Prediction, Scores, check_rows, named
from rankone.nn.store import Words
from rankone.spans import spans

Table = Mapping[str, Any]


@dataclass(frozen=True)
class PartedPrediction(Figures):
    """The labels that a model gives to a corpus in parts: a table of numbers of ``names`` for each
    part, which the engine of the corpus keeps."""

    corpus: PartedCorpus
    names: Words
    labels: tuple[Any, ...]
    unknown: int
    in_pieces: int
    scores: Scores | None
    used: Ints

    @property
    def heading(self) -> Corpus:
        return self.corpus.heading

    @property
    def n_tokens(self) -> int:
        return self.corpus.n_tokens

    def pieces(self) -> Iterator[Prediction]:
        """Some sentences after the other."""
        for number, ref in enumerate(self.labels):
            part, ids = self.corpus.part(number), self.corpus.engine.take(ref)["labels"]
            for a, b in spans(part.offsets):
                some = sentences_of(part, a, b)
                own = ids[int(part.offsets[a]) : int(part.offsets[b])].astype(np.int64)
                yield Prediction(some, named(self.names, own, some), 0, 0, None)

    def listed(self) -> dict[str, Any]:
        """The sentences with their labels, as JSON, one after the other."""
        listed = (piece.listed()["sentences"] for piece in self.pieces())
        return {"sentences": chain.from_iterable(listed)}

    def rows(self) -> Iterator[str]:
        """What `Prediction.rows` gives, in pieces."""
        check_rows(self.heading, sorted(self.names[i] for i in self.used.tolist()), self._where)
        return self._texts()

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the rows to a file."""
        return [write_file(path, self.rows())]

    def _texts(self) -> Iterator[str]:
        for i, piece in enumerate(self.pieces()):
            yield "\n" * (i > 0) + piece.text()

    def _where(self, number: int) -> str:
        for i in range(len(self.corpus.parts)):
            part = self.corpus.part(i)
            at = np.flatnonzero(part.token_ids == number)
            if len(at):
                return part.place(int(at[0]))
        return self.heading.source


def predict_parts(
    model: Model, corpus: PartedCorpus, tell: Callable[[float], None] = lambda _: None
) -> PartedPrediction:
    """Label a corpus in parts, and compare where it has labels."""
    if of_texts(model.task.name):
        raise SettingError(
            f"texts (task {model.task.name!r}) are labelled in memory",
            where=corpus.source,
            remedy="leave out memory and engine (--memory, --engine)",
        )
    engine, heading = corpus.engine, corpus.heading
    reader = engine.share(Reader.of(model.network, corpus.n_tokens))
    rows = model.rows(heading.vocabulary)
    names = engine.share((heading, rows, model.labels, len(model.vocabulary)))
    calls = [(reader, names, part.columns) for part in corpus.parts]
    found = engine.split(label_part, calls, 2, tell)
    tables = [engine.take(counts) for counts, _ in found]
    engine.drop(counts for counts, _ in found)
    counts = Counts.total(Counts(*table["counts"].tolist()) for table in tables)
    return PartedPrediction(
        corpus=corpus,
        names=model.labels,
        labels=tuple(labels for _, labels in found),
        unknown=counts.unknown,
        in_pieces=counts.in_pieces,
        scores=counts.scores(heading) if heading.labelled else None,
        used=np.unique(np.concatenate([table["used"] for table in tables])),
    )


def label_part(
    reader: Reader, names: tuple[Corpus, Ints, Words, int], columns: Table
) -> list[Table]:
    """What is counted of a part, and the number of the label of every token."""
    heading, rows_of, labels, unknown_row = names
    part = corpus_of(heading, columns)
    rows = rows_of[part.token_ids]
    found = reader.label_ids(rows, part.offsets)
    unknown = int((rows == unknown_row).sum())
    counts = Counts.of(labels, reader.positions, part, found, unknown)
    used = np.flatnonzero(np.bincount(found, minlength=len(labels)))
    return [{"counts": np.array(astuple(counts)), "used": used}, {"labels": found.astype(np.int32)}]
