"""The pages of the API: public names first, by what they are for, then the rooms.

Written into docs/api when the build starts, from what the package says of itself.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from names import full_name

import rankone

GROUPS = {
    "Corpora": "read_corpus builtin_corpus Corpus Sentence",
    "Audit": "inspect Audit",
    "Construct and edit": "memorize Memorized read_vectors edit learn forget Edited",
    "Models": "load Model MultiheadRank1Attention rank1_attention load_exact ExactModel",
    "Recite": "recite Recitation check_recitation RecitationCheck",
    "Certify": "certify Certificate check_certificate read_certificate",
    "Explain and compare": "explain Explanation compare Comparison grow Growth",
    "Explorer": "explore Explorer",
    "Train": "train Settings Trained",
    "Approximate": "approximate Approximation load_approximation converge",
    "Other tools": "export_hf RankOneConfig RankOneForTokenClassification "
    "RankOneForSequenceClassification export_onnx RankOneClassifier",
    "Errors": "RankOneError",
}
ROOMS = (
    "corpus audit kernels theory nn construct certification recitation training approximation "
    "comparison explanation interop engines explorer"
).split()
PAPER = ("theory", "construct")  # rooms whose first line leads to the paper


def public() -> dict[str, str]:
    """Every public name with the group it is in."""
    return {name: group for group, names in GROUPS.items() for name in names.split()}


def heading(text: str, mark: str) -> list[str]:
    return [text, mark * len(text), ""]


def public_page() -> list[str]:
    lines = heading("Public names", "=")
    lines += ["Everything here is imported from ``rankone`` itself, on first use.", ""]
    for group, names in GROUPS.items():
        lines += heading(group, "-")
        for name in names.split():
            thing = getattr(rankone, name)
            kind = "class" if isinstance(thing, type) else "function"
            if name.startswith("RankOneFor"):
                # Its methods are those of transformers.
                lines += [f".. autoclass:: rankone.{name}", "   :no-members:", ""]
            else:
                lines += [f".. auto{kind}:: rankone.{name}", ""]
    return lines


def modules(room: str) -> Iterator[str]:
    package = importlib.import_module(f"rankone.{room}")
    yield package.__name__
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield found.name


def room_page(room: str) -> list[str]:
    lines = heading(f"rankone.{room}", "=")
    if room in PAPER:
        lines += ["What is of the paper leads back to its row of :doc:`the table </paper>`.", ""]
    shown = {full_name(getattr(rankone, name), name): name for name in public()}
    for module in modules(room):
        if any(part.startswith("_") for part in module.split(".")):
            continue
        if module != f"rankone.{room}":
            lines += heading(module.removeprefix(f"rankone.{room}."), "-")
        here = {
            full.removeprefix(f"{module}."): name
            for full, name in shown.items()
            if full.rpartition(".")[0] == module
        }
        lines += [f".. automodule:: {module}", "   :ignore-module-all:"]  # what is imported
        if here:
            lines += [f"   :exclude-members: {', '.join(here)}"]
        lines += [""]
        if here:
            also = ", ".join(f":py:obj:`rankone.{name}`" for name in here.values())
            lines += [f"Public: {also}.", ""]
    return lines


def index_page() -> list[str]:
    lines = heading("API", "=")
    lines += ["Start with the :doc:`public names <public>`. Everything else is sorted by room, see"]
    lines += [":doc:`/architecture`.", "", ".. toctree::", "   :titlesonly:", "", "   public"]
    return [*lines, *(f"   {room}" for room in ROOMS)]


def write(app: Any) -> None:
    home = Path(app.srcdir) / "api"
    home.mkdir(exist_ok=True)
    pages = {"index": index_page(), "public": public_page()}
    pages |= {room: room_page(room) for room in ROOMS}
    for name, lines in pages.items():
        text = "\n".join(lines) + "\n"
        path = home / f"{name}.rst"
        if not path.exists() or path.read_text() != text:  # what is as before is not built again
            path.write_text(text)


def link_sources(_app: Any, docname: str, source: list[str]) -> None:
    """In pages that are read on GitHub too, a tutorial is its script; here it is its page."""
    if "/" not in docname:
        source[0] = re.sub(
            r"\]\(\.\./examples/tutorials/(?:(\w+)\.py(#[\w-]+)?)?\)",
            lambda m: "](" + (m[2] or f"tutorials/{m[1] or 'index'}.rst") + ")",
            source[0],
        )


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write)
    app.connect("source-read", link_sources)
    return {"parallel_read_safe": True}
