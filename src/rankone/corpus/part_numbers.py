"""Numbers that all parts share, for words and labels that each piece has numbered by itself.

Lists of words are joined as a tree, and numbers go back down the same tree, so that nobody but its
root sees all words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankone.arrays import Ints
from rankone.corpus.parted import COLUMNS, NARROW
from rankone.corpus.piece_rows import PieceRows, as_iob2
from rankone.engines import Engine, Ref, Table
from rankone.engines.engine import strings, strings_of

TREE = 8  # lists of words that are joined at a time


def numbers_of_words(leaves: Sequence[Ref], engine: Engine) -> tuple[list[Ref], list[str]]:
    """For each list of words the number that each of its words has among all, and all words."""
    levels, maps = [list(leaves)], list[list[list[Ref]]]()
    while len(levels[-1]) > 1:
        some = [levels[-1][i : i + TREE] for i in range(0, len(levels[-1]), TREE)]
        joined = engine.split(join_words, [(group,) for group in some], 1 + TREE)
        engine.drop(levels[-1])
        levels.append([refs[0] for refs in joined])
        maps.append([refs[1:] for refs in joined])
    words = strings_of(engine.take(levels[-1][0]))
    engine.drop(levels[-1])
    down = [engine.put({"number": np.arange(len(words), dtype=np.int32)})]
    for groups in reversed(maps):
        down = down[: len(groups)]  # without what filled up the last group
        lower = engine.split(
            hand_down, [(above, refs) for above, refs in zip(down, groups, strict=True)], TREE
        )
        engine.drop([*down, *(ref for refs in groups for ref in refs)])
        down = [ref for refs in lower for ref in refs]
    return down[: len(leaves)], words


def join_words(tables: list[Table]) -> list[Table]:
    """All words of some lists, and for each of the lists the numbers of its words among these."""
    number: dict[str, int] = {}
    own: list[Any] = [
        np.array([number.setdefault(word, len(number)) for word in strings_of(table)], np.int32)
        for table in tables
    ]
    own += [np.empty(0, np.int32)] * (TREE - len(tables))
    return [strings(number), *({"number": part} for part in own)]


def hand_down(above: Table, own: list[Table]) -> list[Table]:
    """Numbers in the list above as numbers among all words."""
    return [{"number": above["number"][table["number"]]} for table in own]


def number_rows(
    rows: list[Table],
    maps: list[Table],
    number: Mapping[str, int],
    settings: list[tuple[int, int, bool, bool]],
) -> Table:
    """The columns of a part, from the rows of its pieces."""
    parts: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    tokens = 0
    for table, own, (file, line, converted, labelled) in zip(rows, maps, settings, strict=True):
        ids, starts = table["token_ids"], table["starts"].astype(np.int64)
        parts["token_ids"].append(own["number"][ids])
        parts["label_ids"].append(
            _labels(table, number, converted) if labelled else np.full(len(ids), -1)
        )
        parts["lines"].append(table["lines"] + np.int64(line))
        parts["offsets"].append(starts + tokens)
        parts["file_ids"].append(np.full(len(starts), file))
        tokens += len(ids)
    parts["offsets"].append(np.array([tokens]))
    found = {name: np.concatenate(columns) for name, columns in parts.items()}
    found |= {name: found[name].astype(kind) for name, kind in NARROW.items()}
    if found["lines"].max(initial=0) < 1 << 31:
        found["lines"] = found["lines"].astype(np.int32)
    return found


def _labels(table: Table, number: Mapping[str, int], converted: bool) -> Ints:
    nothing: Any = np.empty(0, np.int64)
    rows = PieceRows(
        b"",
        nothing,
        table["labels"].tobytes(),
        table["label_ends"],
        table["token_ids"],
        table["label_ids"],
        table["lines"],
        table["starts"],
        0,
    )
    rows = as_iob2(rows) if converted else rows
    own = np.array([number[name] for name in rows.label_names], dtype=np.int64)
    return np.asarray(own[rows.label_ids])
