"""One compiled pass over the bytes of rows, which finds the cells that are wanted.

It reads what is usual and stops at any other line, which `ColumnReader` then takes: that one knows
every rule and has the messages. numba takes a third of a second to load, so that small files are
read by `ColumnReader` alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from rankone.corpus.blocks import count_lines, lines_in
from rankone.corpus.columns import ColumnReader
from rankone.corpus.growing import Column
from rankone.corpus.hashing import PADDING, Array, Table, compiled, load
from rankone.corpus.rows import DOCSTART, Rows

BLANK, TAB, END, HASH, DASH, DOT, ZERO, NINE = 32, 9, 10, 35, 45, 46, 48, 57
HEAD = 1 << 16  # bytes of a file that are read to find out where its columns are
LONGEST = 1 << 30  # bytes of a block
MARK = np.frombuffer(DOCSTART.encode(), dtype=np.uint8)


class Scanner:
    """Reads what a `ColumnReader` would read, from bytes."""

    def __init__(self, reader: ColumnReader, rows: Rows) -> None:
        self.reader, self.rows, self.tokens = reader, rows, 0
        self.words, self.names = Table(), Table()
        self.columns = {name: Column() for name in ("tokens", "labels", "lines")}
        self.room = _room(0)
        self._add(rows)

    def read(self, block: bytes, first: int) -> None:
        """Add the rows of a block of lines, of which the first has this number."""
        reader = self.reader
        if not reader.known or first <= reader.skip or len(block) > LONGEST:
            cut = block.find(b"\n", min(HEAD, len(block) - 1)) + 1
            self._spell_out(block[:cut], first)
            first, block = first + count_lines(block[:cut]), block[cut:]
        if not reader.known or first <= reader.skip or len(block) > LONGEST:
            return self._spell_out(block, first)
        data = np.frombuffer(block + bytes(PADDING), dtype=np.uint8)
        if len(block) > 2 * len(self.room[1]):
            self.room = _room(len(block) // 2)  # a row has a byte and a line end, at least
        cells, lines, starts = self.room
        state = np.array([0, 0, 0, 0, reader.fresh, reader.last])
        tabs, wanted = reader.separator == "\t", (reader.width, reader.token, reader.label)
        scan(data, tabs, reader.conllu, *wanted, state, cells, lines, starts)
        at, line, n, m, fresh, last = state.tolist()
        reader.fresh, reader.last = bool(fresh), last
        self._keep(
            self.words.number(data, cells[0, :n], cells[1, :n]),
            self.names.number(data, cells[2, :n], cells[3, :n]) if reader.labelled else None,
            lines[:n].astype(np.int64) + first,
            starts[:m],
        )
        if at < len(block):
            self._spell_out(block[at:], first + line)
        return None

    def finish(self) -> None:
        """Put all into the rows."""
        rows = self.rows
        for table, column in ((self.words, rows.tokens), (self.names, rows.labels)):
            words = table.words()
            column.index.update(zip(words, range(len(words)), strict=True))
        rows.lines = self.columns["lines"].joined()  # the widest first, while others are narrow
        rows.tokens.ids = self.columns["tokens"].joined()
        rows.labels.ids = self.columns["labels"].joined()

    def _spell_out(self, block: bytes, first: int) -> None:
        """Have the other reader read a block."""
        part = Rows()
        self.reader.read(lines_in(block), first, part)
        self._add(part)

    def _add(self, part: Rows) -> None:
        """Add rows that are read."""
        words, names = (
            table.add(list(column.index))[column.numbers()]
            for table, column in ((self.words, part.tokens), (self.names, part.labels))
        )
        self._keep(words, names, np.array(part.lines, np.int64), np.array(part.starts, np.int64))

    def _keep(self, words: Array, names: Array | None, lines: Array, starts: Array) -> None:
        self.rows.starts.frombytes((starts + self.tokens).astype(np.int64).tobytes())
        self.tokens += len(words)
        self.columns["tokens"].add(words)
        self.columns["lines"].add(lines)
        if names is not None:
            self.columns["labels"].add(names)


def _room(rows: int) -> tuple[Array, Array, Array]:
    """Room for what is found in so many rows; memory is taken where something is written."""
    return np.empty((4, rows), np.int32), np.empty(rows, np.int32), np.empty(rows, np.int32)


@compiled
def _bytes_before(_, found):  # type: ignore[no-untyped-def]
    """How many of the lowest bytes have no bit set."""

    def build(_context: Any, b: Any, _signature: Any, args: Any) -> Any:
        from llvmlite import ir

        zeros = b.cttz(args[0], ir.Constant(ir.IntType(1), 1))
        return b.lshr(zeros, ir.Constant(ir.IntType(64), 3))

    return types.int64(found), build


@njit(cache=True, nogil=True, inline="always")
def _are(eight, byte):  # type: ignore[no-untyped-def]
    """A bit in the first of eight bytes that is this one, and none in those before it."""
    eight ^= np.uint64(0x0101010101010101) * np.uint64(byte)
    return (eight - np.uint64(0x0101010101010101)) & ~eight & np.uint64(0x8080808080808080)


@njit(cache=True, nogil=True, inline="always")
def _end_of_cell(data, i, tabs):  # type: ignore[no-untyped-def]
    """Where the cell that has byte i ends: at a TAB, at a line end or, without `tabs`, a blank."""
    while True:
        eight = load(data, i)
        found = _are(eight, TAB) | _are(eight, END)
        if not tabs:
            found |= _are(eight, BLANK)
        if found:
            return i + _bytes_before(found)
        i += 8


@njit(cache=True, nogil=True)
def _is_mark(data, a, b):  # type: ignore[no-untyped-def]
    """Whether ``data[a:b]`` marks the start of a document."""
    if b - a != len(MARK):
        return False
    for i in range(len(MARK)):  # noqa: SIM110 - compiled
        if data[a + i] != MARK[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _id(data, a, b, last):  # type: ignore[no-untyped-def]
    """The number of a word of CoNLL-U that comes after `last`; 0 for a range or an empty node, and
    -1 for anything else."""
    value, digits, i = 0, 0, a
    while i < b and ZERO <= data[i] <= NINE:
        value = 10 * value + (data[i] - ZERO) if digits < 10 else value
        digits += 1
        i += 1
    if digits == 0:
        return -1
    if i == b:
        return value if digits < 10 and value > last else -1
    if data[i] != DASH and data[i] != DOT:
        return -1
    i += 1
    if i == b:
        return -1
    while i < b and ZERO <= data[i] <= NINE:
        i += 1
    return 0 if i == b else -1


@njit(cache=True, nogil=True)
def scan(data, tabs, numbered, width, t, k, state, cells, lines, starts):  # type: ignore[no-untyped-def]
    """Find the cells of token and label in every row, until a line is not usual.

    ``state``: first byte of the line to read, its number, tokens and sentences found so far,
    whether a sentence begins here, and the last id of CoNLL-U. ``numbered``: rows have such ids.
    """
    at, line, n, m, fresh, last = state[0], state[1], state[2], state[3], state[4], state[5]
    size = len(data) - PADDING
    while at < size:
        i = at
        if data[i] == END:
            fresh, last = 1, 0
            at, line = at + 1, line + 1
            continue
        while data[i] == BLANK or data[i] == TAB:
            i += 1
        if data[i] == END:  # blanks and TABs only
            fresh, last = 1, 0
            at, line = i + 1, line + 1
            continue
        first, first_byte = i, data[i]
        cell, token, token_end, label, label_end, head_end = 0, 0, 0, 0, 0, 0
        if tabs:
            i = at
            while True:
                a = i
                i = _end_of_cell(data, i, True)
                if cell == t or cell == k or cell == 0:  # noqa: SIM109 - compiled
                    b = i
                    while a < b and data[a] == BLANK:
                        a += 1
                    while b > a and data[b - 1] == BLANK:
                        b -= 1
                    if cell == t:
                        token, token_end = a, b
                    if cell == k:
                        label, label_end = a, b
                    if cell == 0:
                        first, head_end = a, b
                cell += 1
                if data[i] == END:
                    break
                i += 1
        else:
            while data[i] != END:
                a = i
                i = _end_of_cell(data, i, False)
                if cell == t:
                    token, token_end = a, i
                if cell == k:
                    label, label_end = a, i
                if cell == 0:
                    head_end = i
                cell += 1
                while data[i] == BLANK or data[i] == TAB:
                    i += 1
        if numbered:
            if first_byte == HASH and data[at] != TAB and first < i and data[first] == HASH:
                at, line = i + 1, line + 1
                continue
            if cell != width:
                break
            number = _id(data, first, head_end, last)
            if number < 0 or (number > 0 and (token == token_end or label == label_end)):
                break
            if number == 0:
                at, line = i + 1, line + 1
                continue
        else:
            number = 0
            if first_byte == DASH and _is_mark(data, first, min(first + len(MARK), head_end)):
                alone = head_end - first == len(MARK)
                if alone or (cell == 1 and width > 1 and data[first + len(MARK)] == BLANK):
                    fresh, at, line = 1, i + 1, line + 1
                    continue
                break
            if cell != width or token == token_end or label == label_end:
                break
            if t > 0 and _is_mark(data, token, token_end):
                fresh, at, line = 1, i + 1, line + 1
                continue
        if fresh:
            starts[m] = n
            m += 1
            fresh = 0
        last = number
        cells[0, n], cells[1, n], cells[2, n], cells[3, n] = token, token_end, label, label_end
        lines[n] = line
        n += 1
        at, line = i + 1, line + 1
    state[0], state[1], state[2], state[3], state[4], state[5] = at, line, n, m, fresh, last
