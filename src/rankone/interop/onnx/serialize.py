"""From a model to the bytes of an ONNX file."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from typing import Any

import torch

from rankone import __version__
from rankone.documents import dumps
from rankone.errors import SizeError
from rankone.extras import extra
from rankone.interop.onnx.graph import Graph
from rankone.interop.onnx.state import Step, step_of
from rankone.nn import Model
from rankone.nn.store import FORMAT, VERSION

with extra("onnx", "exporting to ONNX"):
    import onnx
    import onnxscript  # noqa: F401  torch's exporter writes the graph with it

OPSET = 18  # what torch's exporter is written in, so that nothing is converted
LIMIT = (1 << 31) - (1 << 20)  # bytes; protobuf reads no message of 2 GiB


def serialize(model: Model) -> bytes:
    """The file: the same bytes for the same model, and nothing about where it was made."""
    step, words = step_of(model), described(model)
    graph = (step or Graph(model.network, whole=model.task.whole)).eval()
    if step is not None:
        words["state"] = dumps(step.described(), ascii=True)
    size = sum(t.nbytes for t in chain(graph.parameters(), graph.buffers()))
    size += sum(len(text) for text in words.values())
    if size > LIMIT:
        raise SizeError(
            f"the file would have {size:,} bytes, and an ONNX file has at most {LIMIT:,}",
            remedy="save the model as a directory",
        )
    file = traced(graph)
    strip(file)
    file.producer_name, file.producer_version = "rankone", __version__
    onnx.helper.set_model_props(file, words)
    onnx.checker.check_model(file, full_check=True)
    data: bytes = file.SerializeToString(deterministic=True)
    return data


def described(model: Model) -> dict[str, str]:
    """What a user of the file must know besides the graph; lists and objects as JSON.

    Row i of the token table is word i of the vocabulary, and the last row any other word.
    """
    parts = {
        "version": VERSION,
        "network": asdict(model.network.shape),
        "reading": model.reading,
        "labels": list(model.labels),
        "vocabulary": list(model.vocabulary),
    }
    return {"format": FORMAT, **{name: dumps(part, ascii=True) for name, part in parts.items()}}


def traced(graph: Graph | Step) -> Any:
    """As an onnx.ModelProto, for any number of sentences of any length."""
    ids = torch.zeros(2, 3, dtype=torch.int64)
    dim, auto = torch.export.Dim, torch.export.Dim.AUTO  # all other inputs follow the first
    parts = graph.zeros(2) if isinstance(graph, Step) else {}
    dynamic: Any = ({0: dim("batch"), 1: dim("length")}, {0: auto, 1: auto})
    if parts:  # which `forward` takes as count and the rest
        first, *others = ({0: auto} for _ in parts)
        dynamic = (*dynamic, first, tuple(others))
    with quiet(), torch.no_grad():
        program = torch.onnx.export(
            graph,
            (ids, torch.ones_like(ids), *parts.values()),
            dynamo=True,
            verbose=False,
            opset_version=OPSET,
            external_data=False,
            input_names=["input_ids", "attention_mask", *parts],
            output_names=["logits", *(f"next_{name}" for name in parts)],
            dynamic_shapes=dynamic,
        )
    assert program is not None
    return program.model_proto


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without what torch's exporter says of itself: a deprecation, and torchvision's absence."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"`isinstance\(treespec, LeafSpec\)`")
            yield
    finally:
        logger.setLevel(level)


def strip(message: Any) -> None:
    """Take out of a protobuf message and all in it where the graph came from, and shapes within."""
    for field, value in message.ListFields():
        if field.name in ("metadata_props", "doc_string", "value_info"):
            message.ClearField(field.name)
        elif field.type == field.TYPE_MESSAGE:
            for part in value if hasattr(value, "add") else [value]:
                strip(part)
