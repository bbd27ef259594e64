"""The model directory: weights, configuration, vocabulary, labels and report."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_file
from safetensors.torch import save as serialize

from rankone.errors import ModelError, OutputError
from rankone.nn.classifier import Network, TokenClassifier

FORMAT, VERSION = "rankone", 1
ANEW = "write the directory anew"
WEIGHTS, CONFIG, VOCABULARY, LABELS, REPORT, CERTIFICATE = FILES = (
    "model.safetensors",
    "config.json",
    "vocabulary.json",
    "labels.json",
    "report.json",
    "certificate.json",  # written by certify, gone when the directory is written anew
)


def save(
    directory: str | os.PathLike[str],
    network: TokenClassifier,
    vocabulary: Sequence[str],
    labels: Sequence[str],
    reading: Mapping[str, Any],
    report: Mapping[str, Any] | None,
) -> list[Path]:
    """Write everything beside the target, then move it in place."""
    target = check_target(directory)
    contents = contents_of(network, vocabulary, labels, reading, report)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside the target, so on the same disk: moving the finished directory there is atomic.
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            new = Path(scratch, "new")
            new.mkdir()
            for name, content in contents.items():
                (new / name).write_bytes(content)
            if target.exists():
                os.rename(target, Path(scratch, "old"))
            os.rename(new, target)
    except (OSError, safetensors.SafetensorError) as error:
        raise OutputError(
            f"cannot write ({getattr(error, 'strerror', None) or error})",
            where=str(target),
            remedy="choose a directory that can be written to and has room",
        ) from None
    return [Path(directory, name) for name in FILES if (target / name).exists()]


def save_into(
    directory: Path,
    network: TokenClassifier,
    vocabulary: Sequence[str],
    labels: Sequence[str],
    reading: Mapping[str, Any],
    report: Mapping[str, Any] | None,
) -> list[Path]:
    """Write the files of a model one by one into a directory that holds other files too."""
    contents = contents_of(network, vocabulary, labels, reading, report)
    (directory / CERTIFICATE).unlink(missing_ok=True)  # of weights that were there before
    return [write_file(directory / name, content) for name, content in contents.items()]


def contents_of(
    network: TokenClassifier,
    vocabulary: Sequence[str],
    labels: Sequence[str],
    reading: Mapping[str, Any],
    report: Mapping[str, Any] | None,
) -> dict[str, bytes]:
    """The files of a model directory."""
    config = {
        "format": FORMAT,
        "version": VERSION,
        "network": asdict(network.shape),
        "reading": dict(reading),
    }
    documents = {CONFIG: config, VOCABULARY: list(vocabulary), LABELS: list(labels)}
    if report is not None:
        documents[REPORT] = dict(report)
    parameters = {name: p.detach().contiguous() for name, p in network.named_parameters()}
    contents = {WEIGHTS: serialize(parameters)}
    for name, document in documents.items():
        indent = None if name == VOCABULARY else 2
        text = json.dumps(document, ensure_ascii=False, indent=indent)
        contents[name] = (text + "\n").encode()
    return contents


def write_file(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Whole or not at all; what is no regular file (a pipe, a terminal) is written to directly."""
    data = content.encode() if isinstance(content, str) else content
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return Path(path)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
            new = Path(scratch, "new")
            new.write_bytes(data)
            if target.exists():
                shutil.copymode(target, new)
            os.replace(new, target)
    except (OSError, RuntimeError) as error:
        raise OutputError(
            f"cannot write ({getattr(error, 'strerror', None) or error})",
            where=str(path),
            remedy="choose another path",
        ) from None
    return Path(path)


