"""Draw the rooms of the package, and who imports whom, as docs/figures/rooms.svg.

The arrows are those of the code: a room is joined to every room that it imports, except where a
room between the two is as good. Run it when `tests/test_documentation.py` says so.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "rankone"
PICTURE = ROOT / "docs" / "figures" / "rooms.svg"
WHAT = {
    "cli": "commands",
    "explorer": "the page in the browser",
    "interop": "Hugging Face, ONNX, scikit-learn",
    "explanation": "grades, plots",
    "comparison": "constructions side by side",
    "training": "the loop, Figure 1",
    "construct": "corpus to weights",
    "certification": "proofs about given weights",
    "recitation": "going on from a prompt",
    "approximation": "Proposition 1",
    "audit": "what is wrong with labels",
    "nn": "networks, storage, evaluation",
    "corpus": "readers, tasks, contexts",
    "kernels": "attention in linear time",
    "theory": "the statements as functions",
    "engines": "parts on disk and on Ray",
}
WIDTH, HEIGHT, GAP, RISE, EDGE = 178, 46, 18, 44, 16


def imports() -> dict[str, set[str]]:
    """The rooms that each room imports."""
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    found = {}
    for room in rooms:
        text = "".join(path.read_text() for path in sorted((SOURCE / room).rglob("*.py")))
        found[room] = set(re.findall(r"^\s*(?:from|import) rankone\.(\w+)", text, re.M)) & rooms
        found[room].discard(room)
    return found


def needed(below: dict[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that do not follow from others."""

    def reach(room: str) -> set[str]:
        return below[room].union(*(reach(other) for other in below[room]))

    return {
        room: {
            other
            for other in others
            if not any(other in reach(between) for between in others - {other})
        }
        for room, others in below.items()
    }


def levels(below: dict[str, set[str]]) -> list[list[str]]:
    """Every room above those that it imports; the top row first."""
    height: dict[str, int] = {}

    def climb(room: str) -> int:
        if room not in height:
            height[room] = 1 + max(map(climb, below[room]), default=-1)
        return height[room]

    rows: list[list[str]] = [[] for _ in range(1 + max(map(climb, below)))]
    for room in sorted(below, key=list(WHAT).index):
        rows[height[room]].append(room)
    return rows[::-1]


def drawn() -> str:
    below = imports()
    rows = levels(below)
    wide = max(map(len, rows)) * (WIDTH + GAP) - GAP + 2 * EDGE
    high = len(rows) * (HEIGHT + RISE) - RISE + 2 * EDGE
    places = {}
    for y, row in enumerate(rows):
        left = (wide - len(row) * (WIDTH + GAP) + GAP) / 2
        for x, room in enumerate(row):
            places[room] = left + x * (WIDTH + GAP), EDGE + y * (HEIGHT + RISE)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        'font-family="sans-serif" role="img">',
        "<title>The rooms of rankone: each imports those below that it is joined to</title>",
        f'<rect width="{wide}" height="{high}" rx="8" fill="#ffffff"/>',
    ]
    for room, others in sorted(needed(below).items()):
        for other in sorted(others):
            x, y = places[room][0] + WIDTH / 2, places[room][1] + HEIGHT
            u, v = places[other][0] + WIDTH / 2, places[other][1]
            bend = f"{x:g} {y + RISE / 2:g} {u:g} {v - RISE / 2:g}"
            out.append(
                f'<path d="M{x:g} {y:g}C{bend} {u:g} {v:g}" fill="none" stroke="#8899aa" '
                f'stroke-width="1.3"><title>{room} imports {other}</title></path>'
            )
    for room, (x, y) in places.items():
        fill = {"certification": "#fbe6e8", "construct": "#e2f1e4"}.get(room, "#e8eef6")
        out += [
            f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{fill}" '
            'stroke="#445566"/>',
            f'<text x="{x + WIDTH / 2:g}" y="{y + 19:g}" text-anchor="middle" font-size="14" '
            f'font-weight="bold" fill="#112233">{room}</text>',
            f'<text x="{x + WIDTH / 2:g}" y="{y + 36:g}" text-anchor="middle" font-size="11" '
            f'fill="#334455">{WHAT[room]}</text>',
        ]
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawn())
