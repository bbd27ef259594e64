"""The directory of an exact model: JSON throughout, numbers as fractions in text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from flint import fmpq
from msgspec import Meta, Struct

from rankone.documents import dump, has_field, read_document
from rankone.errors import ModelError
from rankone.files import check_new, write_directory
from rankone.nn.exact.network import (
    ExactAttention,
    ExactBlock,
    ExactFeedForward,
    ExactNetwork,
    Sparse,
)
from rankone.nn.exact.numbers import ZERO, parsed, written
from rankone.nn.layers import Head
from rankone.nn.store import CERTIFICATE, CONFIG, LABELS, REPORT, VOCABULARY, Reading, check_words

FORMAT, VERSION = "rankone exact", 1
NETWORK = "network.json"
FILES = (NETWORK, CONFIG, VOCABULARY, LABELS, REPORT, CERTIFICATE)
MOST = 1 << 16  # coordinates of a network without layers
ANEW, HERE = "write the directory again", "name a directory that compare wrote"

Text = Annotated[
    str, Meta(pattern=r"^-?(0x[0-9a-f]+|[0-9]{1,16})(/(0x[0-9a-f]+|[1-9][0-9]{0,15}))?\Z")
]
Place = Annotated[int, Meta(ge=0, lt=1 << 31)]


class Document(Struct, forbid_unknown_fields=True):
    """A part of a file that has these fields and no others."""


class MatrixDocument(Document):
    """[[column, number], ...] for every row, and the number of columns."""

    rows: list[list[tuple[Place, Text]]]
    columns: Place


class HeadDocument(Document):
    key: MatrixDocument
    query: MatrixDocument
    value: MatrixDocument
    output: MatrixDocument


class AttentionDocument(Document):
    kind: Literal["softmax", "hardmax"]
    heads: list[HeadDocument]


class FeedForwardDocument(Document):
    weight1: MatrixDocument
    bias1: list[Text]
    weight2: MatrixDocument
    bias2: list[Text]
    activation: Literal["relu", "tanh"]


class BlockDocument(Document):
    attention: AttentionDocument | None
    feedforward: FeedForwardDocument | None


class NetworkDocument(Document):
    table: MatrixDocument
    positions: MatrixDocument | None
    blocks: list[BlockDocument]
    head: MatrixDocument
    bias: list[Text]
    causal: bool


class Config(Document):
    format: Literal["rankone exact"]
    version: Literal[1]
    reading: Reading


def save(directory: str | os.PathLike[str], contents: Mapping[str, bytes]) -> list[Path]:
    """Write everything next to the target, then move it into place."""
    target = check_new(directory, FILES, lambda home: is_exact(home))
    return write_directory(target, contents)


def is_exact(directory: str | os.PathLike[str]) -> bool:
    """Whether this is the directory of an exact model."""
    return has_field(Path(directory) / CONFIG, "format", FORMAT)


def contents_of(
    network: ExactNetwork,
    vocabulary: Sequence[str],
    labels: Sequence[str],
    reading: Mapping[str, Any],
    report: Mapping[str, Any] | None = None,
) -> dict[str, bytes]:
    """The files of a model directory."""
    contents = {
        NETWORK: written_network(network),
        CONFIG: dump({"format": FORMAT, "version": VERSION, "reading": dict(reading)}, indent=2),
        VOCABULARY: dump(list(vocabulary)),
        LABELS: dump(list(labels), indent=2),
    }
    return contents if report is None else {**contents, REPORT: dump(dict(report), indent=2)}


def load(
    directory: str | os.PathLike[str],
) -> tuple[ExactNetwork, tuple[str, ...], tuple[str, ...], dict[str, Any]]:
    """The parts of an exact model; refuses files that do not fit together."""
    home = Path(directory)
    if not home.is_dir():
        raise ModelError("no such directory", where=str(home), remedy=HERE)
    config = read_document(home / CONFIG, Config, remedy=ANEW, missing=HERE)
    found = read_document(home / NETWORK, NetworkDocument, remedy=ANEW, missing=HERE)
    try:
        network = _network(found)
    except (ValueError, ZeroDivisionError) as problem:
        raise ModelError(str(problem), where=str(home / NETWORK), remedy=ANEW) from None
    words = read_document(home / VOCABULARY, tuple[str, ...], remedy=ANEW, missing=HERE)
    labels = read_document(home / LABELS, tuple[str, ...], remedy=ANEW, missing=HERE)
    check_words(words, len(network.table.rows), home / VOCABULARY)
    check_words(labels, len(network.bias), home / LABELS)
    return network, words, labels, dict(config.reading)


def written_network(network: ExactNetwork) -> bytes:
    """network.json."""
    blocks = [
        {
            "attention": block.attention and _attention_document(block.attention),
            "feedforward": block.feedforward and _feedforward_document(block.feedforward),
        }
        for block in network.blocks
    ]
    document = {
        "table": _document(network.table),
        "positions": network.positions and _document(network.positions),
        "blocks": blocks,
        "head": _document(network.head),
        "bias": [*map(written, network.bias)],
        "causal": network.causal,
    }
    return dump(document)


def _document(matrix: Sparse) -> dict[str, Any]:
    rows = [[[column, written(x)] for column, x in row] for row in matrix.rows]
    return {"rows": rows, "columns": matrix.columns}


def _attention_document(layer: ExactAttention) -> dict[str, Any]:
    names = ("key", "query", "value", "output")
    heads = [{name: _document(getattr(head, name)) for name in names} for head in layer.heads]
    return {"kind": layer.kind, "heads": heads}


def _feedforward_document(layer: ExactFeedForward) -> dict[str, Any]:
    return {
        "weight1": _document(layer.weight1),
        "bias1": [*map(written, layer.bias1)],
        "weight2": _document(layer.weight2),
        "bias2": [*map(written, layer.bias2)],
        "activation": layer.activation,
    }


def _network(found: NetworkDocument) -> ExactNetwork:
    dim, labels = found.table.columns, len(found.bias)
    placed = found.positions
    if not labels or not found.table.rows or (placed is not None and not placed.rows):
        raise ValueError("no labels, no words, or a table of positions without rows")
    layers = ((b.attention and b.attention.heads) or b.feedforward for b in found.blocks)
    if dim > MOST and not any(layers):  # a layer has a row for every coordinate
        raise ValueError(f"{dim} coordinates, but no layer")
    return ExactNetwork(
        _matrix(found.table, len(found.table.rows), dim),
        None if placed is None else _matrix(placed, len(placed.rows), dim),
        tuple(_block(block, dim) for block in found.blocks),
        _matrix(found.head, labels, dim),
        _vector(found.bias, labels),
        found.causal,
    )


def _block(found: BlockDocument, dim: int) -> ExactBlock:
    attention, feedforward = found.attention, found.feedforward
    return ExactBlock(
        None if attention is None else _attention(attention, dim),
        None if feedforward is None else _feedforward(feedforward, dim),
    )


def _attention(found: AttentionDocument, dim: int) -> ExactAttention:
    heads = []
    for head in found.heads:
        size, width = len(head.key.rows), len(head.value.rows)
        key, query = _matrix(head.key, size, dim), _matrix(head.query, size, dim)
        value, output = _matrix(head.value, width, dim), _matrix(head.output, dim, width)
        heads.append(Head(key, query, value, output))
    return ExactAttention(tuple(heads), found.kind)


def _feedforward(found: FeedForwardDocument, dim: int) -> ExactFeedForward:
    hidden = len(found.bias1)
    return ExactFeedForward(
        _matrix(found.weight1, hidden, dim),
        _vector(found.bias1, hidden),
        _matrix(found.weight2, dim, hidden),
        _vector(found.bias2, dim),
        found.activation,
    )


def _matrix(found: MatrixDocument, rows: int, columns: int) -> Sparse:
    if (len(found.rows), found.columns) != (rows, columns):
        size = f"{len(found.rows)} x {found.columns}"
        raise ValueError(f"a matrix is {size} where {rows} x {columns} is needed")
    numbers = []
    for row in found.rows:
        places = [column for column, _ in row]
        if places != sorted({*places}) or any(column >= columns for column in places):
            raise ValueError("the entries of a row are not in order, or beyond its end")
        entries = ((column, parsed(text)) for column, text in row)
        numbers.append(tuple((column, x) for column, x in entries if x != ZERO))
    return Sparse(tuple(numbers), columns)


def _vector(found: Sequence[str], size: int) -> tuple[fmpq, ...]:
    if len(found) != size:
        raise ValueError(f"a vector has {len(found)} numbers where {size} are needed")
    return tuple(map(parsed, found))
