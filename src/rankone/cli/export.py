"""rankone export DIR --hf OUT --onnx FILE"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.cli.options import option
from rankone.errors import SettingError

if TYPE_CHECKING:
    from rankone.interop.huggingface.export import PreparedHub
    from rankone.interop.onnx.export import OnnxExport
    from rankone.nn import Model
    from rankone.progress import Progress

ONLY_MADE_UP = "Compared on made-up sentences only; --corpus FILE adds your own."


@bundled
def export(
    model: options.ModelDirectory,
    hf: Annotated[
        Path | None, option("Write a directory that transformers can load.", "OUT", readable=False)
    ] = None,
    onnx: Annotated[Path | None, option("Write an ONNX graph.", "FILE", readable=False)] = None,
    corpus: Annotated[
        str | None, option("Also compare the graph with the model on this text.", "FILE")
    ] = None,
    *,
    output: options.Output,
) -> None:
    """Write a model for Hugging Face or ONNX, checked before anything is written.

    If one of the two cannot be written, neither is.

    Weights loaded by transformers must be the same bit for bit.

    onnxruntime must give the same labels as the model, and the same logits up to rounding.
    """
    from rankone.cli import console

    if hf is None and onnx is None:
        raise SettingError("nothing to export to", remedy="give --hf OUT or --onnx FILE, or both")
    if corpus is not None and onnx is None:
        raise SettingError("--corpus is for --onnx", remedy="leave it out, or give --onnx FILE")
    if hf is not None and onnx is not None and onnx.resolve().is_relative_to(hf.resolve()):
        raise SettingError(
            "--onnx is inside --hf, a directory that is replaced",
            remedy="choose two separate places",
        )
    with console.working("start", output) as progress:
        from rankone.nn import load

        loaded = load(model)
        ready = None if hf is None else _prepare_hf(loaded, model, hf, progress)
        with nullcontext() if hf is None or onnx is None else _kept(onnx):  # both, or neither
            graph = None if onnx is None else _export_onnx(loaded, onnx, corpus, progress)
            progress("write", 0.0)
            hub = None if ready is None else ready.write()
    remarks = [ONLY_MADE_UP] if graph and corpus is None else []
    remarks += hub.remarks if hub else []
    files = [*([graph.path] if graph else []), *(hub.files if hub else [])]
    parts = {"hf": hub, "onnx": graph}
    document = {
        "ok": all(part.ok for part in parts.values() if part is not None),
        **{name: None if part is None else part.to_json() for name, part in parts.items()},
        "remarks": remarks,
    }
    lines = [*(graph.lines() if graph else []), *remarks]
    console.report(output, document, lambda: console.print_lines(*lines), files)


def _prepare_hf(model: Model, home: Path, out: Path, progress: Progress) -> PreparedHub:
    """Use the report and the certificate in the model directory."""
    from rankone.certification import read_certificate
    from rankone.interop.huggingface.export import prepare_hf
    from rankone.nn.store import CERTIFICATE

    progress("check", 0.0)
    path = home / CERTIFICATE
    remedy = "certify the model again, or remove the file"
    certificate = read_certificate(path, remedy=remedy) if path.exists() else None
    return prepare_hf(model, out, report=_report(home), certificate=certificate)


def _export_onnx(model: Model, out: Path, given: str | None, progress: Progress) -> OnnxExport:
    """Compare on the given file. The file named in a report is not opened: the model directory may
    come from a stranger."""
    from rankone.interop.onnx.export import export_onnx

    progress("read", 0.0)
    corpus = None if given is None else model.read(given)
    return export_onnx(model, out, corpus=corpus, progress=progress)


def _kept(path: Path) -> AbstractContextManager[None]:
    from rankone.files import check_place, kept

    check_place(path)
    return kept(path)


def _report(home: Path) -> dict[str, Any] | None:
    from rankone.documents import read_document
    from rankone.nn.store import REPORT

    path = home / REPORT
    remedy = "memorize again, or remove the file"
    return read_document(path, dict[str, Any], remedy=remedy) if path.exists() else None
