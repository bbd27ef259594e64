"""Read the lines of a file: unpacked, decoded, and only as many as memory allows."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from typing import BinaryIO

from rankone.errors import CorpusError, SizeError
from rankone.memory import installed

CHUNK = 1 << 20
GZIP = b"\x1f\x8b"
MARK = "\ufeff"


def read_lines(source: str | os.PathLike[str]) -> tuple[str, list[str]]:
    """The name of the file, for messages, and its lines."""
    name, data = read_data(source)
    text = _decode(data, name)
    del data  # lines take several times as much memory
    return name, lines_of(text)


def lines_of(text: str) -> list[str]:
    """The lines of a text that has lost its first byte order mark, whatever ends them."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
        text = text if "\n" in text else text.replace("\r", "\n")
    # If files were concatenated, each may have begun with a byte order mark.
    return text.removeprefix(MARK).replace("\n" + MARK, "\n").split("\n")


def printable(name: str) -> str:
    """A name that any file can hold: bytes of a path that are not UTF-8 are escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


def most_bytes() -> int:
    """The most text to read: words of one letter take 30 times as much memory."""
    return installed() // 32


def read_data(source: str | os.PathLike[str]) -> tuple[str, bytes]:
    """The name of the file, for messages, and its bytes, unpacked."""
    if not isinstance(source, str | os.PathLike):
        raise CorpusError(
            f"a file cannot be named by {type(source).__name__}",
            remedy="give a path, or make a corpus by Corpus.from_sentences",
        )
    name = printable(os.fspath(source))
    try:
        if name == "-":
            name = "<stdin>"
            if sys.stdin is None:
                raise CorpusError("closed", where=name, remedy="give a file, or pipe one in")
            data = _take(sys.stdin.buffer, name, "holds")
        else:
            with open(source, "rb") as file:
                data = _take(file, name, "holds")
    except IsADirectoryError:
        raise CorpusError("is a directory", where=name, remedy="name one file inside it") from None
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise CorpusError(
            str(getattr(error, "strerror", None) or error).lower(),
            where=name or "''",
            remedy="check the path and that the file may be read",
        ) from None
    if data.startswith(GZIP):
        return name, _unpack(data, name)
    if name.lower().endswith(".gz"):
        raise CorpusError(
            "not gzip data, although the name ends in .gz",
            where=name,
            remedy="rename the file, or compress it",
        )
    return name, data


def _unpack(data: bytes, name: str) -> bytes:
    """Unpack all members; anything after them must be zeros."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return _take(file, name, "unpacks to")
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(
            f"damaged gzip data ({error})", where=name, remedy="compress or copy the file again"
        ) from None


def _take(file: BinaryIO | gzip.GzipFile, name: str, verb: str) -> bytes:
    """Read the whole file, but no more than memory allows: pipes and gzip bombs have no end."""
    most, size, parts = most_bytes(), 0, []
    while part := file.read(CHUNK):
        size += len(part)
        if size > most:
            raise SizeError(
                f"{verb} more than {most / 1e6:,.1f} MB of text, the most that memory allows",
                where=name,
                remedy="split the file, or use a machine with more memory",
            )
        parts.append(part)
    return b"".join(parts)


def _decode(data: bytes, name: str) -> str:
    nul = data.find(b"\0")
    if nul >= 0:
        raise CorpusError(
            "a NUL byte: this is not a text file in UTF-8",
            where=f"{name}, line {data.count(10, 0, nul) + 1}",
            remedy="convert the file to UTF-8 (UTF-16 text and binary files have NUL bytes)",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"byte 0x{error.object[error.start]:02x} is not valid UTF-8",
            where=f"{name}, line {line}",
            remedy="convert the file to UTF-8, for example with iconv -f latin1 -t utf-8",
        ) from None
