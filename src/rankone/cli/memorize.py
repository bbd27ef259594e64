"""rankone memorize FILE... --out DIR --hf DIR"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from rankone import choices
from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.cli.options import flag, option
from rankone.errors import SettingError
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.construct import Memorized
    from rankone.corpus import Corpus
    from rankone.corpus.parted import PartedCorpus

SHOWN = 10


@dataclass(frozen=True)
class Building:
    """How to build the weights: arguments of `memorize`."""

    PANEL: ClassVar = None

    construction: Annotated[
        choices.Construction | None,
        option("How to build the weights (default: gated for next tokens, else line).", "NAME"),
    ] = None
    vectors: options.Vectors = None
    positions: Annotated[
        bool, option("Add positional encodings (Corollary 2), or none (Corollary 1).")
    ] = True
    causal: Annotated[bool, flag("Use a causal mask.", "--causal")] = False
    head_size: Annotated[
        int, option("Head size s; weights keep rank 1.", "S", min=1, max=1 << 16)
    ] = 1
    readout: Annotated[
        choices.Readout, option("Hidden units where labels change, or one per context id.")
    ] = "merged"
    heads: Annotated[
        int | None,
        option("Heads of `gated` (default: as few as the precision needs).", "H", min=1, max=64),
    ] = None
    dtype: Annotated[choices.Dtype, option("Precision of the weights of `gated`.")] = "float64"
    directions: Annotated[
        int, option("Directions that `gated` tries for every group of units.", "N", min=1, max=64)
    ] = 64
    editable: Annotated[
        bool, flag("Keep the sentences in the model, for `edit` (`gated` only).", "--editable")
    ] = False
    strict: Annotated[bool, flag("Refuse labels that contradict each other.", "--strict")] = False
    max_length: options.MaxLength = None
    verify: Annotated[
        choices.Verify, option("Run the dense network on a sample, or on every token.")
    ] = "sample"
    seed: options.Seed = 0


@bundled
def memorize(
    files: options.Files,
    out: Annotated[Path | None, options.out("DIR", "Write the model directory here.")] = None,
    hf: Annotated[
        Path | None,
        options.out("DIR", "Write a directory for Hugging Face here, with a certificate."),
    ] = None,
    *,
    building: Building,
    reading: options.TextReading,
    engines: options.Engines,
    output: options.Output,
) -> None:
    """Build a one-layer rank-1 Transformer that labels every token of the file right."""
    from rankone.cli import console

    with contextlib.ExitStack() as stack, console.working("start", output) as progress:
        _check_places(out, hf)
        from rankone.construct import memorize
        from rankone.corpus import read_corpus

        progress("read", 0.0)
        corpus: Corpus | PartedCorpus
        if engines.given:
            from rankone.construct.parted.steps import check_settings_of_parts
            from rankone.corpus.read_parts import read_parts

            check_settings_of_parts(building.construction, vars(building), reading.task)
            engine = stack.enter_context(engines.open())
            corpus = read_parts(files, engine, progress=progress, **reading.arguments())
        else:
            corpus = read_corpus(files, **reading.arguments())
        result = memorize(corpus, **vars(building), progress=progress)
        hub = None
        if hf is not None:
            from rankone.certification import certify
            from rankone.interop.huggingface.export import prepare_hf

            certificate = certify(result.model, corpus, progress=progress)
            hub = prepare_hf(result.model, hf, report=result.to_json(), certificate=certificate)
        progress("write", 0.0)
        saved = [] if out is None else result.save(out)
        written = None if hub is None else hub.write()
    remarks = list(result.remarks)
    if written is not None:
        saved += written.files
        remarks += written.remarks
    console.report(
        output,
        {**result.to_json(), "remarks": remarks},
        lambda: _show(result, remarks, reading.scheme),
        saved,
        otherwise="Nothing written: no --out DIR, no --hf DIR.",
    )


def _check_places(out: Path | None, hf: Path | None) -> None:
    """Before the work: can both directories be written, and is what that needs installed?"""
    if out is not None and hf is not None:
        places = out.resolve(), hf.resolve()
        if places[0].is_relative_to(places[1]) or places[1].is_relative_to(places[0]):
            raise SettingError(
                "--out and --hf are the same directory, or one is inside the other",
                remedy="choose two separate directories",
            )
    if out is not None:
        from rankone.nn.store import check_target

        check_target(out)
    if hf is not None:
        from rankone.interop.huggingface.export import check_hf_target

        check_hf_target(hf)


def _show(result: Memorized, remarks: list[str], asked: str) -> None:
    from rankone.cli import console
    from rankone.corpus import Columns
    from rankone.corpus.tasks import asks_next

    seconds = result.seconds
    right = result.asked - result.wrong
    heads, least = result.model.network.shape.heads, result.least_units
    units = f"{result.hidden_units:,}"
    unit = _asked(result)
    units += "" if least is None else f" (this kind of readout needs {least:,} or more)"
    console.print_table(
        f"{result.source}: one layer, {plural(heads, 'head')}, rank 1",
        [
            (f"{unit} right", f"{right:,} of {result.asked:,} ({result.accuracy:.4%})"),
            (f"{unit} wrong", f"{result.wrong:,} ({result.unavoidable:,} unavoidable)"),
            *([] if result.bits is None else [("bits per token", f"{result.bits:.4g}")]),
            ("hidden units", units),
            ("parameters", f"{result.parameters:,} (paper: {result.paper_parameters:,})"),
            ("largest output error", f"{result.max_error:.1e} (0.5 would be wrong)"),
            ("margin", f"{result.margin:.6f}"),
            ("smallest gap", "none" if result.min_gap is None else f"{result.min_gap:.1e}"),
            (
                "dense network",
                f"{plural(result.dense_tokens, 'token')}, largest error {result.dense_error:.1e}",
            ),
            ("read", f"{seconds['read']:.3f} s"),
            ("construct", f"{seconds['construct']:.3f} s"),
            ("verify", f"{seconds['verify']:.3f} s (dense network: {seconds['dense']:.3f} s)"),
        ],
    )
    read = str(Columns(**result.settings["columns"]))
    console.print_lines(
        *([f"Read {read}."] if read else []),
        *console.scheme_lines(result.settings["scheme"], asked),
        *remarks,
    )
    if asks_next(result.model.task.name):  # `inspect` shows where texts part
        return
    for conflict in result.conflicts[:SHOWN]:
        console.print_lines(f"  {conflict}", f"    {conflict.excerpt()}")
    if len(result.conflicts) > SHOWN:
        console.print_lines(f"  and {len(result.conflicts) - SHOWN:,} more (--json lists all)")


def _asked(result: Memorized) -> str:
    """What is right or wrong."""
    task = result.model.task
    if task.whole:
        return "documents"
    return "tokens" if task.from_labels else "next tokens"
