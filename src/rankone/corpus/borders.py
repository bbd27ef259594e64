"""Where sentences end, in bytes: the places at which a file may be cut."""

from __future__ import annotations

import io
import re
from typing import Any

WINDOW = 1 << 16  # bytes that are looked at at once
LINES = ("jsonl", "text")  # layouts of one sentence per line
LINE = re.compile(rb"\n")
BLANK = re.compile(rb"\n(?:\xef\xbb\xbf)?[ \t]*\r?\n")  # a line without cells


def ends_of(format: str) -> re.Pattern[bytes]:
    """What ends a sentence in this layout."""
    return LINE if format in LINES else BLANK


def border(path: str, format: str, wanted: int) -> int:
    """Where the first sentence ends that ends after this byte; 0 if none does."""
    ends = ends_of(format)
    with open(path, "rb") as opened_file:
        opened_file.seek(wanted - 1)
        at, held, window = wanted - 1, b"", WINDOW
        while data := opened_file.read(window):
            held += data
            if end := ends.search(held):
                return at + end.end()
            feed = held.rfind(b"\n")
            kept = len(held) if feed < 0 else feed
            at, held, window = at + kept, held[kept:], 2 * window
    return 0


class Section(io.RawIOBase):
    """So many bytes of a file, from where it is."""

    def __init__(self, file: Any, size: int) -> None:
        self.file, self.left = file, size

    def read(self, size: int = -1) -> bytes:
        data: bytes = self.file.read(min(size, self.left))
        self.left -= len(data)
        return data
