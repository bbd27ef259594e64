"""rankone inspect FILE..."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankone.cli import options
from rankone.cli.bundles import bundled

if TYPE_CHECKING:
    from rankone.audit.gate import Failure
    from rankone.engines import Engine
    from rankone.progress import Progress

GATE = "Failing a job"


@bundled
def inspect(
    files: options.Files,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="Another split: find what leaks, and what contradicts it; can be repeated.",
        ),
    ] = None,
    suspects: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=10**9, help="List the N labels most likely to be wrong."
        ),
    ] = 0,
    probabilities: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Label probabilities of a model of yours, as evidence for suspects.",
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Exit with status 1 on any of: leaks, near-leaks, conflicts, duplicates, "
            "suspects>0.95 (separated by commas).",
            rich_help_panel=GATE,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Output of an earlier `inspect --json`: its findings do not fail.",
            rich_help_panel=GATE,
        ),
    ] = None,
    rows: Annotated[
        Path | None,
        options.out("PATH", "Write the findings here, as rows to review: .csv, .tsv or .jsonl."),
    ] = None,
    out: Annotated[
        Path | None,
        options.out("PATH", "Write the findings here, as a web page; with --apply, the corpus."),
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option(
            metavar="ROWS",
            help="Write FILE to --out with the corrections that you accepted in these.",
        ),
    ] = None,
    *,
    reading: options.TextReading,
    engines: options.Engines,
    output: options.Output,
) -> None:
    """Find contradicting rows, leaks, likely errors, and the best possible score.

    The score is the best accuracy that any model could reach on these labels, by what it sees. For
    --task next: accuracy, entropy and perplexity, by prefixes and windows, and repeated passages.
    """
    from rankone.cli import audit_settings

    given = audit_settings.Given(
        tuple(files), tuple(against or ()), suspects, probabilities, fail_on, baseline, rows, out
    )
    if engines.given:
        audit_settings.check_parts(given, apply)
    if apply is not None:
        _correct(files[0], apply, audit_settings.check_apply(given, apply), reading, output)
        return
    gate = audit_settings.check_find(given, reading)
    from rankone.audit.baseline import Baseline
    from rankone.audit.inspect import inspect
    from rankone.cli import audit_tables, console
    from rankone.files import write_file

    with contextlib.ExitStack() as stack, console.working("read", output) as progress:
        known = None if baseline is None else Baseline.read(baseline)
        engine = stack.enter_context(engines.open()) if engines.given else None
        corpora = _read([*given.files, *given.against], reading, engine, progress)
        own, others = corpora[: len(files)], corpora[len(files) :]
        chances, remarks = None, list[str]()
        if probabilities is not None:
            from rankone.audit.probabilities import read_probabilities
            from rankone.corpus import join

            own = [join(own)]
            chances = read_probabilities(probabilities, own[0], remark=remarks.append)
        audit = inspect(
            own,
            against=others,
            suspects=suspects,
            above=None if gate is None else gate.score,
            probabilities=chances,
            progress=progress,
        )
        if gate is not None and known is not None:
            audit_settings.check_listed(audit, gate)
        failures = () if gate is None else gate.failures(audit, known)
        progress("write", 0.0)
        if rows is not None:
            from rankone.audit.rows import write_rows

            write_rows(audit, rows)
        if out is not None:
            from rankone.audit.page import page

            write_file(out, page(audit))
    console.report(
        output,
        {**audit.to_json(), "remarks": remarks},
        lambda: audit_tables.show(audit, reading.scheme, remarks),
        [path for path in (rows, out) if path is not None],
    )
    if failures:
        _fail(failures, fail_on, err=output.silent)


def _read(
    files: Sequence[str], reading: options.TextReading, engine: Engine | None, progress: Progress
) -> list[Any]:
    """A corpus of each file, in parts if there is an engine; built-in ones have no layout."""
    from rankone.corpus.builtin import is_builtin
    from rankone.corpus.read import LAYOUT, read_corpus
    from rankone.corpus.read_parts import read_parts

    found, how = list[Any](), reading.arguments()
    for i, file in enumerate(files):
        progress("read", i / len(files))
        if i and is_builtin(file):
            mine = {key: value for key, value in how.items() if key not in LAYOUT}
        else:
            mine = how
        found.append(
            read_corpus(file, **mine) if engine is None else read_parts(file, engine, **mine)
        )
    return found


def _fail(failures: tuple[Failure, ...], asked: str | None, *, err: bool) -> None:
    """Every finding that fails, on a line of its own; standard output stays one JSON object."""
    from rankone.cli import console
    from rankone.plural import plural

    title = f"Failed: {plural(len(failures), 'finding')} (--fail-on {asked})"
    for line in (title, *(f"  {failure}" for failure in failures)):
        typer.echo(console.plain(line), err=err)
    raise typer.Exit(1)


def _correct(
    file: str, rows: Path, out: Path, reading: options.TextReading, output: options.Output
) -> None:
    """Write the file anew with the corrections of these rows."""
    from rankone.errors import SettingError

    if reading != replace(reading, task="tags", tokenizer="words", window=0, blocks=False):
        raise SettingError(
            "rows are corrected in files of tags only", remedy="leave out --task and its settings"
        )
    from rankone.audit.apply import apply
    from rankone.audit.rows import read_rows
    from rankone.cli import audit_tables, console

    with console.working("apply", output):
        applied = apply(file, read_rows(rows), **options.tags_of(reading))
        applied.save(out)
    document, title = applied.to_json(), f"{file}, with the accepted corrections of {rows}"
    console.report(output, document, lambda: audit_tables.show_applied(applied, title), [out])
    if not applied.ok:
        raise typer.Exit(1)
