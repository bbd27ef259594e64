"""The model directory: weights, configuration, vocabulary, labels and report."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from zlib import crc32

import numpy as np
import safetensors
import torch
from msgspec import Meta
from safetensors.torch import load as deserialize
from safetensors.torch import load_file
from safetensors.torch import save as serialize

from rankone import choices
from rankone.corpus.tasks import asks_next
from rankone.corpus.tokenizers import TOKENIZERS
from rankone.documents import (
    convert_document,
    dump,
    has_field,
    parse_document,
    read_bytes,
    read_document,
)
from rankone.errors import ModelError
from rankone.files import check_new, drop, drop_link, write_directory, write_file
from rankone.nn import hub
from rankone.nn.classifier import Architecture, TokenClassifier, dtype_name
from rankone.nn.fingerprints import Fingerprints
from rankone.nn.gated import GatedFeedForward
from rankone.nn.kinds import ATTENTIONS
from rankone.nn.memory import Made, Memory

FORMAT, VERSION = "rankone", 1
ANEW = "write the directory again"
HERE = "name a directory that memorize, or a finished train, wrote"
ONE_RUN = "take all files of the directory from one run"
WHOLE = GatedFeedForward.WHOLE  # tensors of whole numbers
SMALL = 1 << 22  # bytes of weights that are faster copied than mapped
WEIGHTS, CONFIG, VOCABULARY, LABELS, REPORT, CERTIFICATE, MEMORY, CONTEXTS = FILES = (
    "model.safetensors",
    "config.json",
    "vocabulary.json",
    "labels.json",
    "report.json",
    "certificate.json",  # written by certify, removed when the directory is written again
    "memory.safetensors",  # the sentences of an editable model
    "contexts.bin",  # fingerprints of what a model of the next token was made of
)

Words = tuple[str, ...]
Column = Annotated[int, Meta(gt=-(10**9), lt=10**9)] | str | None


class Reading(TypedDict):
    """How the corpus was read, so that other text can be read the same way."""

    token_column: NotRequired[Column]
    label_column: NotRequired[Column]
    columns: NotRequired[Annotated[int, Meta(ge=1)] | None]  # how many there were
    scheme: NotRequired[choices.Scheme]
    lower: NotRequired[bool]
    task: NotRequired[choices.Task]
    tokenizer: NotRequired[str]  # its name, or the text of its file
    window: NotRequired[Annotated[int, Meta(ge=1, le=1 << 16)]]
    blocks: NotRequired[bool]


@dataclass(frozen=True)
class Config:
    """config.json."""

    format: Literal["rankone"]
    version: int
    network: Architecture
    reading: Reading
    vocabulary_crc32: int = -1  # without one, the vocabulary is checked when a model is loaded
    made: Made | None = None


def save(directory: str | os.PathLike[str], contents: Mapping[str, bytes]) -> list[Path]:
    """Write everything next to the target, then move it into place."""
    return write_directory(check_target(directory), contents)


def save_into(directory: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write the files of a model one by one into a directory that holds other files too."""
    for name in (CERTIFICATE, CONTEXTS):  # of weights that were there before
        drop(directory / name)
    return [write_file(drop_link(directory / name), data) for name, data in contents.items()]


def contents_of(
    network: TokenClassifier,
    vocabulary: Sequence[str],
    labels: Sequence[str],
    reading: Mapping[str, Any],
    report: Mapping[str, Any] | None = None,
    made: Made | None = None,
    memory: Memory | None = None,
    contexts: Fingerprints | None = None,
) -> dict[str, bytes]:
    """The files of a model directory."""
    words = dump(list(vocabulary))
    weights = {name: p.detach().contiguous() for name, p in network.named_parameters()}
    config = {
        "format": FORMAT,
        "version": VERSION,
        "network": asdict(network.shape),
        "reading": dict(reading),
        "vocabulary_crc32": crc32(words),
    }
    if made is not None:
        config["made"] = dict(made)
    contents = {
        WEIGHTS: serialize(weights, metadata={"format": "pt"}),  # what transformers asks for
        CONFIG: dump(config, indent=2),
        VOCABULARY: words,
        LABELS: dump(list(labels), indent=2),
    }
    if memory is not None:
        contents[MEMORY] = memory.to_bytes()
    if contexts is not None:
        contents[CONTEXTS] = contexts.to_bytes()
    return contents if report is None else {**contents, REPORT: dump(dict(report), indent=2)}


