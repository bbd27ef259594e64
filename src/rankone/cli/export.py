"""rankone export DIR --hf OUT --onnx FILE"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankone.cli import options
from rankone.errors import CorpusError, SettingError

if TYPE_CHECKING:
    from rankone.corpus import Corpus
    from rankone.interop.huggingface import HubExport
    from rankone.nn import Model


def export(
    model: options.ModelDirectory,
    hf: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="Write a directory that transformers opens.",
            show_default=False,
        ),
    ] = None,
    onnx: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write an ONNX graph.", show_default=False),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Text to compare the graph on; default that of the model, if it is still there.",
            show_default=False,
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a model for other tools: Hugging Face, ONNX. Nothing is written that was not checked.

    For Hugging Face every bit of the weights must come back from transformers; the ONNX graph is
    run by onnxruntime, and must give the same labels, and the same logits within 1e-9.
    """
    from rankone.cli import console

    if hf is None and onnx is None:
        raise SettingError("nothing to export to", remedy="give --hf OUT or --onnx FILE, or both")
    if corpus is not None and onnx is None:
        raise SettingError("--corpus is for --onnx", remedy="leave it out, or give --onnx FILE")
    with console.working("start", quiet=quiet or json) as progress:
        from rankone.nn import load

        loaded = load(model)
        hub, graph = None, None
        if hf is not None:
            from rankone.interop.huggingface.export import check_hf_target

            check_hf_target(hf)
        if onnx is not None:
            from rankone.interop.onnx import export_onnx

            progress("read", 0.0)
            text = _corpus(model, loaded, corpus)
            graph = export_onnx(loaded, onnx, corpus=text, progress=progress)
        if hf is not None:
            progress("write", 0.0)
            hub = _export_hf(model, loaded, hf)
    files = [*([graph.path] if graph else []), *(hub.files if hub else [])]
    if json:
        found = {"hf": hub, "onnx": graph}
        parts = {name: None if part is None else part.to_json() for name, part in found.items()}
        console.print_json({"ok": True, **parts, "files": [str(path) for path in files]})
    elif not quiet:
        console.print_lines(*(graph.lines() if graph else []), *(hub.remarks if hub else []))
        console.print_lines("Wrote", *(f"  {path}" for path in files))


def _corpus(home: Path, model: Model, given: str | None) -> Corpus | None:
    """The file that was named; else that which the report names, if it can be read."""
    from rankone.nn.store import REPORT

    if given is not None:
        return options.read_like(model, given, labelled=None)
    source = str((_document(home / REPORT) or {}).get("source", ""))
    try:
        return options.read_like(model, source, labelled=None) if source else None
    except CorpusError:
        return None


def _export_hf(home: Path, model: Model, out: Path) -> HubExport:
    from rankone.certify import read_certificate
    from rankone.interop.huggingface import export_hf
    from rankone.nn.store import CERTIFICATE, REPORT

    certificate = read_certificate(home / CERTIFICATE) if (home / CERTIFICATE).exists() else None
    return export_hf(model, out, report=_document(home / REPORT), certificate=certificate)


def _document(path: Path) -> dict[str, Any] | None:
    from rankone.nn.documents import read_document

    found = read_document(path) if path.exists() else None
    return found if isinstance(found, dict) else None
