"""The JSON documents of a model directory: read, or refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rankone.errors import ModelError

ANEW = "write the directory anew"
Words = tuple[str, ...]


def read_document(path: Path) -> Any:
    return parse(read_bytes(path), path)


def read_words(path: Path) -> Words:
    return as_words(read_document(path), path)


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ModelError(
            "no such file",
            where=str(path),
            remedy="name a directory that memorize, or a finished train, wrote",
        ) from None
    except OSError as error:
        raise _unreadable(error, path) from None


def parse(data: bytes, path: Path) -> Any:
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _unreadable(error, path) from None


def as_words(document: Any, path: Path) -> Words:
    if not isinstance(document, list) or not all(isinstance(word, str) for word in document):
        raise ModelError("not a list of words", where=str(path), remedy=ANEW)
    return tuple(document)


def check_words(words: Words, rows: int, path: Path) -> Words:
    """One word for each of so many rows, no two alike."""
    different = len(set(words))
    if len(words) != rows or different != rows:
        raise ModelError(
            f"{different} different entries where the weights need {rows}",
            where=str(path),
            remedy="take all files of the directory from one run",
        )
    return words


def _unreadable(error: Exception, path: Path) -> ModelError:
    return ModelError(f"cannot be read ({error})", where=str(path), remedy="copy or write it again")
