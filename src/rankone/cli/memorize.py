"""rankone memorize FILE --out DIR"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rankone.cli import options
from rankone.errors import SettingError
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.construct import Memorized
    from rankone.corpus import Corpus
    from rankone.progress import Progress

SHOWN = 10


class Layout(StrEnum):
    """Typer takes no list of literals."""

    AUTO = "auto"
    CONLL = "conll"
    CONLLU = "conllu"
    TSV = "tsv"
    JSONL = "jsonl"
    HF = "hf"


def memorize(
    file: options.File,
    out: Annotated[Path | None, options.out("DIR", "Where to write the model.")] = None,
    vectors: options.Vectors = None,
    positions: Annotated[
        bool, typer.Option(help="Positional encodings (Corollary 2) or none (Corollary 1).")
    ] = True,
    causal: Annotated[bool, typer.Option("--causal", help="Causal mask.")] = False,
    head_size: Annotated[
        int, typer.Option(metavar="S", min=1, max=1 << 16, help="Head size s; weights keep rank 1.")
    ] = 1,
    readout: Annotated[
        Literal["merged", "paper"],
        typer.Option(help="Hidden units where labels change, or one per context id."),
    ] = "merged",
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse labels that contradict each other.")
    ] = False,
    max_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=1 << 24,
            help="Rows of the table of positions; default the longest sentence.",
            show_default=False,
        ),
    ] = None,
    verify: Annotated[
        Literal["sample", "dense"],
        typer.Option(help="Run the network as written on a sample, or on every token."),
    ] = "sample",
    seed: options.Seed = 0,
    format: Annotated[
        list[Layout] | None,
        typer.Option(
            help="Layout of the file; and hf, to write the model for Hugging Face, with a "
            "certificate. Both may be given.",
            show_default="auto",
            rich_help_panel=options.READING,
        ),
    ] = None,
    token_column: options.TokenColumn = None,
    label_column: options.LabelColumn = None,
    scheme: options.Scheme = "keep",
    lower: options.Lower = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Build a one-layer rank-1 Transformer that labels every token of the file right."""
    from rankone.cli import console

    layout, for_hf = _formats(list(map(str, format or [])), out)
    how = options.reading(layout, token_column, label_column, scheme=scheme, lower=lower)
    with console.working("start", quiet=quiet or json) as progress:
        from rankone.construct import memorize
        from rankone.corpus import read_corpus

        if out is not None:
            _check_target(out, for_hf)
        progress("read", 0.0)
        corpus = read_corpus(file, **how)
        result = memorize(
            corpus,
            vectors=vectors,
            positions=positions,
            causal=causal,
            head_size=head_size,
            readout=readout,
            strict=strict,
            max_length=max_length,
            verify=verify,
            seed=seed,
            progress=progress,
        )
        files = [] if out is None else _save(result, corpus, out, for_hf, progress)
    if json:
        console.print_json({**result.to_json(), "files": [str(path) for path in files]})
    elif not quiet:
        _show(result, scheme)
        console.print_lines(*(["Wrote"] if files else ["Nothing written: no --out DIR."]))
        console.print_lines(*(f"  {path}" for path in files))


def _formats(given: list[str], out: Path | None) -> tuple[str, bool]:
    """The layout of the file, and whether the model is for Hugging Face."""
    layouts = [name for name in given if name != "hf"] or ["auto"]
    if len(set(layouts)) > 1:
        raise SettingError(
            f"one file cannot have two layouts ({', '.join(layouts)})", remedy="give one --format"
        )
    if "hf" in given and out is None:
        raise SettingError("--format hf writes a directory", remedy="name it with --out DIR")
    return layouts[0], "hf" in given


def _check_target(out: Path, for_hf: bool) -> None:
    """Before the work: is there a place for what comes of it, and what is needed to write it?"""
    if for_hf:
        from rankone.interop.huggingface.export import check_hf_target

        check_hf_target(out)
    else:
        from rankone.nn.store import check_target

        check_target(out)


def _save(
    result: Memorized, corpus: Corpus, out: Path, for_hf: bool, progress: Progress
) -> list[Path]:
    if not for_hf:
        return result.save(out)
    from rankone.certify import certify_model
    from rankone.interop.huggingface import export_hf

    certificate = certify_model(result.model, corpus, progress=progress)
    progress("write", 0.0)
    written = export_hf(result.model, out, report=result.to_json(), certificate=certificate)
    result.remarks.extend(written.remarks)
    return written.files


def _show(result: Memorized, asked: str) -> None:
    from rankone.cli import console
    from rankone.corpus import Columns

    seconds = result.seconds
    right = result.tokens - result.wrong
    console.print_table(
        f"{result.source}: one layer, one head, rank 1",
        [
            ("tokens right", f"{right:,} of {result.tokens:,} ({result.accuracy:.4%})"),
            ("tokens wrong", f"{result.wrong:,} ({result.unavoidable:,} unavoidable)"),
            ("hidden units", f"{result.hidden_units:,}"),
            ("parameters", f"{result.parameters:,} (in the paper: {result.paper_parameters:,})"),
            ("largest output error", f"{result.max_error:.1e} (labels are 1 apart)"),
            ("margin", f"{result.margin:.6f}"),
            ("smallest gap", "none" if result.min_gap is None else f"{result.min_gap:.1e}"),
            (
                "network as written",
                f"{plural(result.dense_tokens, 'token')}, largest error {result.dense_error:.1e}",
            ),
            ("read", f"{seconds['read']:.3f} s"),
            ("construct", f"{seconds['construct']:.3f} s"),
            ("verify", f"{seconds['verify']:.3f} s (as written: {seconds['dense']:.3f} s)"),
        ],
    )
    read = str(Columns(**result.settings["columns"]))
    said = console.scheme_line(result.settings["scheme"], asked)
    console.print_lines(*([f"Read {read}."] if read else []), *([said] if said else []))
    console.print_lines(*result.remarks)
    for conflict in result.conflicts[:SHOWN]:
        console.print_lines(f"  {conflict}", f"    {conflict.excerpt()}")
    if len(result.conflicts) > SHOWN:
        console.print_lines(f"  and {len(result.conflicts) - SHOWN} more (--json lists all)")
