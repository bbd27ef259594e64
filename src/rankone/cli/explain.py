"""rankone explain [FILE]"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankone.cli import options

if TYPE_CHECKING:
    from rankone.explain import Explanation


def explain(
    file: options.File = "toy",
    out: Annotated[
        Path | None,
        options.out("DIR", "Where to write plots (PNG, SVG) and the weights of every grade."),
    ] = None,
    vectors: options.Vectors = None,
    dim: Annotated[
        int, typer.Option(metavar="D", min=1, max=1 << 12, help="Length of drawn vectors.")
    ] = 2,
    cap: options.Cap = options.CAP,
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.0, help="Most time to certify one grade.")
    ] = 120.0,
    seed: options.Seed = 0,
    format: options.Format = "auto",
    token_column: options.TokenColumn = None,
    label_column: options.LabelColumn = None,
    scheme: options.Scheme = "keep",
    lower: options.Lower = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """How many digits does the proof need here, what does it promise, what is the gap?

    Builds the weights of Theorem 2 in every grade, and certifies them as far as they are in reach.
    """
    from rankone.cli import console

    how = options.reading(format, token_column, label_column, scheme=scheme, lower=lower)
    with console.working("start", quiet=quiet or json) as progress:
        from rankone.construct import read_vectors
        from rankone.corpus import read_corpus
        from rankone.explain import draw_plots, explain
        from rankone.files import check_directory, made

        if out is not None:
            check_directory(out)
        progress("read", 0.0)
        corpus = read_corpus(file, **how)
        given = None if vectors is None else read_vectors(vectors, corpus.vocabulary)
        found = explain(
            corpus, given, dim=dim, seed=seed, cap=cap, seconds=seconds, progress=progress
        )
        files = []
        if out is not None:
            progress("plots", 0.0)
            with made(out) as home:
                files = [*found.save(home), *draw_plots(home, corpus, found, seed=seed)]
    if json:
        console.print_json({**found.to_json(), "files": [str(path) for path in files]})
    elif not quiet:
        _show(found)
        console.print_lines(*(["Wrote"] if files else ["--out DIR writes plots and weights."]))
        console.print_lines(*(f"  {path}" for path in files))


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
