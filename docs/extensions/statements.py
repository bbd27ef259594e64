"""From a statement of the paper to its code, and back.

The table "Statements" of paper.md names functions. Their pages get a line that leads back to the
row of the table, which is a target of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from names import full_name, imported

if TYPE_CHECKING:
    from docutils import nodes

PAPER = Path(__file__).parents[1] / "paper.md"


@dataclass(frozen=True)
class Statement:
    name: str  # "Lemma 1", "Definition 3, eq. 80 to 82"
    code: str  # cells of its row
    tests: str
    tutorial: str

    @property
    def label(self) -> str:
        return "statement-" + re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def names(self) -> list[str]:
        """What of rankone the row names."""
        return re.findall(r"`(rankone(?:\.\w+)+)`", self.code)


def statements(page: Path = PAPER) -> list[Statement]:
    section = page.read_text().partition("## Statements\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return [Statement(row[0], *row[2:5]) for row in rows[2:]]


def back_links() -> dict[str, list[Statement]]:
    """The statements of everything that a row names, by where it is defined."""
    found: dict[str, list[Statement]] = {}
    for statement in statements():
        for name in statement.names:
            found.setdefault(full_name(imported(name), name), []).append(statement)
    return found


def link_back(app: Any, what: str, name: str, obj: Any, _options: Any, lines: list[str]) -> None:
    if what not in ("function", "class", "module"):
        return
    own = app.rankone_statements.get(full_name(obj, name), [])
    if own:
        links = ", ".join(f":ref:`{each.name} <{each.label}>`" for each in own)
        lines += ["", f"*In the paper:* {links}.", ""]


def anchor_rows(app: Any, doctree: nodes.document) -> None:
    """Each row of the table is a target, with the label of its statement."""
    from docutils import nodes

    if app.env.docname != "paper":
        return
    table = next(iter(doctree.findall(nodes.table)))
    rows = list(next(iter(table.findall(nodes.tbody))).findall(nodes.row))
    labels = app.env.get_domain("std")
    for row, statement in zip(rows, statements(), strict=True):
        first = row[0][0]  # the paragraph in the first cell
        first["ids"].append(statement.label)
        entry = app.env.docname, statement.label
        labels.labels[statement.label] = (*entry, statement.name)
        labels.anonlabels[statement.label] = entry


def read(app: Any) -> None:
    app.rankone_statements = back_links()


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", read)
    app.connect("autodoc-process-docstring", link_back)
    app.connect("doctree-read", anchor_rows)
    return {"parallel_read_safe": True}
