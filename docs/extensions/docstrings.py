"""Docstrings as they are written here, turned into reStructuredText.

They are plain text: paragraphs, lists, indented formulas, code between backticks. A formula such as
|x - y| or d_p must not be taken for markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

ITEM = re.compile(r"([-*]|\d+\.) ")
CODE = re.compile(r"``.+?``|`[^`]+`")
NAME = re.compile(r"`[A-Za-z_][\w.]*(\(\))?`")


def inline(line: str) -> str:
    """Everything escaped but code; a name between single backticks is looked up."""
    out, last = [], 0
    for found in CODE.finditer(line):
        out.append(escaped(line[last : found.start()]))
        code = found[0].strip("`")
        # Not a word may touch markup, or it is none.
        left = "\\ " if found.start() and re.match(r"\w", line[found.start() - 1]) else ""
        right = "\\ " if re.match(r"\w", line[found.end() : found.end() + 1]) else ""
        name = NAME.fullmatch(found[0])
        out.append(left + (f"`{code}`" if name else f"``{code}``") + right)
        last = found.end()
    return "".join([*out, escaped(line[last:])])


def escaped(text: str) -> str:
    return re.sub(r"([\\*|_`])", r"\\\1", text)


def blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines that belong together: cut where there is a blank one, and where an indented part, an
    example or an item begins."""
    block: list[str] = []
    for line in lines:
        starts = bool(block) and (
            (indented(line) != indented(block[0]) and not ITEM.match(block[0]))
            or (line.startswith(">>>") and not block[0].startswith(">>>"))
            or bool(ITEM.match(line))
        )
        if block and (starts or not line.strip()):
            yield block
            block = []
        if line.strip():
            block.append(line)
    if block:
        yield block


def indented(line: str) -> bool:
    return line.startswith("  ")


def restructured(lines: list[str]) -> list[str]:
    out: list[str] = []
    literal = item = False
    for block in blocks(lines):
        if block[0].startswith(">>>"):
            out += ["", *block]
            literal = item = False
        elif indented(block[0]):
            out += ["" if literal else "\n::\n", *block]
            literal, item = True, False
        else:
            is_item = bool(ITEM.match(block[0]))
            text = " ".join(line.strip() for line in block)
            text = re.sub(r"::$", ":", text)
            mark = ITEM.match(text) if is_item else None
            head, rest = (mark[0], text[mark.end() :]) if mark else ("", text)
            out += [*([] if item and is_item else [""]), head + inline(rest)]
            literal, item = False, is_item
    return "\n".join(out).strip("\n").split("\n")


def process(_app: Any, what: str, name: str, obj: Any, _options: Any, lines: list[str]) -> None:
    own = getattr(obj, "__module__", None) or name
    if str(own).startswith("rankone"):
        lines[:] = restructured(list(lines))
    elif what in ("method", "attribute"):
        lines[:] = []  # inherited from elsewhere


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=400)
    return {"parallel_read_safe": True}
