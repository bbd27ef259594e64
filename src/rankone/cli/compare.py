"""rankone compare [FILE] --growth --out DIR"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.cli.options import flag, option
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.comparison import Comparison, Growth, Row


@bundled
def compare(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="Corpus (default: `toy`; with --growth, made-up sentences).",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        options.out("DIR", "Write a page, plots, a CSV and every model here."),
    ] = None,
    constructions: Annotated[
        str | None, option("Constructions to compare, separated by commas (default: all).", "A,B")
    ] = None,
    growth: Annotated[
        bool, flag("Build each for 1, 2, 4, ... sentences, and fit how it grows.", "--growth")
    ] = False,
    positions: Annotated[
        bool | None,
        option(
            "Add positional encodings, or none (default: only if a sentence repeats a token).",
            show_default=False,
        ),
    ] = None,
    last: Annotated[
        bool, flag("Ask for the label of the last token of each sentence only.", "--last")
    ] = False,
    cap: options.Cap = options.CAP,
    seconds: Annotated[
        float, option("Time limit for each construction, in seconds.", "S", min=0.0)
    ] = 120.0,
    sentences: Annotated[
        int, option("With --growth: the most sentences.", "N", min=1, max=1 << 20)
    ] = 1 << 14,
    seed: options.Seed = 0,
    *,
    reading: options.Reading,
    output: options.Output,
) -> None:
    """Build every construction of the field for one file, and compare sizes, bits and proofs.

    Each is run and certified in exact arithmetic, or in float64 where that can hold it.
    """
    from rankone.cli import console

    with console.working("start", output) as progress:
        from rankone.comparison import Comparison, grow
        from rankone.comparison.compare import check_constructions, compare
        from rankone.corpus import read_corpus
        from rankone.files import check_directory

        if out is not None:
            check_directory(out)
        names = None if constructions is None else [x.strip() for x in constructions.split(",")]
        chosen = check_constructions(names)
        progress("read", 0.0)
        source = file if file is not None or growth else "toy"
        corpus = None if source is None else read_corpus(source, **reading.arguments())
        given: dict[str, Any] = {"constructions": chosen, "positions": positions, "last": last}
        given |= {"cap": cap, "seconds": seconds, "seed": seed, "progress": progress}
        found: Comparison | Growth
        if growth:
            found = grow(corpus, **given, most=sentences)
        else:
            assert corpus is not None
            found = compare(corpus, **given)
        files = []
        done = bool(found.rows if isinstance(found, Comparison) else found.curves)
        if out is not None and done:
            progress("write", 0.0)
            files = found.save(out)
    nothing = f"--out DIR writes plots and a table{'' if growth else ', and every model'}."
    nothing = nothing if out is None else ""
    console.report(output, found.to_json(), lambda: _show(found), files, otherwise=nothing)
    if found.interrupted:
        raise KeyboardInterrupt
    if not found.ok:
        raise typer.Exit(1)


def _show(found: Comparison | Growth) -> None:
    from rankone.comparison import Comparison

    if isinstance(found, Comparison):
        _show_rows(found)
    else:
        _show_growth(found)


HEADER = (
    "construction",
    "layers",
    "attend",
    "heads",
    "width",
    "parameters",
    "non-zero",
    "distinct",
    "bits",
    "all bits",
    "digits",
    "contexts",
    "wrong",
    "must",
    "outcome",
    "seconds",
)
FIGURES = (
    "layers attentions heads width parameters nonzero distinct bits bits_total digits contexts "
    "wrong unavoidable"
).split()


def _show_rows(found: Comparison) -> None:
    from rankone.cli import console

    seen = "with" if found.positions else "without"
    if not found.rows:
        console.print_lines("Stopped before the first row was done.")
        return
    console.print_table(
        f"{found.source}: {plural(found.sentences, 'sentence')}, "
        f"{plural(found.tokens, 'token')}, {seen} positions",
        [_row(row) for row in found.rows],
        HEADER,
        wide=True,
    )
    for row in found.rows:
        if row.reason is not None:
            console.print_lines(f"{row.name}: {row.reason}")
        if row.cross_entropy is not None:
            console.print_lines(
                f"{row.name}: cross-entropy {row.cross_entropy:.9f}, "
                f"entropy of the data {row.entropy:.9f} nats per label"
            )
    if found.interrupted:
        console.print_lines("Stopped: these rows were done.")


def _row(row: Row) -> tuple[str, ...]:
    figures = (getattr(row, name) for name in FIGURES)
    outcome = "not built" if row.outcome is None else row.outcome.value
    return (row.name, *map(_short, figures), outcome, f"{row.seconds:.2f}")


def _short(value: int | None) -> str:
    """At most six characters: 12,345, 123k, 1.2M, 4.5e12."""
    if value is None:
        return "-"
    if value < 100_000:
        return f"{value:,}"
    for size, letter in ((1e6, "k"), (1e9, "M"), (1e12, "G")):
        if value < size:
            shown = value / size * 1000
            return f"{shown:.0f}{letter}" if shown >= 100 else f"{shown:.1f}{letter}"
    return f"{value:.1e}"


def _show_growth(found: Growth) -> None:
    from rankone.cli import console
    from rankone.comparison.growth import FITTED

    rows = []
    for curve in found.curves:
        slopes = (curve.exponents[name] for name in FITTED)
        shown = ("-" if slope is None else f"{slope:.2f}" for slope in slopes)
        most = f"{max(curve.contexts):,}" if curve.contexts else "none"
        rows.append((curve.name, most, *shown))
    if not rows:
        console.print_lines("Stopped before the first curve was done.")
        return
    header = ("construction", "reached", "parameters", "non-zero", "bits", "all bits", "layers")
    console.print_table(
        f"{found.source}: contexts reached, and the exponent of each figure against that number",
        rows,
        (*header, "seconds"),
        wide=True,
    )
    for curve in found.curves:
        console.print_lines(f"{curve.name} ends after {curve.end}")
    if found.grid_base is not None:
        layers = ", ".join(f"{n:,}" for n in found.grid_layers.values())
        console.print_lines(
            f"yun2020: attention layers for grids of dimension 1, 2, ...: {layers}; "
            f"they grow by a factor of {found.grid_base:.2f} per dimension"
        )
    if found.interrupted:
        console.print_lines("Stopped: these curves were done.")
