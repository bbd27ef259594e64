"""How plots look, and how they are written."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from rankone.errors import OutputError

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#888888"
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "rankone",  # so that equal plots are equal files
    "svg.fonttype": "none",
}


def write_plots(home: Path, plots: Mapping[str, Callable[[], Figure]]) -> list[Path]:
    """Write each plot as PNG and SVG; returns the files."""
    files = []
    try:
        with matplotlib.rc_context(STYLE), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a letter missing from the font
            for name, plot in plots.items():
                figure = plot()
                for suffix in ("png", "svg"):
                    files.append(home / f"{name}.{suffix}")
                    date = {"Date": None} if suffix == "svg" else None
                    figure.savefig(files[-1], dpi=160, metadata=date)
    except OSError as error:
        raise OutputError(
            f"cannot write ({error.strerror})", where=str(home), remedy="choose another directory"
        ) from None
    return files
