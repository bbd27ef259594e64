"""rankone explain [FILE]"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.cli.options import option

if TYPE_CHECKING:
    from rankone.explanation import Explanation


@bundled
def explain(
    file: options.File = "toy",
    out: Annotated[
        Path | None,
        options.out("DIR", "Write plots (PNG, SVG) and the weights of every grade here."),
    ] = None,
    vectors: options.Vectors = None,
    dim: Annotated[int, option("Length of random vectors.", "D", min=1, max=1 << 12)] = 2,
    cap: options.Cap = options.CAP,
    seconds: Annotated[
        float, option("Time limit for each grade, in seconds.", "S", min=0.0)
    ] = 120.0,
    seed: options.Seed = 0,
    *,
    reading: options.Reading,
    output: options.Output,
) -> None:
    """Compare the proof with the facts: digits it needs, the gap it promises, the gap there is.

    Builds the weights of Theorem 2 in every grade, and certifies those within the limits.
    """
    from rankone.cli import console

    with console.working("start", output) as progress:
        from rankone.corpus import read_corpus
        from rankone.explanation import explain
        from rankone.files import check_directory

        if out is not None:
            check_directory(out)
        progress("read", 0.0)
        corpus = read_corpus(file, **reading.arguments())
        found = explain(
            corpus,
            vectors=vectors,
            dim=dim,
            seed=seed,
            cap=cap,
            seconds=seconds,
            progress=progress,
        )
        files = []
        if out is not None:
            progress("plots", 0.0)
            files = found.save(out)
    nothing = "--out DIR writes plots and weights."
    console.report(output, found.to_json(), lambda: _show(found), files, otherwise=nothing)


def _show(found: Explanation) -> None:
    from rankone.cli import console

    rows: list[tuple[str, ...]] = []
    for report in found.grades:
        name = report.grade + (", separate query" if report.query == "separate" else "")
        digits = f"{report.digits:,.0f}" if report.digits < 1e9 else f"{report.digits:.1e}"
        bound = "none" if report.log10_bound is None else _power(report.log10_bound)
        gap = "none" if report.log10_gap is None else _power(report.log10_gap)
        rows.append((name, digits, bound, gap, report.outcome.value))
    console.print_table(
        f"{found.source}: |V| = {found.vocabulary:,}, n = {found.n:,}, d = {found.dim}; "
        f"{found.statement}",
        rows,
        ("grade", "digits needed", "bound", "gap, certified", "outcome"),
    )
    for (name, *_), report in zip(rows, found.grades, strict=True):
        if report.remark is not None:
            console.print_lines(f"{name}: {report.remark}")


def _power(log10: float) -> str:
    """10 to a power, which may itself be larger than one would write out."""
    return f"1e{log10:.0f}" if log10 > -1e9 else f"10^({log10:.1e})"
