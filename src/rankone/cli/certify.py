"""rankone certify DIR FILE"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankone.cli import options

if TYPE_CHECKING:
    from rankone.certify import Certificate, Check


def certify(
    model: options.ModelDirectory,
    file: options.File,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="CERTIFICATE",
            help="Verify this certificate anew; nothing is written.",
            show_default=False,
        ),
    ] = None,
    cap: options.Cap = options.CAP,
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            min=0.0,
            help="Time limit; what is not decided by then is counted (default: none).",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        options.out("PATH", "Where to write the certificate; default DIR/certificate.json."),
    ] = None,
    format: options.Format = "auto",
    token_column: options.TokenColumn = None,
    label_column: options.LabelColumn = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Prove, or refute, that the weights tell all contexts apart and label every token right.

    Exit status 1: checked, and it does not hold, or could not be decided within the limits.
    """
    from rankone.cli import console
    from rankone.files import check_place, drop_link
    from rankone.nn import load
    from rankone.nn.store import CERTIFICATE

    with console.working("start", quiet=quiet or json) as progress:
        from rankone.certify import certify_model, check_certificate, read_certificate
        from rankone.certify.certify import check_limits

        check_limits(cap, seconds)
        path = model / CERTIFICATE if out is None else out
        old = None if check is None else read_certificate(check)
        loaded = load(model)
        if old is None:
            check_place(path, remedy="choose another path with --out")
        progress("read", 0.0)
        how = options.reading(format, token_column, label_column)
        corpus = options.read_like(loaded, file, labelled=True, **how)
        if old is not None:
            checked = check_certificate(old, loaded, corpus, seconds=seconds, progress=progress)
            document = {**checked.to_json(), "certificate": str(check)}
        else:
            found = certify_model(loaded, corpus, cap=cap, seconds=seconds, progress=progress)
            found.save(drop_link(path) if out is None else path)
            document = {**found.to_json(), "files": [str(path)]}
    if json:
        console.print_json(document)
    elif not quiet and old is not None:
        _show_check(checked)
    elif not quiet:
        _show(found)
        console.print_lines("Wrote", f"  {path}")
    if not (checked.ok and old.ok if old is not None else found.ok):
        raise typer.Exit(1)


def _show(found: Certificate) -> None:
    from rankone.cli import console
    from rankone.plural import plural

    decided = found.decided
    digits = f", with up to {found.digits:,} digits" if decided["exact"] else ""
    console.print_table(
        f"{found.source}: {found.outcome}",
        [
            ("contextual mapping", found.mapping),
            ("  context ids are shorter than r", found.r),
            (f"  {plural(found.contexts, 'context')} apart by more than delta", found.delta),
            *_labels(found),
            ("float64 run off by less than", found.float_distance),
            ("tokens decided in float64", f"{decided['float']:,}"),
            (f"  in Arb{digits}", f"{decided['exact']:,}"),
            ("  not at all", f"{decided['undecided']:,}"),
            ("seconds", f"{found.seconds['total']:.3f}"),
        ],
    )
    if found.reason is not None:
        console.print_lines(found.reason)
    elif found.closest is not None:
        console.print_lines("Closest: " + " and ".join(map(str, found.closest)))


def _labels(found: Certificate) -> list[tuple[str, str]]:
    if found.labels is None:
        return [("labels", "none: the model has no readout")]
    run = {True: "the same labels", False: "OTHER LABELS", None: "not decided"}
    return [
        ("labels", found.labels),
        ("  wrong", f"{found.wrong:,} ({found.unavoidable:,} unavoidable)"),
        ("  margin", "none" if found.margin is None else f"{found.margin:.6f}"),
        ("  float64 run", run[found.float_labels]),
    ]


def _show_check(checked: Check) -> None:
    from rankone.cli import console

    if checked.ok:
        console.print_lines(f"The certificate stands: {checked.outcome}.")
    else:
        console.print_lines("The certificate does not stand:")
        console.print_lines(*(f"  {reason}" for reason in checked.reasons))
