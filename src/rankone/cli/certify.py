"""rankone certify DIR FILE..."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.cli.options import option
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.certification import Certificate, Check
    from rankone.corpus import Corpus


@bundled
def certify(
    model: options.ModelDirectory,
    files: options.Files,
    check: Annotated[
        Path | None, option("Check this certificate again and write nothing.", "CERTIFICATE")
    ] = None,
    cap: options.Cap = options.CAP,
    seconds: Annotated[
        float | None,
        option(
            "Time limit in seconds; undecided tokens are counted (default: none).", "S", min=0.0
        ),
    ] = None,
    forgotten: Annotated[
        str | None,
        option("Sentences that the model should not hold: prove what it has left of them.", "FILE"),
    ] = None,
    out: Annotated[
        Path | None, options.out("PATH", "Certificate to write (default: DIR/certificate.json).")
    ] = None,
    *,
    layout: options.Layout,
    engines: options.Engines,
    output: options.Output,
) -> None:
    """Prove or refute that the weights tell all contexts apart and label every token right.

    Exit status 1: refuted, or not decided within the limits.
    """
    from rankone.cli import console
    from rankone.cli.parts import in_parts
    from rankone.files import check_place, drop_link
    from rankone.nn.store import CERTIFICATE

    with contextlib.ExitStack() as stack, console.working("start", output) as progress:
        from rankone.certification import certify, check_certificate, read_certificate
        from rankone.certification.certify import check_limits
        from rankone.corpus.parted import PartedCorpus
        from rankone.nn.exact.model import ExactModel, load_any

        check_limits(cap, seconds)
        path = model / CERTIFICATE if out is None else out
        old = None if check is None else read_certificate(check)
        loaded = load_any(model)
        if old is None:
            check_place(path, remedy="choose another path with --out")
        progress("read", 0.0)
        how = {"labelled": True, **layout.arguments()}
        corpus: Corpus | PartedCorpus
        if engines.given:
            engine = stack.enter_context(engines.open())
            corpus = in_parts(loaded, files, engine, how, progress)
        else:
            corpus = loaded.read(files, **how)
        if old is not None:
            checked = check_certificate(
                old, loaded, corpus, forgotten=forgotten, seconds=seconds, progress=progress
            )
        else:
            found = certify(
                loaded, corpus, forgotten=forgotten, cap=cap, seconds=seconds, progress=progress
            )
            if found.forgotten is not None and not isinstance(loaded, ExactModel):
                from rankone.construct.edit import is_made_of

                assert not isinstance(corpus, PartedCorpus)  # refused

                progress("make anew", 0.0)
                again = replace(found.forgotten, anew=is_made_of(loaded, corpus))
                found = replace(found, forgotten=again)
            found.save(drop_link(path) if out is None else path)
    if old is not None:
        document = {**checked.to_json(), "certificate": str(check)}
        console.report(output, document, lambda: _show_check(checked))
    else:
        console.report(output, found.to_json(), lambda: _show(found), [path])
    left = None if old is not None else found.forgotten
    fine = checked.ok and old.ok if old is not None else found.ok
    if not fine or (left is not None and not left.ok):
        raise typer.Exit(1)


def _show(found: Certificate) -> None:
    from rankone.certification.certificate import EXACT
    from rankone.cli import console

    decided = found.decided
    digits = f", with up to {found.digits:,} digits" if decided["exact"] else ""
    exact = found.dtype == EXACT
    run = [] if exact else [(f"{found.dtype} run off by less than", found.float_distance)]
    where = "tokens decided in exact arithmetic" if exact else "  in Arb"
    console.print_table(
        f"{found.source}: {found.outcome}",
        [
            ("contextual mapping", found.mapping),
            ("  context ids are shorter than r", found.r),
            (f"  {plural(found.contexts, 'context')} apart by more than delta", found.delta),
            *_labels(found),
            *run,
            *_any_order(found),
            *_texts(found),
            *_forgotten(found),
            *([] if exact else [("tokens decided in float64", f"{decided['float']:,}")]),
            (f"{where}{digits}", f"{decided['exact']:,}"),
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
    from rankone.certification.certificate import EXACT

    run = {True: "the same labels", False: "OTHER LABELS", None: "not decided"}
    exact = "no rounding: weights are fractions"
    return [
        ("labels", found.labels),
        ("  wrong", f"{found.wrong:,} ({found.unavoidable:,} unavoidable)"),
        ("  margin", "none" if found.margin is None else f"{found.margin:.6f}"),
        (f"  {found.dtype} run", exact if found.dtype == EXACT else run[found.float_labels]),
    ]


def _any_order(found: Certificate) -> list[tuple[str, str]]:
    known = {True: "the same labels", False: "not proved"}
    return [] if found.any_order is None else [("  in any order of sums", known[found.any_order])]


def _texts(found: Certificate) -> list[tuple[str, str]]:
    rows = []
    if found.documents is not None:
        documents = f"{found.recited:,} of {plural(found.documents, 'document')}"
        rows = [("recited whole", documents), ("  branches", f"{found.branches:,}")]
    if found.excess is not None:
        rows.append(("cross-entropy above the least, nats", f"less than {found.excess}"))
    return rows


def _forgotten(found: Certificate) -> list[tuple[str, str]]:
    left = found.forgotten
    if left is None:
        return []
    anew = {True: "the same bytes", False: "OTHER BYTES", None: "not tried"}
    return [
        ("forgotten", plural(len(left.sentences), "sentence")),
        (
            "  their contexts",
            f"{left.contexts:,}: {left.held:,} in the corpus too, {left.silent:,} without units",
        ),
        ("  units that the others reach", f"{left.units:,} ({left.idle:,} of them idle)"),
        ("  made anew of the corpus", anew[left.anew]),
    ]


def _show_check(checked: Check) -> None:
    from rankone.cli import console

    if checked.ok:
        console.print_lines(f"The certificate stands: {checked.outcome}.")
    else:
        console.print_lines("The certificate does not stand:")
        console.print_lines(*(f"  {reason}" for reason in checked.reasons))
