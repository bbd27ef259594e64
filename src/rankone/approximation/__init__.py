"""Proposition 1: build a network for a given function and measure its error."""

from rankone.approximation.approximate import approximate
from rankone.approximation.convergence import Convergence, converge
from rankone.approximation.functions import FUNCTIONS, named_function
from rankone.approximation.plots import draw_plots
from rankone.approximation.result import Approximation
from rankone.approximation.store import load_approximation

__all__ = [
    "FUNCTIONS",
    "Approximation",
    "Convergence",
    "approximate",
    "converge",
    "draw_plots",
    "load_approximation",
    "named_function",
]
