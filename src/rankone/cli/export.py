"""rankone export DIR --hf OUT --onnx FILE"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankone.cli import options
from rankone.errors import CorpusError, LengthError, SettingError, SizeError

if TYPE_CHECKING:
    from rankone.interop.onnx import Exported
    from rankone.nn import Model
    from rankone.progress import Progress


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

    From transformers every bit of the weights must come back.

    onnxruntime must give the same labels as the model, and the same logits within 1e-9.
    """
    from rankone.cli import console

    if hf is None and onnx is None:
        raise SettingError("nothing to export to", remedy="give --hf OUT or --onnx FILE, or both")
    if corpus is not None and onnx is None:
        raise SettingError("--corpus is for --onnx", remedy="leave it out, or give --onnx FILE")
    if hf is not None and onnx is not None and hf.resolve() == onnx.resolve():
        raise SettingError("--hf and --onnx name one place", remedy="give each its own")
    with console.working("start", quiet=quiet or json) as progress:
        from rankone.nn import load

        loaded = load(model)
        remarks: list[str] = []
        hub, graph = None, None
        given = {} if hf is None else _for_hf(model, hf)  # all that may be refused, first
        if onnx is not None:
            graph, remarks = _export_onnx(model, loaded, onnx, corpus, progress)
        if hf is not None:
            from rankone.interop.huggingface import export_hf

            progress("write", 0.0)
            hub = export_hf(loaded, hf, **given)
            remarks += hub.remarks
    files = [*([graph.path] if graph else []), *(hub.files if hub else [])]
    if json:
        found = {"hf": hub, "onnx": graph}
        parts = {name: None if part is None else part.to_json() for name, part in found.items()}
        names = [str(path) for path in files]
        console.print_json({"ok": True, **parts, "remarks": remarks, "files": names})
    elif not quiet:
        console.print_lines(*(graph.lines() if graph else []), *remarks)
        console.print_lines("Wrote", *(f"  {path}" for path in files))


def _for_hf(home: Path, out: Path) -> dict[str, Any]:
    """The report and the certificate that go into the card."""
    from rankone.certify import read_certificate
    from rankone.interop.huggingface.export import check_hf_target
    from rankone.nn.store import CERTIFICATE

    check_hf_target(out)
    path = home / CERTIFICATE
    return {
        "report": _report(home),
        "certificate": read_certificate(path) if path.exists() else None,
    }


def _export_onnx(
    home: Path, model: Model, out: Path, given: str | None, progress: Progress
) -> tuple[Exported, list[str]]:
    """Compared on the file that was named; else on that which the report names, if it will do."""
    from rankone.corpus.builtin import BUILTIN
    from rankone.interop.onnx import export_onnx

    progress("read", 0.0)
    if given is not None:
        corpus = options.read_like(model, given, labelled=None)
        return export_onnx(model, out, corpus=corpus, progress=progress), []
    source = str((_report(home) or {}).get("source", "a corpus that no report names"))
    try:
        if source not in BUILTIN and not Path(source).is_file():  # neither pipes nor devices
            raise CorpusError("no such file")
        corpus = options.read_like(model, source, labelled=None)
        return export_onnx(model, out, corpus=corpus, progress=progress), []
    except (CorpusError, LengthError, SizeError) as error:
        why = f"{source}: {error.what}"
        remark = f"Compared on made-up sentences only ({why}); --corpus FILE names others."
        return export_onnx(model, out, progress=progress), [remark]


def _report(home: Path) -> dict[str, Any] | None:
    from rankone.documents import read_document
    from rankone.nn.store import REPORT

    path = home / REPORT
    return read_document(path, dict[str, Any]) if path.exists() else None
