"""rankone export DIR --hf OUT --onnx FILE"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankone.cli import options
from rankone.errors import SettingError

if TYPE_CHECKING:
    from rankone.interop.huggingface.export import HubExport, PreparedHub
    from rankone.interop.onnx.export import Exported, PreparedOnnx
    from rankone.nn import Model
    from rankone.progress import Progress

ONLY_MADE_UP = "Compared on made-up sentences only; --corpus FILE adds your own."


def export(
    model: options.ModelDirectory,
    hf: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="Write a directory that transformers opens.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    onnx: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write an ONNX graph.", show_default=False, readable=False
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Text to compare the graph on, besides made-up sentences.",
            show_default=False,
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a model for other tools: Hugging Face, ONNX. Nothing is written that was not checked.

    If one of two cannot be written, neither is.

    From transformers every bit of the weights must come back.

    onnxruntime must give the same labels as the model, and the same logits within 1e-9.
    """
    from rankone.cli import console

    if hf is None and onnx is None:
        raise SettingError("nothing to export to", remedy="give --hf OUT or --onnx FILE, or both")
    if corpus is not None and onnx is None:
        raise SettingError("--corpus is for --onnx", remedy="leave it out, or give --onnx FILE")
    if hf is not None and onnx is not None and onnx.resolve().is_relative_to(hf.resolve()):
        raise SettingError(
            "--onnx is inside --hf, a directory that is written anew", remedy="give each its own"
        )
    with console.working("start", quiet=quiet or json) as progress:
        from rankone.nn import load

        loaded = load(model)
        ready = None if hf is None else _prepare_hf(loaded, model, hf, progress)
        checked = None if onnx is None else _prepare_onnx(loaded, onnx, corpus, progress)
        progress("write", 0.0)
        hub, graph = _write(ready, checked)
    remarks = [ONLY_MADE_UP] if graph and corpus is None else []
    remarks += hub.remarks if hub else []
    files = [*([graph.path] if graph else []), *(hub.files if hub else [])]
    if json:
        found = {"hf": hub, "onnx": graph}
        parts = {name: None if part is None else part.to_json() for name, part in found.items()}
        names = [str(path) for path in files]
        console.print_json({"ok": True, **parts, "remarks": remarks, "files": names})
    elif not quiet:
        console.print_lines(*(graph.lines() if graph else []), *remarks)
        console.print_lines("Wrote", *(f"  {path}" for path in files))


def _prepare_hf(model: Model, home: Path, out: Path, progress: Progress) -> PreparedHub:
    """With the report and the certificate that are in the model directory."""
    from rankone.certify import read_certificate
    from rankone.interop.huggingface.export import prepare_hf
    from rankone.nn.store import CERTIFICATE

    progress("check", 0.0)
    path = home / CERTIFICATE
    remedy = "certify the model again, or remove the file"
    certificate = read_certificate(path, remedy=remedy) if path.exists() else None
    return prepare_hf(model, out, report=_report(home), certificate=certificate)


def _prepare_onnx(model: Model, out: Path, given: str | None, progress: Progress) -> PreparedOnnx:
    """Compared on the file that was named: what a report names is not opened, for the directory
    may be a stranger's."""
    from rankone.interop.onnx.export import prepare_onnx

    progress("read", 0.0)
    corpus = None if given is None else options.read_like(model, given, labelled=None)
    return prepare_onnx(model, out, corpus=corpus, progress=progress)


def _write(
    hub: PreparedHub | None, graph: PreparedOnnx | None
) -> tuple[HubExport | None, Exported | None]:
    """Both, or neither."""
    from rankone.files import kept

    if graph is None:
        return (None if hub is None else hub.write()), None
    if hub is None:
        return None, graph.write()
    with kept(graph.path):
        written = graph.write()
        return hub.write(), written


def _report(home: Path) -> dict[str, Any] | None:
    from rankone.documents import read_document
    from rankone.nn.store import REPORT

    path = home / REPORT
    remedy = "memorize again, or remove the file"
    return read_document(path, dict[str, Any], remedy=remedy) if path.exists() else None
