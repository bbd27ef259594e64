"""The model directory: weights, configuration, vocabulary, labels and report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import safetensors
import torch
from safetensors.torch import load as deserialize
from safetensors.torch import load_file
from safetensors.torch import save as serialize

from rankone.errors import ModelError
from rankone.files import check_new, write_directory, write_file
from rankone.nn import hub
from rankone.nn.classifier import Network, TokenClassifier
from rankone.nn.documents import (
    ANEW,
    Words,
    as_words,
    check_words,
    parse,
    read_bytes,
    read_document,
    read_words,
)

FORMAT, VERSION = "rankone", 1
SMALL = 1 << 22  # bytes of weights that are faster copied than mapped
WEIGHTS, CONFIG, VOCABULARY, LABELS, REPORT, CERTIFICATE = FILES = (
    "model.safetensors",
    "config.json",
    "vocabulary.json",
    "labels.json",
    "report.json",
    "certificate.json",  # written by certify, gone when the directory is written anew
)


def save(directory: str | os.PathLike[str], contents: Mapping[str, bytes]) -> list[Path]:
    """Write everything beside the target, then move it in place."""
    return write_directory(check_target(directory), contents)


def save_into(directory: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write the files of a model one by one into a directory that holds other files too."""
    (directory / CERTIFICATE).unlink(missing_ok=True)  # of weights that were there before
    return [write_file(directory / name, content) for name, content in contents.items()]


def contents_of(
    network: TokenClassifier,
    vocabulary: Sequence[str],
    labels: Sequence[str],
    reading: Mapping[str, Any],
    report: Mapping[str, Any] | None = None,
) -> dict[str, bytes]:
    """The files of a model directory."""
    words = as_json(list(vocabulary))
    config = {
        "format": FORMAT,
        "version": VERSION,
        "network": asdict(network.shape),
        "reading": dict(reading),
        "vocabulary_crc32": crc32(words),
    }
    contents = {
        WEIGHTS: weights_of(network),
        CONFIG: as_json(config, indent=2),
        VOCABULARY: words,
        LABELS: as_json(list(labels), indent=2),
    }
    return contents if report is None else {**contents, REPORT: as_json(dict(report), indent=2)}


def weights_of(network: torch.nn.Module) -> bytes:
    """The parameters; the word about the format is what transformers asks for."""
    parameters = {name: p.detach().contiguous() for name, p in network.named_parameters()}
    return serialize(parameters, metadata={"format": "pt"})


def as_json(document: Any, indent: int | None = None) -> bytes:
    return (json.dumps(document, ensure_ascii=False, indent=indent) + "\n").encode()


def check_target(directory: str | os.PathLike[str]) -> Path:
    """A new directory, an empty one, or an earlier model of ours."""
    return check_new(directory, FILES, _is_ours)


def _is_ours(home: Path) -> bool:
    try:
        config = read_document(home / CONFIG)
    except ModelError:
        return False
    return isinstance(config, dict) and config.get("format") == FORMAT


def load(
    directory: str | os.PathLike[str],
) -> tuple[TokenClassifier, Callable[[], Words], Words, dict[str, Any]]:
    """The parts of a model; refuses what does not fit together. The layout of Hugging Face will do
    as well.

    The vocabulary is read, but taken apart only when it is asked for, which would be most of the
    time; until then the checksum in the configuration vouches for it.
    """
    home = Path(directory)
    if not home.is_dir():
        raise ModelError(
            "no such directory", where=str(home), remedy="name a directory that memorize wrote"
        )
    config = read_document(home / CONFIG)
    if hub.is_hub(config):
        config, words, labels = hub.translate(config, home)
        shape, path = _shape(config, home / CONFIG), home / hub.TOKENIZER
        check_words(words, shape.vocabulary - 1, path)
        vocabulary = cache(lambda: words)
        check_words(labels, shape.labels, home / CONFIG)
    else:
        shape, path = _shape(config, home / CONFIG), home / VOCABULARY
        labels = check_words(read_words(home / LABELS), shape.labels, home / LABELS)
        data = read_bytes(path)

        @cache
        def vocabulary() -> Words:
            return check_words(as_words(parse(data, path), path), shape.vocabulary - 1, path)

        if config.get("vocabulary_crc32") != crc32(data):
            vocabulary()  # somebody changed it, so it may be refused
    reading = config.get("reading")
    if not isinstance(reading, dict):
        raise ModelError("not told how to read text", where=str(home / CONFIG), remedy=ANEW)
    return _network(shape, home / WEIGHTS), vocabulary, labels, reading


def _shape(config: Any, path: Path) -> Network:
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelError("not a rankone model", where=str(path), remedy="name another directory")
    if type(config.get("version")) is not int or config["version"] != VERSION:
        raise ModelError(
            f"written in version {config.get('version')} of the format, this reads {VERSION}",
            where=str(path),
            remedy="memorize again with this rankone, or install the one that wrote it",
        )
    given = config.get("network")
    if not isinstance(given, dict) or set(given) != {field.name for field in fields(Network)}:
        raise ModelError("the network is not described whole", where=str(path), remedy=ANEW)
    choices: dict[str, tuple[object, ...]] = {
        "attention": ("rank1", "softmax", "hardmax"),
        "feedforward": ("rank1", "dense"),
        "causal": (True, False),
    }
    for name, value in given.items():
        if name in choices:
            sound = type(value) in (str, bool) and value in choices[name]
        else:
            least = 0 if name in ("positions", "hidden") else 1
            sound = type(value) is int and least <= value < 1 << 31
        if not sound:
            raise ModelError(f"{name} cannot be {value!r}", where=str(path), remedy=ANEW)
    if given["attention"] == "rank1" and (given["heads"], given["head_size"]) != (1, 1):
        raise ModelError("rank-1 attention has one head of size 1", where=str(path), remedy=ANEW)
    return Network(**given)


def _network(shape: Network, path: Path) -> TokenClassifier:
    """The tensors of the file, each checked, as the parameters of a network."""
    try:
        small = path.stat().st_size < SMALL
        tensors = deserialize(path.read_bytes()) if small else load_file(path)
    except FileNotFoundError:
        raise ModelError("no weights", where=str(path), remedy="memorize again") from None
    except (OSError, safetensors.SafetensorError) as error:
        raise ModelError(
            f"damaged weights ({error})", where=str(path), remedy="copy or write them again"
        ) from None
    if shape.depth > len(tensors):
        raise ModelError(f"too few tensors for depth {shape.depth}", where=str(path), remedy=ANEW)
    wanted = shape.parameter_shapes()
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if wanted != found:
        name = next(n for n in sorted({*wanted, *found}) if wanted.get(n) != found.get(n))
        raise ModelError(
            f"{name} is {found.get(name, 'missing')} where config.json says {wanted.get(name)}",
            where=str(path),
            remedy="take all files of the directory from one run",
        )
    for name, tensor in tensors.items():
        if tensor.dtype not in (torch.float32, torch.float64):
            raise ModelError(
                f"{name} is {str(tensor.dtype).removeprefix('torch.')}",
                where=str(path),
                remedy="save the weights as float32 or float64",
            )
        if not _finite(tensor):
            raise ModelError(
                f"{name} holds values that are not finite real numbers",
                where=str(path),
                remedy="write the weights anew",
            )
    return TokenClassifier.of(shape, tensors)


def _finite(tensor: torch.Tensor) -> bool:
    # No sum that meets an infinity or NaN is finite, and adding up is the fastest way to look.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(tensor.numpy().sum())) or bool(tensor.isfinite().all())
