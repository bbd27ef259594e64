"""Probabilities as numpy arrays (`.npz`), read without trust in what the file says of its size."""

from __future__ import annotations

import io
import lzma
import math
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rankone.arrays import Floats
from rankone.corpus.corpus import Corpus
from rankone.corpus.distributions import SPARE, check_shape
from rankone.corpus.source import printable
from rankone.errors import ProbabilityError

HEAD = 1 << 14  # bytes in which the description of an array has to end
LONGEST = 1000  # characters of a label
FORM = "write it with numpy.savez(FILE, probabilities=rows, labels=names)"
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,  # an encrypted archive; NotImplementedError is another packing
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    MemoryError,
)
Check = Callable[[tuple[int, ...], np.dtype[Any]], None]


def read_arrays(path: str | os.PathLike[str], corpus: Corpus) -> tuple[Floats, list[str]]:
    """The arrays ``probabilities`` and ``labels``. Nothing is unpickled, and of each array only as
    many bytes are unpacked as the corpus calls for."""
    name = printable(os.fspath(path))
    try:
        if Path(path).exists() and not Path(path).is_file():  # reading a pipe may never end
            raise OSError("not a file")
        with zipfile.ZipFile(path) as archive:
            labels: list[str] = _array(archive, "labels", _names_of(corpus, name), name).tolist()
            rows = _array(archive, "probabilities", _rows_for(labels, corpus, name), name)
            return rows.astype(np.float64), labels
    except FileNotFoundError:
        raise ProbabilityError("no such file", where=name, remedy="check the path") from None
    except DAMAGE as problem:
        what = f"cannot be read ({getattr(problem, 'strerror', None) or problem})"
        raise ProbabilityError(what, where=name, remedy=FORM) from None


def _names_of(corpus: Corpus, name: str) -> Check:
    """What an array of labels must be."""
    most = len(corpus.label_names) + SPARE

    def check(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        found = _described(shape, dtype)
        if dtype.kind != "U" or len(shape) != 1:
            raise ProbabilityError(
                f"labels: {found} instead of a list of names",
                where=name,
                remedy="give labels=numpy.array([...]) of strings, one per column",
            )
        if shape[0] > most or dtype.itemsize > 4 * LONGEST:
            raise ProbabilityError(
                f"labels: {found}, too large to be the labels of this corpus",
                where=name,
                remedy=f"give at most {most:,} labels of at most {LONGEST:,} characters",
            )

    return check


def _rows_for(labels: list[str], corpus: Corpus, name: str) -> Check:
    """What an array of probabilities must be."""

    def check(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if dtype.kind != "f" or dtype.itemsize > 8:
            raise ProbabilityError(
                f"probabilities: {_described(shape, dtype)} instead of floating-point numbers",
                where=name,
                remedy="give float16, float32 or float64",
            )
        check_shape(shape, labels, corpus, name)

    return check


def _array(archive: zipfile.ZipFile, key: str, fits: Check, name: str) -> NDArray[Any]:
    members = [member for member in archive.infolist() if member.filename == f"{key}.npy"]
    if len(members) != 1:
        there = "two arrays" if members else "no array"
        raise ProbabilityError(f"{there} named {key!r}", where=name, remedy=FORM)
    with archive.open(members[0]) as stream:
        head = io.BytesIO(stream.read(HEAD))
        shape, by_columns, dtype = _description(head, key)
        if dtype.hasobject:
            raise ProbabilityError(
                f"{key}: Python objects, which are pickled and could run code when they are read",
                where=name,
                remedy="give labels as strings and probabilities as numbers",
            )
        fits(shape, dtype)
        size = math.prod(shape) * dtype.itemsize
        data = head.read(size)
        data += stream.read(size - len(data))
        if len(data) < size or head.read(1) or stream.read(1):
            raise ValueError(f"{key}: more or fewer numbers than it says")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")


def _description(head: io.BytesIO, key: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array. They are written in Python, and numpy's reader stumbles
    over what is not in as many ways as Python has."""
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        return readers[npy.read_magic(head)](head)
    except Exception:
        raise ValueError(f"{key}: not an array, or one of another version of numpy") from None


def _described(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    text = f"an array of {dtype.name[:40]}, shape {shape}"
    return text if len(text) < 200 else f"{text[:200]}..."