def check_target(directory: str | os.PathLike[str]) -> Path:
    """Allow a new directory, an empty one, or an earlier model of ours."""
    return check_new(directory, FILES, lambda home: has_field(home / CONFIG, "format", FORMAT))


def load(
    directory: str | os.PathLike[str],
) -> tuple[
    TokenClassifier,
    Callable[[], Words],
    Words,
    dict[str, Any],
    Made | None,
    Callable[[], Memory] | None,
    Callable[[], Fingerprints] | None,
]:
    """The parts of a model; refuses files that do not fit together. The layout of Hugging Face is
    accepted too.

    The vocabulary is read but parsed only when it is needed, since parsing would take most of the
    time; until then the checksum in the configuration is trusted.
    """
    home = Path(directory)
    if not home.is_dir():
        raise ModelError(
            "no such directory", where=str(home), remedy="name a directory that memorize wrote"
        )
    found = read_document(home / CONFIG, dict[str, Any], remedy=ANEW, missing=HERE)
    if found.get("model_type") == hub.MODEL_TYPE:
        found, words, labels = hub.translate(found, home)
        config, path = _config(found, home / CONFIG), home / hub.TOKENIZER
        check_words(words, config.network.vocabulary - 1, path)
        vocabulary = cache(lambda: words)
        check_words(labels, config.network.labels, home / CONFIG)
    else:
        config, path = _config(found, home / CONFIG), home / VOCABULARY
        labels = read_document(home / LABELS, Words, remedy=ANEW, missing=HERE)
        check_words(labels, config.network.labels, home / LABELS)
        data = read_bytes(path, missing=HERE)

        @cache
        def vocabulary() -> Words:
            words = parse_document(data, Words, path, remedy=ANEW)
            return check_words(words, config.network.vocabulary - 1, path)

        if config.vocabulary_crc32 != crc32(data):
            vocabulary()  # it was changed, so it may be refused
    network, memory = _network(config.network, home / WEIGHTS), None
    if config.made is not None and (home / MEMORY).exists():
        memory = partial(Memory.read, home / MEMORY, config.network.vocabulary - 1, len(labels))
    contexts = None
    if asks_next(config.reading.get("task", "")) and (home / CONTEXTS).exists():
        contexts = partial(Fingerprints.read, home / CONTEXTS, config.network.window)
    return network, vocabulary, labels, dict(config.reading), config.made, memory, contexts


def _config(found: dict[str, Any], path: Path) -> Config:
    refused = partial(ModelError, where=str(path))
    if found.get("format") == "rankone exact":
        what, remedy = "weights are exact numbers", "certify it, or load it with load_exact"
        raise refused(what, remedy=remedy)
    if found.get("format") != FORMAT:
        raise refused("not a rankone model", remedy="name another directory")
    version = found.get("version")
    if type(version) is not int or version != VERSION:
        raise refused(
            f"written in version {reprlib.repr(version)} of the format, this reads {VERSION}",
            remedy="memorize again with this rankone, or install the one that wrote it",
        )
    config = convert_document(found, Config, path, remedy=ANEW)
    tokenizer = config.reading.get("tokenizer", "words")
    if tokenizer not in TOKENIZERS and not tokenizer.lstrip().startswith("{"):
        what = "the tokenizer is neither a known one nor the text of a file"  # no path is opened
        raise refused(what, remedy=ANEW)
    if set(found["network"]) != {field.name for field in fields(Architecture)}:
        raise refused("the description of the network is incomplete", remedy=ANEW)
    shape = config.network
    if shape.window and (shape.positions or not shape.causal):
        raise refused("a window of a network that is not causal, or has positions", remedy=ANEW)
    left = {"heads", "head_size"} - set(ATTENTIONS[shape.attention].takes)
    if any(getattr(shape, name) != 1 for name in left):
        raise refused(f"{shape.attention} attention has one head of size 1", remedy=ANEW)
    return config


