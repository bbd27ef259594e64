"""A model as one ONNX file, which is run beside the model before it is written."""

from __future__ import annotations

import copy
import os
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from rankone.arrays import Ints
from rankone.corpus import Corpus
from rankone.errors import ExportError, SizeError
from rankone.extras import extra
from rankone.files import check_place, write_file
from rankone.interop.onnx.check import Compared, compare
from rankone.interop.onnx.sentences import LONGEST, Padding, made_up
from rankone.interop.onnx.serialize import OPSET, serialize
from rankone.interop.onnx.state import Step, step_of
from rankone.nn import Architecture, Model
from rankone.nn.ragged import check_lengths
from rankone.progress import Progress

with extra("onnx", "exporting to ONNX"):
    import onnxruntime

PADDINGS: tuple[Padding, ...] = ("alone", "right", "left", "scattered")
COST, LEAST, MOST = 1 << 30, 48, 512  # products, and tokens, of a check step by step
TAIL = 16  # tokens after a window
SCORES = 1 << 26  # of the longest sentence: half a gigabyte, several times over
OTHERS = (
    "take another version of torch or of onnxruntime; "
    f"installed are {torch.__version__} and {onnxruntime.__version__}"
)


WIDER = "export it in float64 (`train --dtype float64`, or `model.network.double()`); or "


@dataclass(frozen=True)
class OnnxExport:
    """The file, and how it compared with the model: ``difference`` is the largest of two logits,
    ``wrong`` the number of tokens with another label. See `Compared` for what may differ."""

    path: Path
    bytes: int
    opset: int
    compared: tuple[Compared, ...]
    seconds: dict[str, float]
    sentences: int
    tokens: int
    difference: float
    wrong: int

    @property
    def ok(self) -> bool:
        return all(part.ok for part in self.compared)

    def lines(self) -> list[str]:
        """For people to read."""
        head = f"{self.path}: {self.bytes:,} bytes, opset {self.opset}"
        return [head, *(f"  {part.line()}" for part in self.compared)]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "path": str(self.path), "ok": self.ok}


def export_onnx(
    model: Model,
    path: str | os.PathLike[str],
    *,
    corpus: Corpus | None = None,
    progress: Progress = lambda *_: None,
) -> OnnxExport:
    """Write the model as an ONNX file in its own precision: ids and mask in, logits out.

    ``input_ids`` and ``attention_mask`` are int64, (batch, length), and ``logits`` are of the type
    of the weights, float32 or float64, (batch, length, labels), as `Graph` says; a model of the
    task "class" has one row for each text, (batch, labels). A model of the task "next" takes a
    piece of a text at a time, with the state after what came before, and gives the next one, as
    `Step` says; its documents are compared step by step, or the beginnings of some. The file holds
    vocabulary, labels and how text is read as metadata. It is run by onnxruntime and compared with
    the model, on made-up sentences and on every sentence of `corpus`, before it is written; what
    does not agree is an error, and no file.
    """
    check_place(path)
    dtype = torch.promote_types(model.network.dtype, torch.float32)  # as `predict` has it
    network = copy.deepcopy(model.network).to(dtype).requires_grad_(False)
    model = Model(network, model.vocabulary, model.labels, model.reading)
    model.label_ids(np.zeros(1, np.int64), np.array([0, 1]))  # refuses a model without a readout
    step = step_of(model)
    rows = None if corpus is None else rows_of(model, corpus, step)
    start = perf_counter()
    progress("export", 0.0)
    data = serialize(model)
    exported = perf_counter()
    run = partial(compare, opened(data), model, step=step)
    if step is None:
        compared = [run(*made_up(network.shape), source="made-up", paddings=PADDINGS)]
    else:
        some = beginnings(*made_up(network.shape), network.shape)
        compared = [run(*some, source="made-up", paddings=("alone", "left"))]
    if corpus is not None and rows is not None:
        tell = partial(progress, "check")
        given = rows, corpus.offsets
        if step is not None:
            given = beginnings(*given, network.shape)
        compared.append(run(*given, source=corpus.source, progress=tell))
    checked = perf_counter()
    for part in compared:
        if not part.ok:
            unit = "texts" if part.whole else "tokens"
            raise ExportError(
                f"of {part.tokens:,} {unit} onnxruntime gives {part.wrong:,} another label and "
                f"{part.far:,} logits that are too far off, by up to {part.difference:.2g}",
                where=part.source,
                remedy=OTHERS if dtype == torch.float64 else WIDER + OTHERS,
            )
    seconds = {"export": exported - start, "check": checked - exported}
    return OnnxExport(
        path=write_file(path, data),
        bytes=len(data),
        opset=OPSET,
        compared=tuple(compared),
        seconds=seconds,
        sentences=sum(part.sentences for part in compared),
        tokens=sum(part.tokens for part in compared),
        difference=max(part.difference for part in compared),
        wrong=sum(part.wrong for part in compared),
    )


def opened(data: bytes) -> Any:
    """A session of onnxruntime, with its defaults, as others will run the file."""
    try:
        return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have nothing in common but this
        raise ExportError(f"onnxruntime cannot run it ({error})", remedy=OTHERS) from error


def beginnings(rows: Ints, offsets: Ints, shape: Architecture) -> tuple[Ints, Ints]:
    """Documents are run step by step, each step with all units: a few of these, spread over all,
    and of a long one the beginning."""
    most = COST // (shape.hidden * shape.reads + shape.labels * shape.dim)
    most = min(max(LEAST, most), MOST)
    length = min(shape.window + TAIL if shape.window else LONGEST, most)
    lengths = np.minimum(np.diff(offsets), length)
    order = np.random.default_rng(0).permutation(len(lengths))
    some = np.sort(order[: max(1, int(np.searchsorted(lengths[order].cumsum(), most, "right")))])
    parts = [rows[offsets[j] : offsets[j] + lengths[j]] for j in some.tolist()]
    return np.concatenate(parts), np.append(0, lengths[some].cumsum())


def rows_of(model: Model, corpus: Corpus, step: Step | None) -> Ints:
    """The corpus as rows of the token table; refuses sentences that are too long to be compared."""
    shape = model.network.shape
    check_lengths(corpus.lengths, shape.positions, corpus.place_of_sentence)
    if step is None and corpus.longest**2 * shape.heads > SCORES:
        raise SizeError(
            f"a sentence of {corpus.longest:,} tokens: an ONNX graph holds all its scores at once",
            where=corpus.place_of_sentence(int(corpus.lengths.argmax())),
            remedy="compare on a corpus with shorter sentences, or on none",
        )
    return model.rows(corpus.vocabulary)[corpus.token_ids]
