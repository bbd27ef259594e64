"""The constructions of the field: ways from a labelled corpus to weights, each under one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rankone.construct import (
    kajitsuka2024,
    kajitsuka2025,
    kim2023,
    madden2024,
    mahdavi2023,
    yun2020,
)
from rankone.construct.exact import Build, in_float64
from rankone.construct.gated.draw import draw_gated
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


# In the order of their papers. To add one: write its builds, and its name in choices.
CONSTRUCTIONS: dict[str, Construction] = {
    "yun2020": Construction(
        "Yun, Bhojanapalli, Rawat, Reddi and Kumar 2020",
        "two heads shift one grid value per layer, one feed-forward layer per context",
        in_float64(yun2020.build_hardmax),
        {"hardmax": yun2020.build_hardmax, "softmax": yun2020.build_softmax},
    ),
    "kim2023": Construction(
        "Kim, Kim and Mozafari 2023",
        "one layer per token finds the next largest, then bit extraction",
        in_float64(kim2023.build),
        {"": kim2023.build},
    ),
    "mahdavi2023": Construction(
        "Mahdavi, Liao and Thrampoulidis 2023",
        "many heads in one layer, no feed-forward layer",
        in_float64(mahdavi2023.build),
        {"full-rank": mahdavi2023.build, "rank-1": mahdavi2023.build_rank1},
        takes=frozenset({"causal"}),
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
    "kajitsuka2025": Construction(
        "Kajitsuka and Sato 2025",
        "bit extraction, uniform attention, bit extraction",
        in_float64(kajitsuka2025.build),
        {"": kajitsuka2025.build},
    ),
    "madden2024": Construction(
        "Madden, Fox and Thrampoulidis 2024",
        "one head, one hidden unit per context, log-probabilities of labels",
        in_float64(madden2024.build_float64),
        {"analytic": madden2024.build_analytic, "piecewise": madden2024.build_piecewise},
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
        draw_gated,
        takes=frozenset({"vectors", "causal", "heads", "dtype", "directions", "editable"}),
    ),
}
