"""Explain Theorem 2 on a corpus: digits, bound and gap of each grade."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from rankone.certification import Certificate, Outcome, certify
from rankone.certification.certify import CAP, FLOAT_DIGITS
from rankone.construct import memorize
from rankone.construct.exact import softmax_seconds
from rankone.construct.problem import given_vectors
from rankone.construct.theorem2.embedded import EmbeddedCorpus, embed_corpus, graded_model
from rankone.construct.theorem2.projection import Query
from rankone.construct.theorem2.weights import Grade, contextual_mapping
from rankone.corpus import Corpus, as_corpus
from rankone.decimals import log10
from rankone.documents import dump, figures
from rankone.errors import PrecisionError, SettingError
from rankone.explanation.promise import promise
from rankone.files import made, write_file
from rankone.nn import Model
from rankone.nn.store import CERTIFICATE
from rankone.plural import plural
from rankone.progress import Progress

REPORT = "explanation.json"
LARGE = 1500  # columns: above this, bounds are computed, but no weights


@dataclass(frozen=True)
class GradeReport:
    """One row of the table.

    ``digits`` is the number of decimal digits that tell context ids apart; ``log10_bound`` the
    separation that the theorem guarantees for these weights, None where it guarantees nothing;
    ``log10_gap`` the certified separation, or None; ``remark`` then says why.
    """

    grade: str
    query: str | None
    digits: float
    log10_bound: float | None
    log10_gap: float | None = None
    outcome: Outcome = Outcome.UNDECIDED
    remark: str | None = None
    model: Model | None = field(default=None, repr=False)
    certificate: Certificate | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.grade if self.query != "separate" else f"{self.grade}-{self.query}"

    @property
    def ok(self) -> bool:
        return self.outcome is not Outcome.REFUTED

    def to_json(self) -> dict[str, Any]:
        return figures(self, "model", "certificate")


@dataclass(frozen=True)
class Explanation:
    """The grades of Theorem 2 on one corpus: |V| = ``vocabulary`` columns, n tokens seen, d.

    ``seconds`` has the time of every grade by its name. ``corpus``, ``setting`` and ``seed`` are
    what the plots are drawn from.
    """

    source: str
    vocabulary: int
    n: int
    dim: int
    statement: str
    grades: tuple[GradeReport, ...]
    seconds: dict[str, float]
    corpus: Corpus = field(repr=False)
    embedded: EmbeddedCorpus = field(repr=False)
    seed: int

    @property
    def ok(self) -> bool:
        return all(report.ok for report in self.grades)

    def to_json(self) -> dict[str, Any]:
        return figures(self, "corpus", "embedded")

    def save(self, directory: str | os.PathLike[str], *, plots: bool = True) -> list[Path]:
        """Write this report, the weights of every grade that has some, and the plots.

        Weights go into a model directory per grade, with the certificate. Returns the files, the
        certificate for each model directory.
        """
        from rankone.explanation.plots import draw_plots

        with made(directory) as home:
            files = [write_file(home / REPORT, dump(self.to_json(), indent=2))]
            for report in self.grades:
                if report.model is not None and report.certificate is not None:
                    report.model.save(home / report.name)
                    files.append(report.certificate.save(home / report.name / CERTIFICATE))
            return [*files, *draw_plots(home, self)] if plots else files


def explain(
    corpus: Corpus | str | os.PathLike[str] | Iterable[Any] = "toy",
    *,
    vectors: ArrayLike | str | os.PathLike[str] | None = None,
    positions: bool | None = None,
    dim: int = 2,
    seed: int = 0,
    cap: int = CAP,
    seconds: float = 120.0,
    progress: Progress = lambda *_: None,
) -> Explanation:
    """Build and certify every grade on the corpus, within `cap` digits and `seconds` per grade.

    Takes whatever `memorize` takes as a corpus and as `vectors`. "paper" and "tight" use the given
    token vectors, or random ones of length `dim`, and positions if a sentence repeats a token.
    "practical" is what `memorize` builds, with its own vectors.
    """
    if not seconds >= 0:
        raise SettingError(
            f"seconds = {seconds} cannot be used", remedy="give a number of 0 or more"
        )
    began = time.perf_counter()
    corpus = as_corpus(corpus)
    given = given_vectors(corpus, vectors)
    where = embed_corpus(corpus, given, positions=positions, dim=dim, seed=seed)
    reports = []
    for grade, query in (("paper", "shared"), ("tight", "shared"), ("tight", "separate")):
        told = f"grade {grade}{', separate query' if query == 'separate' else ''}"
        progress(told, 0.0)

        def tell(stage: str, share: float, told: str = told) -> None:
            progress(f"{told}: {stage}", share)

        start = time.perf_counter()
        report = _graded(corpus, where, grade, query, seed)  # type: ignore[arg-type]
        reports.append(_certified(report, corpus, cap, seconds, tell, start))
    progress("grade practical", 0.0)
    start = time.perf_counter()
    model = memorize(corpus, positions=where.positions is not None, seed=seed).model
    report = GradeReport("practical", None, FLOAT_DIGITS, None, model=model)
    reports.append(_certified(report, corpus, cap, math.inf, progress, start))
    times = {report.name: report.seconds["total"] for report in reports}
    masked = ", masked (Appendix C)" if where.masked else ""
    statement = "Corollary 1" if where.positions is None else "Corollary 2"
    return Explanation(
        source=corpus.source,
        vocabulary=len(where.columns),
        n=where.n,
        dim=where.table.shape[1],
        statement=f"{statement}{masked}",
        grades=tuple(reports),
        seconds={**times, "total": time.perf_counter() - began},
        corpus=corpus,
        embedded=where,
        seed=seed,
    )


def _graded(
    corpus: Corpus, where: EmbeddedCorpus, grade: Grade, query: Query, seed: int
) -> GradeReport:
    """The weights of a grade; figures alone if there are too many columns, or too few digits."""
    remark = f"{plural(len(where.columns), 'column')}: too many to build weights, figures only"
    if len(where.columns) <= LARGE:
        try:
            graded = contextual_mapping(
                where.columns, where.n, grade=grade, query=query, masked=where.masked, seed=seed
            )
            model = graded_model(corpus, where, graded)
            return GradeReport(grade, query, graded.digits, graded.log10_bound, model=model)
        except PrecisionError as error:
            remark = error.what
    return GradeReport(grade, query, *promise(corpus, where, grade, query, seed), remark=remark)


def _certified(
    report: GradeReport, corpus: Corpus, cap: int, seconds: float, progress: Progress, start: float
) -> GradeReport:
    """What certification adds to a report, and the times; building it began at `start`."""
    built = time.perf_counter()
    report = _with_certificate(report, corpus, cap, seconds, progress)
    end = time.perf_counter()
    times = {"build": built - start, "certify": end - built, "total": end - start}
    return replace(report, seconds=times)


def _with_certificate(
    report: GradeReport, corpus: Corpus, cap: int, seconds: float, progress: Progress
) -> GradeReport:
    if report.model is None:
        return report
    needed = softmax_seconds([corpus], report.digits)
    if report.digits > cap:
        return replace(report, remark=f"needs more than {cap:,} digits (--cap)")
    if needed > seconds:
        shown = f"{needed:,.0f}" if needed >= 1 else f"{needed:.1g}"
        return replace(report, remark=f"would take about {shown} s (--seconds)")
    certificate = certify(report.model, corpus, cap=cap, progress=progress)
    report = replace(report, outcome=certificate.outcome, certificate=certificate)
    if certificate.contexts == 1:
        return replace(report, remark="a single context: nothing to tell apart")
    return replace(report, log10_gap=log10(certificate.delta)) if certificate.ok else report
