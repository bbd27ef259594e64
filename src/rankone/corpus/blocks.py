"""Blocks of whole lines, decoded one after the other: a text is never held whole."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from rankone.corpus.source import Stream, read_data
from rankone.errors import CorpusError

BLOCK = 1 << 20  # bytes
MARK = "\ufeff"
FEED = 10
BOM = MARK.encode()


class Blocks:
    """The blocks of a stream, and the number of the first line of each.

    Lines end with a line feed, whatever ended them in the file, and have no byte order mark in
    front. Bytes are sound UTF-8 without NUL. A stream that begins inside of a file has `begun`.
    """

    def __init__(self, stream: Stream, size: int = BLOCK, begun: bool = False) -> None:
        self.stream, self.size, self.begun = stream, size, begun
        self.line = 1  # the first of the next block

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        rest, feeds = list[bytes](), self.begun
        while data := self.stream.read(self.size):
            cut = data.rfind(b"\n") + 1
            if cut:
                feeds = True
                yield self._next(b"".join([*rest, data[:cut]]), feeds)
                rest = []
            if cut < len(data):
                rest.append(data[cut:])
        if rest:
            yield self._next(b"".join(rest), feeds)

    def _next(self, data: bytes, feeds: bool) -> tuple[int, bytes]:
        first = self.line
        check_text(data, self.stream.name, first)
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
            data = data if feeds else data.replace(b"\r", b"\n")
        if not data.endswith(b"\n"):
            data += b"\n"
        self.line += count_lines(data)
        if not data.isascii():
            data = data if self.begun else data.removeprefix(BOM)
            # If files were concatenated, each may have begun with a byte order mark.
            data = data.removeprefix(BOM).replace(b"\n" + BOM, b"\n")
        self.begun = True
        return first, data


def count_lines(data: bytes) -> int:
    """How many line feeds there are; four times as fast as ``data.count``."""
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == FEED))


def check_text(data: bytes, name: str, first: int = 1) -> None:
    """Refuse what is not UTF-8, or has a NUL; `first` is the number of the first line."""
    nul = data.find(b"\0")
    if nul >= 0:
        raise CorpusError(
            "a NUL byte: this is not a text file in UTF-8",
            where=f"{name}, line {first + data.count(10, 0, nul)}",
            remedy="convert the file to UTF-8 (UTF-16 text and binary files have NUL bytes)",
        )
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"byte 0x{data[error.start]:02x} is not valid UTF-8",
            where=f"{name}, line {first + data.count(10, 0, error.start)}",
            remedy="convert the file to UTF-8, for example with iconv -f latin1 -t utf-8",
        ) from None


def lines_in(block: bytes) -> list[str]:
    """The lines of a block, without what ends them."""
    lines = block.decode().split("\n")
    lines.pop()
    return lines


def read_lines(source: str | os.PathLike[str]) -> tuple[str, list[str]]:
    """The name of the file, for messages, and all its lines."""
    name, data = read_data(source)
    check_text(data, name)
    return name, lines_of(data.decode("utf-8-sig"))


def lines_of(text: str) -> list[str]:
    """The lines of a text that has lost its first byte order mark, whatever ends them."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
        text = text if "\n" in text else text.replace("\r", "\n")
    # If files were concatenated, each may have begun with a byte order mark.
    return text.removeprefix(MARK).replace("\n" + MARK, "\n").split("\n")
