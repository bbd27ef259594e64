"""The constructions of the field: ways from a labelled corpus to weights, each under one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankone.construct.line.draw import draw_line
from rankone.construct.problem import Draw

if TYPE_CHECKING:
    from rankone.construct.exact import Build


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


def of_module(name: str, *settings: str) -> Any:
    """The function "MODULE.NAME" of a construction, which is imported when it is first called; with
    `settings`, the function that it returns for them."""

    def call(*given: Any) -> Any:
        module, _, own = name.rpartition(".")
        function = getattr(import_module(f"rankone.construct.{module}"), own)
        return (function(*settings) if settings else function)(*given)

    return call


def in_float64(build: Build) -> Draw:
    """The float64 version of exact weights."""

    def draw(*given: Any) -> Any:
        from rankone.construct.exact import in_float64

        return in_float64(build)(*given)

    return draw


# In the order of their papers. To add one: write its builds, and its name in choices.
CONSTRUCTIONS: dict[str, Construction] = {
    "yun2020": Construction(
        "Yun, Bhojanapalli, Rawat, Reddi and Kumar 2020",
        "two heads shift one grid value per layer, one feed-forward layer per context",
        in_float64(of_module("yun2020.build_hardmax")),
        {
            "hardmax": of_module("yun2020.build_hardmax"),
            "softmax": of_module("yun2020.build_softmax"),
        },
    ),
    "kim2023": Construction(
        "Kim, Kim and Mozafari 2023",
        "one layer per token finds the next largest, then bit extraction",
        in_float64(of_module("kim2023.build")),
        {"": of_module("kim2023.build")},
    ),
    "mahdavi2023": Construction(
        "Mahdavi, Liao and Thrampoulidis 2023",
        "many heads in one layer, no feed-forward layer",
        in_float64(of_module("mahdavi2023.build")),
        {
            "full-rank": of_module("mahdavi2023.build"),
            "rank-1": of_module("mahdavi2023.build_rank1"),
        },
        takes=frozenset({"causal"}),
    ),
    "kajitsuka2024": Construction(
        "Kajitsuka and Sato 2024, Corollaries 1 and 2",
        "one rank-1 head, one hidden unit per context",
        of_module("kajitsuka2024.draw_practical"),
        {
            "paper": of_module("kajitsuka2024.build_grade", "paper", "shared"),
            "tight": of_module("kajitsuka2024.build_grade", "tight", "shared"),
            "tight-separate": of_module("kajitsuka2024.build_grade", "tight", "separate"),
            "practical": None,
        },
        takes=frozenset({"vectors", "causal", "head_size"}),
    ),
    "kajitsuka2024-deep": Construction(
        "Kajitsuka and Sato 2024, Remark 2",
        "one rank-1 head, then bit extraction",
        in_float64(of_module("kajitsuka2024.build_deep")),
        {"": of_module("kajitsuka2024.build_deep")},
        takes=frozenset({"causal"}),
    ),
    "kajitsuka2025": Construction(
        "Kajitsuka and Sato 2025",
        "bit extraction, uniform attention, bit extraction",
        in_float64(of_module("kajitsuka2025.build")),
        {"": of_module("kajitsuka2025.build")},
    ),
    "madden2024": Construction(
        "Madden, Fox and Thrampoulidis 2024",
        "one head, one hidden unit per context, log-probabilities of labels",
        in_float64(of_module("madden2024.build_float64")),
        {
            "analytic": of_module("madden2024.build_analytic"),
            "piecewise": of_module("madden2024.build_piecewise"),
        },
        takes=frozenset({"causal"}),
        distributions=True,
    ),
    "line": Construction(
        "this project",
        "one rank-1 head, every context a number on one line, units only where labels change",
        draw_line,
        takes=frozenset({"vectors", "causal", "head_size", "readout"}),
    ),
    "gated": Construction(
        "this project",
        "rank-1 heads, units that are silent outside their own word and position",
        of_module("gated.draw.draw_gated"),
        takes=frozenset({"vectors", "causal", "heads", "dtype", "directions", "editable"}),
    ),
}
