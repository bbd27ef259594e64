"""Laying dominoes: an order of pieces in which neighbouring ends agree, as far as they can."""

from __future__ import annotations


def lay_dominoes(pieces: list[tuple[int, int, int]], end: int) -> list[int]:
    """The names of the pieces (name, left end, right end), in a row that continues from `end`.

    Pieces may not be turned. Greedy, in bulk where it can be: first all with two equal ends, then
    pairs that lead to another end and back. Nearly as few ends disagree as must, which is for each
    end what more pieces begin with it than stop with it, and the time is linear in the pieces.

    >>> lay_dominoes([(1, 5, 6), (2, 7, 5), (3, 6, 7)], 5)
    [1, 3, 2]
    """
    ways: dict[int, dict[int, list[int]]] = {}  # ways[a][b]: the pieces that lead from a to b
    for name, a, b in pieces:
        ways.setdefault(a, {}).setdefault(b, []).append(name)
    row: list[int] = []
    while ways:
        here = end if end in ways else max(ways, key=lambda a: len(ways[a]))
        there = here if here in ways[here] else max(ways[here], key=lambda b: len(ways[here][b]))
        out, back = ways[here][there], ways.get(there, {}).get(here, [])
        if there == here or there not in ways:  # equal ends, or an end where no piece begins
            row += out
            out.clear()
            end = there
        elif back:  # to and fro, as often as it goes
            pairs = list(zip(out, back, strict=False))
            row += [name for pair in pairs for name in pair]
            del out[: len(pairs)], back[: len(pairs)]
            end = here
        else:
            row.append(out.pop())
            end = there
        for a, b in ((here, there), (there, here)):
            if a in ways and not ways[a].get(b, True):
                del ways[a][b]
                if not ways[a]:
                    del ways[a]
    return row
