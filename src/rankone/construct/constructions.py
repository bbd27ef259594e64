"""The constructions of the field: ways from a labelled corpus to weights, each under one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rankone.construct.exact import Build
from rankone.construct.line.draw import draw_line
from rankone.construct.problem import Draw


@dataclass(frozen=True)
class Construction:
    """A way from a `Problem` to a network.

    ``paper`` is where it comes from. ``variants`` are its versions for `compare`, by name, of which
    the first is the usual one; ``draw`` is the float64 version for `memorize`, and ``takes`` the
    settings of `memorize` that it heeds besides those that all do.
    """

    paper: str
    draw: Draw
    variants: Mapping[str, Build] = field(default_factory=dict)
    takes: frozenset[str] = frozenset()


# To add one: write its builds, and its name in choices.
CONSTRUCTIONS: dict[str, Construction] = {
    "line": Construction(
        "this project: one line of numbers, units only where labels change",
        draw_line,
        takes=frozenset({"vectors", "causal", "head_size", "readout"}),
    ),
}
