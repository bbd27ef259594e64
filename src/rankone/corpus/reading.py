"""The rows of a file, block after block."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from rankone.corpus.blocks import lines_in
from rankone.corpus.columns import ColumnReader
from rankone.corpus.layouts import Reader, is_telling
from rankone.corpus.rows import Rows

HEAD = 1 << 18  # bytes from which the layout is guessed
WORTH = 8 << 20  # bytes for which it is worth to load compiled code
LOADED = 1 << 20  # the same, if numba is loaded already

Numbered = tuple[int, bytes]  # a block, and before it the number of its first line


def head_of(blocks: Iterator[Numbered]) -> tuple[list[str], Iterator[Numbered]]:
    """The first lines, with a row among them if the file has one; and all blocks."""
    taken, lines = list[Numbered](), list[str]()
    for number, block in blocks:
        taken.append((number, block))
        cut = block.find(b"\n", min(HEAD, len(block) - 1)) + 1
        for part in (block[:cut], block[cut:]):
            lines += lines_in(part) if part else []
            if any(map(is_telling, lines[-part.count(b"\n") :])):
                return lines, chain(taken, blocks)
    return lines, chain(taken, blocks)


def read_blocks(blocks: Iterable[Numbered], reader: Reader, expected: int) -> Rows:
    """All rows; `expected` is about how many bytes there are, or 0."""
    rows, scanner, seen = Rows(), None, 0
    for number, block in blocks:
        enough = LOADED if "numba" in sys.modules else WORTH
        if scanner is None and isinstance(reader, ColumnReader) and max(seen, expected) >= enough:
            from rankone.corpus.scan import Scanner

            scanner = Scanner(reader, rows)
        if scanner is None:
            reader.read(lines_in(block), number, rows)
        else:
            scanner.read(block, number)
        seen += len(block)
    if scanner is not None:
        scanner.finish()
    return replace(rows, columns=reader.columns)