def check_words(words: Words, rows: int, path: Path) -> Words:
    """Refuse words that are not one for each row, all different."""
    different = len(set(words))
    if len(words) != rows or different != rows:
        what = f"{different} different entries where the weights need {rows}"
        raise ModelError(what, where=str(path), remedy=ONE_RUN)
    return words


def _network(shape: Architecture, path: Path) -> TokenClassifier:
    """The tensors of the file, each checked, as the parameters of a network."""
    refused = partial(ModelError, where=str(path))
    try:
        if path.exists() and not path.is_file():
            raise OSError("not a file")
        small = path.stat().st_size < SMALL
        tensors = deserialize(path.read_bytes()) if small else load_file(path)
    except FileNotFoundError:
        raise refused("no weights", remedy="memorize again") from None
    except OSError as error:
        what = f"cannot be read ({error.strerror or error})"
        raise refused(what, remedy="check the path") from None
    except safetensors.SafetensorError as error:
        what, remedy = f"damaged weights ({error})", "copy or write them again"
        raise refused(what, remedy=remedy) from None
    if shape.depth > len(tensors):
        raise refused(f"too few tensors for depth {shape.depth}", remedy=ANEW)
    tensors.pop(hub.TOKEN, None)  # of language models in the layout of Hugging Face
    wanted = shape.parameter_shapes()
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if wanted != found:
        name = next(n for n in sorted({*wanted, *found}) if wanted.get(n) != found.get(n))
        here, there = found.get(name, "missing"), wanted.get(name, "nothing of it")
        raise refused(f"{name} is {here} where config.json says {there}", remedy=ONE_RUN)
    whole = {name: t for name, t in tensors.items() if name.rpartition(".")[2] in WHOLE}
    check_indices(shape, whole, refused)
    for name, tensor in tensors.items():
        if name in whole:
            continue
        if tensor.dtype not in (torch.float32, torch.float64):
            what = f"{name} is {dtype_name(tensor)}"
            raise refused(what, remedy="save the weights as float32 or float64")
        if not _finite(tensor):
            what = f"{name} holds values that are not finite real numbers"
            raise refused(what, remedy="write the weights again")
    dtypes = sorted({dtype_name(t) for name, t in tensors.items() if name not in whole})
    if len(dtypes) > 1:
        what = f"weights of two precisions, {' and '.join(dtypes)}"
        raise refused(what, remedy="save all weights in one of them")
    return TokenClassifier.of(shape, tensors)


def check_indices(
    shape: Architecture, whole: Mapping[str, torch.Tensor], refused: Callable[..., ModelError]
) -> None:
    """Refuse indices of a gated layer that point outside of what they count."""
    rows = {"reads": shape.dim, "writes": shape.dim, "plus": shape.codes, "minus": shape.codes}
    for name, tensor in whole.items():
        count = rows.get(name.rpartition(".")[2], shape.gates)
        if tensor.dtype is not torch.int64:
            what = f"{name} is {dtype_name(tensor)}"
            raise refused(what, remedy="save these indices as int64")
        if tensor.numel() and not 0 <= int(tensor.min()) <= int(tensor.max()) < count:
            what = f"{name} holds numbers that are not from 0 to {count - 1}"
            raise refused(what, remedy="write the weights again")


def _finite(tensor: torch.Tensor) -> bool:
    # A sum with an infinity or NaN in it is never finite, and a sum is the fastest check.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(tensor.numpy().sum())) or bool(tensor.isfinite().all())
