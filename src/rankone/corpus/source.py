"""The bytes of a file: unpacked, and only as many as memory allows."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rankone.errors import CorpusError, SizeError
from rankone.memory import installed

CHUNK = 1 << 20
# The most memory that a byte of text takes: in a row of a list of words of one letter, in JSON; and
# in a text of characters, each of which is followed by the next.
ROWS, TEXTS = 28, 52
PARQUET = b"PAR1"
STDIN = "<stdin>"
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
PACKED = {".gz": "gzip", ".zst": "zstd"}  # by the name


@dataclass
class Stream:
    """The bytes of a file, unpacked. ``size`` is how many the file itself has, 0 if not known."""

    name: str
    file: Any
    size: int
    packed: str | None = None
    path: str | None = None  # of a file that can be read from the middle
    parquet: bool = False
    times: int = ROWS  # memory that a byte takes; 0 if the text is not held whole
    taken: int = 0

    @property
    def expected(self) -> int:
        """About how many bytes it has."""
        return self.size if self.packed is None else 5 * self.size

    def read(self, size: int) -> bytes:
        """So many bytes more, or all that are left."""
        parts = list[bytes]()
        while size > 0 and (part := self._some(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _some(self, size: int) -> bytes:
        """At least one byte and at most so many, or none if none is left."""
        try:
            part: bytes = self.file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._damaged(error) from None
        except OSError as error:
            if self.packed is not None and error.errno is None:
                raise self._damaged(error) from None
            raise
        self.taken += len(part)
        if self.times and self.taken > (most := most_bytes(self.times)):
            raise SizeError(
                f"{'holds' if self.packed is None else 'unpacks to'} more than {most / 1e6:,.1f} "
                "MB of text, the most that memory allows",
                where=self.name,
                remedy="split the file, or use a machine with more memory",
            )
        return part

    def rest(self) -> bytes:
        """All bytes that are left."""
        return b"".join(iter(lambda: self.read(CHUNK), b""))

    def _damaged(self, error: Exception) -> CorpusError:
        return CorpusError(
            f"damaged {self.packed} data ({error})",
            where=self.name,
            remedy="compress or copy the file again",
        )


class _Whole:
    """A file whose first bytes have been read already."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self.head, self.file, self.closed = head, file, False

    def read(self, size: int = -1) -> bytes:
        if not self.head:
            return self.file.read(size)
        size = len(self.head) if size < 0 else size
        part, self.head = self.head[:size], self.head[size:]
        return part

    def close(self) -> None:
        self.closed = True


@contextmanager
def opened(source: str | os.PathLike[str], times: int = ROWS) -> Iterator[Stream]:
    """The stream of a path, or of standard input ("-"); what cannot be read is refused."""
    if not isinstance(source, str | os.PathLike):
        raise CorpusError(
            f"a file cannot be named by {type(source).__name__}",
            remedy="give a path, or make a corpus by Corpus.from_sentences",
        )
    name = printable(os.fspath(source))
    try:
        if name == "-":
            name = STDIN
            if sys.stdin is None:
                raise CorpusError("closed", where=name, remedy="give a file, or pipe one in")
            yield _stream(sys.stdin.buffer, name, None, times)
        else:
            with open(source, "rb") as file:
                yield _stream(file, name, os.fspath(source), times)
    except IsADirectoryError:
        raise CorpusError("is a directory", where=name, remedy="name one file inside it") from None
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise CorpusError(
            str(getattr(error, "strerror", None) or error).lower(),
            where=name or "''",
            remedy="check the path and that the file may be read",
        ) from None


def _stream(file: BinaryIO, name: str, path: str | None, times: int) -> Stream:
    head = file.read(4)
    packed = next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), None)
    suffix = os.path.splitext(name.lower())[1]
    if PACKED.get(suffix, packed) != packed:
        raise CorpusError(
            f"not {PACKED[suffix]} data, although the name ends in {suffix}",
            where=name,
            remedy="rename the file, or compress it",
        )
    whole: Any = _Whole(head, file)
    if packed == "gzip":
        whole = gzip.GzipFile(fileobj=whole)
    elif packed == "zstd":
        import pyarrow as pa

        whole = pa.CompressedInputStream(pa.PythonFile(whole, mode="r"), "zstd")
    size = 0 if path is None else os.fstat(file.fileno()).st_size
    return Stream(name, whole, size, packed, path, head == PARQUET, times)


def read_data(source: str | os.PathLike[str]) -> tuple[str, bytes]:
    """The name of the file, for messages, and its bytes, unpacked."""
    with opened(source, TEXTS) as stream:
        return stream.name, stream.rest()


def printable(name: str) -> str:
    """A name that any file can hold: bytes of a path that are not UTF-8 are escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


def unpacked_name(name: str) -> str:
    """The name in lower case, as it was before the file was packed."""
    name = name.lower()
    return next((name.removesuffix(end) for end in PACKED if name.endswith(end)), name)


def most_bytes(times: int = ROWS) -> int:
    """The most text to read, where a byte of it may take so many bytes of memory."""
    return installed() // times


def files_in(directory: Path) -> list[Path]:
    """All files of a directory and of those inside, but for hidden ones, in order."""
    found = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return [p for p in found if not any(x[0] == "." for x in p.relative_to(directory).parts)]
