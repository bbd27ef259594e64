"""Every construction of the field on the toy corpus, and how each of them grows.

Prints the tables of docs/related.md. With --out DIR, writes figures and plots there as well: those
of the documentation are in docs/figures/compare. It takes a quarter of an hour.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import common
import rankone
from rankone.comparison import Comparison, Growth
from rankone.comparison.growth import FITTED
from rankone.comparison.plots import draw_comparison
from rankone.comparison.result import TABLE, written_table

FIGURES = "layers attentions heads width parameters nonzero distinct bits bits_total digits".split()


def side_by_side(found: Comparison) -> None:
    print(f"{found.source}: {found.tokens:,} tokens, {found.rows[0].contexts:,} contexts\n")
    rows = []
    for row in found.rows:
        figures = (getattr(row, name) for name in FIGURES)
        shown = ["" if value is None else f"{value:,}" for value in figures]
        outcome = "not built" if row.outcome is None else row.outcome.value
        rows.append([row.name, *shown, outcome, f"{row.seconds:.2f}"])
    names = ["construction", "layers", "attend", "heads", "width", "parameters", "non-zero"]
    common.table([*names, "distinct", "bits", "all bits", "digits", "outcome", "seconds"], rows)
    for row in found.rows:
        if row.cross_entropy is not None:
            print(f"{row.name}: cross-entropy {row.cross_entropy}, entropy {row.entropy} nats")
        if row.reason is not None:
            print(f"{row.name}: {row.reason}")
    print()


def growth(found: Growth) -> None:
    rows = []
    for curve in found.curves:
        slopes = [curve.exponents[name] for name in FITTED]
        most = f"{max(curve.contexts):,}" if curve.contexts else "none"
        last = curve.rows[len(curve.contexts) - 1] if curve.contexts else None
        figures = [last.nonzero, last.bits] if last is not None else [None, None]
        shown = ["" if value is None else f"{value:,}" for value in figures]
        fitted = ["" if slope is None else f"{slope:.2f}" for slope in slopes]
        rows.append([curve.name, most, *shown, *fitted, curve.end])
    names = ["construction", "contexts", "non-zero", "bits"]
    common.table([*names, *FITTED, "ends with"], rows)
    layers = ", ".join(map(str, found.grid_layers.values()))
    print(f"yun2020, attention layers for d = 1, 2, ...: {layers}; base {found.grid_base}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="directory for the plots")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each construction")
    parser.add_argument("--sentences", type=int, default=1 << 14, help="at most, while growing")
    given = parser.parse_args()
    compared = rankone.compare("toy", seconds=given.seconds)
    side_by_side(compared)
    grown = rankone.grow(seconds=given.seconds, most=given.sentences)
    growth(grown)
    if given.out is not None:
        grown.save(given.out)
        (given.out / TABLE).write_text(written_table(compared.rows))
        draw_comparison(given.out, compared)


if __name__ == "__main__":
    main()