def make_directory(path: str | os.PathLike[str]) -> Path:
    """A directory to write several things to, which may be there already."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot be made ({error.strerror})", where=str(path), remedy="choose another directory"
        ) from None
    return Path(path)


def check_directory(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work is done for it, a directory that cannot be made or written to."""
    target = Path(path)
    while not target.exists() and target != target.parent:
        target = target.parent
    if not target.is_dir() or not os.access(target, os.W_OK):
        what = "cannot be written to" if target.is_dir() else f"{target} is a file"
        raise OutputError(what, where=str(path), remedy="choose another directory")


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work is done for it, a file for which there is no directory."""
    target = Path(path)
    if not target.parent.is_dir() or target.is_dir():
        what = "is a directory" if target.is_dir() else "no such directory"
        raise OutputError(what, where=str(path), remedy="choose another path")


def check_target(directory: str | os.PathLike[str]) -> Path:
    """A new directory, an empty one, or an earlier model of ours; nothing else is written over."""
    try:
        target = Path(directory).resolve()
        if target.is_dir():
            entries = list(target.iterdir())
            strangers = [e.name for e in entries if e.name not in FILES or not e.is_file()]
            if strangers:
                what = f"holds other files ({', '.join(sorted(strangers)[:3])})"
            elif entries and not _is_ours(target / CONFIG):
                what = "holds the model of another program"
            else:
                return target
        elif target.exists():
            what = "is a file"
        else:
            return target
    except (OSError, RuntimeError) as error:  # too long a name, a loop of links, no permission
        what = f"cannot be used ({getattr(error, 'strerror', None) or error})"
    raise OutputError(what, where=str(directory), remedy="choose a new or an empty directory")


def _is_ours(path: Path) -> bool:
    try:
        config = _document(path)
    except ModelError:
        return False
    return isinstance(config, dict) and config.get("format") == FORMAT


def load(
    directory: str | os.PathLike[str],
) -> tuple[TokenClassifier, tuple[str, ...], tuple[str, ...], dict[str, Any]]:
    """The parts of a model; refuses what does not fit together."""
    home = Path(directory)
    if not home.is_dir():
        raise ModelError(
            "no such directory", where=str(home), remedy="name a directory that memorize wrote"
        )
    config = _document(home / CONFIG)
    shape = _shape(config, home / CONFIG)
    vocabulary, labels = _words(home / VOCABULARY), _words(home / LABELS)
    for words, rows, name in (
        (vocabulary, shape.vocabulary - 1, VOCABULARY),
        (labels, shape.labels, LABELS),
    ):
        if len(words) != rows or len(set(words)) != len(words):
            raise ModelError(
                f"{len(set(words))} different entries where the weights need {rows}",
                where=str(home / name),
                remedy="take all files of the directory from one run",
            )
    network = _network(shape, home / WEIGHTS)
    reading = config.get("reading")
    if not isinstance(reading, dict):
        raise ModelError("not told how to read text", where=str(home / CONFIG), remedy=ANEW)
    return network, vocabulary, labels, reading


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
    """Build on no memory at all, then put the tensors of the file in place, each checked."""
    try:
        tensors = load_file(path)
    except FileNotFoundError:
        raise ModelError("no weights", where=str(path), remedy="memorize again") from None
    except (OSError, safetensors.SafetensorError) as error:
        raise ModelError(
            f"damaged weights ({error})", where=str(path), remedy="copy or write them again"
        ) from None
    if shape.depth > len(tensors):
        raise ModelError(f"too few tensors for depth {shape.depth}", where=str(path), remedy=ANEW)
    with torch.device("meta"):
        network = TokenClassifier(shape)
    wanted = {name: tuple(p.shape) for name, p in network.named_parameters()}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if wanted != found:
        name = next(n for n in sorted({*wanted, *found}) if wanted.get(n) != found.get(n))
        raise ModelError(
            f"{name} is {found.get(name, 'missing')} where config.json says {wanted.get(name)}",
            where=str(path),
            remedy="take all files of the directory from one run",
        )
    for name, tensor in tensors.items():
        if tensor.dtype not in (torch.float32, torch.float64) or not tensor.isfinite().all():
            raise ModelError(
                f"{name} holds values that are not finite real numbers",
                where=str(path),
                remedy="write the weights anew",
            )
    network.load_state_dict(tensors, assign=True)
    return network


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(
            "no such file",
            where=str(path),
            remedy="name a directory that memorize, or a finished train, wrote",
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"cannot be read ({error})", where=str(path), remedy="copy or write it again"
        ) from None


def _words(path: Path) -> tuple[str, ...]:
    words = _document(path)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ModelError("not a list of words", where=str(path), remedy=ANEW)
    return tuple(words)
