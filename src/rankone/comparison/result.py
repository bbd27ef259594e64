"""What `compare` returns: a row for each construction, with its model and certificate."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rankone.certification import Certificate, Outcome
from rankone.documents import dump, figures
from rankone.files import made, write_file
from rankone.nn import Model
from rankone.nn.exact import ExactModel
from rankone.nn.store import CERTIFICATE

REPORT, TABLE, PAGE = "comparison.json", "comparison.csv", "comparison.html"


def named(construction: str, variant: str | None) -> str:
    """A construction and its variant in words."""
    return construction if variant is None else f"{construction} {variant}"


@dataclass(frozen=True)
class Row:
    """One construction, or a variant of it, on one corpus.

    Sizes are without the tables of words and positions, which are the input X + E: ``layers`` are
    blocks of attention and feed-forward, of which ``attentions`` attend, with ``heads`` heads at
    most; ``width`` is the largest of the dimension and the numbers of hidden units; ``parameters``
    counts what the matrices hold, ``nonzero`` what of it is not 0, and ``distinct`` how many
    different numbers that are; they take ``bits`` at most and ``bits_total`` together: as fractions
    in lowest terms, or 64 each in float64. ``digits`` is the working precision of the certificate,
    whose ``outcome``, ``contexts``, ``wrong`` (None while labels are undecided) and ``unavoidable``
    these are. ``entropy`` is that of
    labels given their context and ``cross_entropy`` that of the network, in nats, where it gives
    distributions. ``float64`` says whether the weights are float64 numbers, and right as such.
    Without a model all of it is None, and ``reason`` says why; a certificate that ran out of digits
    or time has a reason, too.
    """

    construction: str
    variant: str | None
    layers: int | None = None
    attentions: int | None = None
    heads: int | None = None
    width: int | None = None
    parameters: int | None = None
    nonzero: int | None = None
    distinct: int | None = None
    bits: int | None = None
    bits_total: int | None = None
    digits: int | None = None
    contexts: int | None = None
    wrong: int | None = None
    unavoidable: int | None = None
    outcome: Outcome | None = None
    seconds: float = 0.0
    reason: str | None = None
    float64: bool | None = None
    entropy: float | None = None
    cross_entropy: float | None = None
    model: Model | ExactModel | None = field(default=None, repr=False)
    certificate: Certificate | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """Nothing that was built is wrong."""
        return self.outcome is not Outcome.REFUTED

    @property
    def name(self) -> str:
        return named(self.construction, self.variant)

    @property
    def directory(self) -> str:
        """Where its model is saved."""
        return self.name.replace(" ", "-")

    def to_json(self) -> dict[str, Any]:
        return figures(self, "model", "certificate")


COLUMNS = [each.name for each in fields(Row) if each.name not in ("model", "certificate")]


@dataclass(frozen=True)
class Comparison:
    """The rows of a corpus, in the order of the constructions.

    ``positions`` says whether networks see positions. ``interrupted``: Ctrl-C ended it early, and
    only ``rows`` were done.
    """

    source: str
    sentences: int
    tokens: int
    positions: bool
    rows: tuple[Row, ...]
    interrupted: bool
    seconds: dict[str, float]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        return figures(self)

    def save(self, directory: str | os.PathLike[str], *, plots: bool = True) -> list[Path]:
        """Write the table (JSON, CSV), a page, plots, and a directory per model with a certificate.

        An exact model that fits float64 is written as a float64 model as well, in a directory that
        ends with -float64. Returns the files, for each model the certificate, or the weights.
        """
        from rankone.comparison.plots import draw_comparison
        from rankone.explorer.comparison import comparison_page

        with made(directory) as home:
            files = [
                write_file(home / REPORT, dump(self.to_json(), indent=2)),
                write_file(home / TABLE, written_table(self.rows)),
                write_file(home / PAGE, comparison_page(self.to_json())),
            ]
            for row in self.rows:
                if row.model is None:
                    continue
                place = home / row.directory
                row.model.save(place, report=row.to_json())
                if row.certificate is not None:
                    files.append(row.certificate.save(place / CERTIFICATE))
                if row.float64 and isinstance(row.model, ExactModel):
                    files += row.model.to_float64().save(home / f"{row.directory}-float64")[:1]
            return [*files, *draw_comparison(home, self)] if plots else files


def written_table(rows: Iterable[Row]) -> str:
    """The rows as CSV, empty where there is no figure."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        values = (getattr(row, name) for name in COLUMNS)
        writer.writerow(["" if value is None else value for value in values])
    return text.getvalue()
