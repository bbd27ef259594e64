"""How many digits does each grade need, what does its bound promise, what is the gap?"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from rankone.certify import Certificate, Outcome, certify_model
from rankone.certify.certify import CAP, FLOAT_DIGITS
from rankone.construct import memorize
from rankone.construct.graded import graded_model
from rankone.construct.query import Query
from rankone.construct.setting import Setting, setting
from rankone.construct.theorem2 import Grade, contextual_mapping
from rankone.corpus import Corpus
from rankone.decimals import log10
from rankone.errors import PrecisionError, SettingError
from rankone.explain.promise import promise
from rankone.nn import Model
from rankone.plural import plural
from rankone.progress import Progress

LARGE = 1500  # columns: beyond, bounds are computed, but no weights
PER_BIT = 2e-7  # seconds for an exponential, per bit of precision, and what goes with it


@dataclass(frozen=True)
class GradeReport:
    """One row of the table.

    ``digits`` is what arithmetic needs to see that context ids differ; ``log10_bound`` is the
    separation that the theorem promises for these weights, None where it promises nothing;
    ``log10_gap`` the certified separation, None if there is none. ``remark`` says why.
    """

    grade: str
    query: str | None
    digits: float
    log10_bound: float | None
    log10_gap: float | None
    outcome: Outcome
    remark: str | None = None
    model: Model | None = None
    certificate: Certificate | None = None

    @property
    def name(self) -> str:
        return self.grade if self.query != "separate" else f"{self.grade}-{self.query}"

    def to_json(self) -> dict[str, Any]:
        figures = ("grade", "query", "digits", "log10_bound", "log10_gap", "outcome", "remark")
        seconds = None if self.certificate is None else self.certificate.seconds["total"]
        return {**{name: getattr(self, name) for name in figures}, "seconds": seconds}


@dataclass(frozen=True)
class Explanation:
    """The grades of Theorem 2 on one corpus: |V| = ``vocabulary`` columns, n tokens seen, d."""

    source: str
    vocabulary: int
    n: int
    dim: int
    statement: str
    grades: tuple[GradeReport, ...]
    setting: Setting

    @property
    def ok(self) -> bool:
        return all(g.outcome is not Outcome.REFUTED for g in self.grades)

    def to_json(self) -> dict[str, Any]:
        names = ("source", "vocabulary", "n", "dim", "statement")
        figures = {name: getattr(self, name) for name in names}
        return {"ok": self.ok, **figures, "grades": [g.to_json() for g in self.grades]}

    def save(self, directory: str | os.PathLike[str]) -> list[Path]:
        """The weights of every grade that has some, each a model directory with its certificate."""
        files = []
        for report in self.grades:
            if report.model is not None and report.certificate is not None:
                home = Path(directory, report.name)
                report.model.save(home)
                files.append(report.certificate.save(home / "certificate.json"))
        return files


def explain(
    corpus: Corpus,
    vectors: ArrayLike | None = None,
    *,
    positions: bool | None = None,
    dim: int = 2,
    seed: int = 0,
    cap: int = CAP,
    seconds: float = 120.0,
    progress: Progress = lambda *_: None,
) -> Explanation:
    """Build and certify every grade on the corpus, as far as `cap` digits and `seconds` go.

    "paper" and "tight" use the given token vectors, or drawn ones of `dim` numbers, and positions
    where sentences repeat a token. "practical" is what `memorize` builds, with a table of its own.
    """
    if not seconds >= 0:
        raise SettingError(f"seconds = {seconds} cannot be used", remedy="give a number from 0")
    where = setting(corpus, vectors, positions=positions, dim=dim, seed=seed)
    reports = []
    for grade, query in (("paper", "shared"), ("tight", "shared"), ("tight", "separate")):
        progress(f"grade {grade}", 0.0)
        told = f"grade {grade}{', separate query' if query == 'separate' else ''}"

        def tell(stage: str, share: float, told: str = told) -> None:
            progress(f"{told}: {stage}", share)

        make = _promised if len(where.columns) > LARGE else _graded
        report = make(corpus, where, grade, query, seed)  # type: ignore[arg-type]
        reports.append(_certified(report, corpus, cap, seconds, tell))
    progress("grade practical", 0.0)
    reports.append(_practical(corpus, where, seed, cap, progress))
    masked = ", masked (Appendix C)" if where.masked else ""
    statement = "Corollary 1" if where.positions is None else "Corollary 2"
    return Explanation(
        source=corpus.source,
        vocabulary=len(where.columns),
        n=where.n,
        dim=where.table.shape[1],
        statement=f"{statement}{masked}",
        grades=tuple(reports),
        setting=where,
    )


def _graded(corpus: Corpus, where: Setting, grade: Grade, query: Query, seed: int) -> GradeReport:
    try:
        graded = contextual_mapping(
            where.columns, where.n, grade=grade, query=query, masked=where.masked, seed=seed
        )
    except PrecisionError as error:
        report = _promised(corpus, where, grade, query, seed)
        return replace(report, remark=error.what)
    return GradeReport(
        grade,
        query,
        graded.digits,
        graded.log10_bound,
        None,
        Outcome.UNDECIDED,
        model=graded_model(corpus, where, graded),
    )


def _promised(corpus: Corpus, where: Setting, grade: Grade, query: Query, seed: int) -> GradeReport:
    digits, log10_bound = promise(corpus, where, grade, query, seed)
    remark = f"{plural(len(where.columns), 'column')}: too many to build, so figures only"
    return GradeReport(grade, query, digits, log10_bound, None, Outcome.UNDECIDED, remark)


def _certified(
    report: GradeReport, corpus: Corpus, cap: int, seconds: float, progress: Progress
) -> GradeReport:
    if report.model is None:
        return report
    needed = float((corpus.lengths**2).sum()) * report.digits * math.log2(10) * PER_BIT
    if report.digits > cap:
        return replace(report, remark=f"needs more than {cap:,} digits (--cap)")
    if needed > seconds:
        shown = f"{needed:,.0f}" if needed >= 1 else f"{needed:.1g}"
        return replace(report, remark=f"would take about {shown} s (--seconds)")
    certificate = certify_model(report.model, corpus, cap=cap, progress=progress)
    report = replace(report, outcome=certificate.outcome, certificate=certificate)
    if certificate.contexts == 1:
        return replace(report, remark="a single context, so nothing has to be told apart")
    return replace(report, log10_gap=log10(certificate.delta)) if certificate.ok else report


def _practical(
    corpus: Corpus, where: Setting, seed: int, cap: int, progress: Progress
) -> GradeReport:
    model = memorize(corpus, positions=where.positions is not None, seed=seed).model
    report = GradeReport(
        "practical", None, FLOAT_DIGITS, None, None, Outcome.UNDECIDED, model=model
    )
    return _certified(report, corpus, cap, math.inf, progress)
