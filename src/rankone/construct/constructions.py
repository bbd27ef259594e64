"""The constructions of the field: ways from a labelled corpus to weights, each under one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rankone.construct import kajitsuka2024
from rankone.construct.exact import Build, in_float64
from rankone.construct.line.draw import draw_line
from rankone.construct.problem import Draw


@dataclass(frozen=True)
class Construction:
    """A way from a `Problem` to a network.

    ``paper`` is where it comes from, ``idea`` what it does, in a line. ``draw`` is its float64
    version, for `memorize`; ``takes`` names the settings of `memorize` that it heeds besides those
    that all do. ``variants`` are its versions for `compare`, by name; None stands for the float64
    version. ``distributions``: its logits are log-probabilities.
    """

    paper: str
    idea: str
    draw: Draw
    variants: Mapping[str, Build | None] = field(default_factory=lambda: {"": None})
    takes: frozenset[str] = frozenset()
    distributions: bool = False


# To add one: write its builds, and its name in choices.
CONSTRUCTIONS: dict[str, Construction] = {
    "line": Construction(
        "this project",
        "one rank-1 head, every context a number on one line, units only where labels change",
        draw_line,
        takes=frozenset({"vectors", "causal", "head_size", "readout"}),
    ),
    "kajitsuka2024": Construction(
        "Kajitsuka and Sato 2024, Corollaries 1 and 2",
        "one rank-1 head, one hidden unit per context",
        kajitsuka2024.draw_practical,
        {
            "paper": kajitsuka2024.build_grade("paper", "shared"),
            "tight": kajitsuka2024.build_grade("tight", "shared"),
            "tight-separate": kajitsuka2024.build_grade("tight", "separate"),
            "practical": None,
        },
        takes=frozenset({"vectors", "causal", "head_size"}),
    ),
    "kajitsuka2024-deep": Construction(
        "Kajitsuka and Sato 2024, Remark 2",
        "one rank-1 head, then bit extraction",
        in_float64(kajitsuka2024.build_deep),
        {"": kajitsuka2024.build_deep},
        takes=frozenset({"causal"}),
    ),
}
