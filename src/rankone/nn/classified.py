"""The labels of whole documents, compared with those of a corpus."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rankone.corpus import Corpus
from rankone.errors import OutputError
from rankone.files import write_file
from rankone.nn import Model
from rankone.nn.scores import BREAKS, Scores, compare, label_ids


@dataclass(frozen=True)
class Classified:
    """The labels that a model gives to the documents of a corpus, one each; ``scores`` compares
    them with those of the corpus, and is None if it has none. ``unknown`` counts tokens that the
    vocabulary does not have."""

    corpus: Corpus
    labels: tuple[str, ...]
    unknown: int
    scores: Scores | None

    @property
    def heading(self) -> Corpus:
        return self.corpus

    @property
    def n_tokens(self) -> int:
        return self.corpus.n_tokens

    @property
    def ok(self) -> bool:
        """Whether no label differs from that of the corpus."""
        return self.scores is None or self.scores.right == self.scores.tokens

    def to_json(self) -> dict[str, Any]:
        """The figures, and how the corpus was read."""
        scores = self.scores
        return {
            "ok": self.ok,
            "source": self.corpus.source,
            "format": self.corpus.format,
            "columns": asdict(self.corpus.columns),
            "remarks": list(self.corpus.remarks),
            "asked": self.corpus.n_sentences,
            "tokens": self.corpus.n_tokens,
            "unknown": self.unknown,
            "right": None if scores is None else scores.right,
            "accuracy": None if scores is None else scores.accuracy,
        }

    def listed(self) -> dict[str, Any]:
        """The documents with their labels, as JSON; ``given`` is the label in the file."""
        corpus = self.corpus
        starts = corpus.offsets[:-1]
        files = [corpus.files[file] for file in corpus.file_ids.tolist()]
        given = [None] * len(self.labels)
        if corpus.labelled:
            ids = corpus.label_ids[corpus.offsets[1:] - 1].tolist()
            given = [corpus.label_names[i] if i >= 0 else None for i in ids]
        rows = zip(self.labels, given, files, corpus.lines[starts].tolist(), strict=True)
        names = ("label", "given", "file", "line")
        return {"documents": [dict(zip(names, row, strict=True)) for row in rows]}

    def rows(self) -> str:
        """A label per line, in the order of the documents. Labels that would break a line are
        refused; JSON files may hold such labels."""
        for label in sorted({*self.labels}):
            if BREAKS & set(label):
                raise OutputError(
                    f"the label {label!r} does not fit into a row",
                    where=self.corpus.source,
                    remedy="use --json, which can hold it",
                )
        return "".join(f"{label}\n" for label in self.labels)

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the rows to a file."""
        return [write_file(path, self.rows())]


def classify(model: Model, corpus: Corpus) -> Classified:
    """Label the documents of a corpus, and compare where it has labels."""
    ids, unknown = label_ids(model, corpus)
    return Classified(
        corpus=corpus,
        labels=tuple(model.labels[i] for i in ids[corpus.offsets[1:] - 1].tolist()),
        unknown=unknown,
        scores=compare(model, corpus, ids, unknown) if corpus.labelled else None,
    )
