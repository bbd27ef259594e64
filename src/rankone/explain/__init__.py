"""The theorem at work on a corpus: what each grade needs, promises and reaches."""

from rankone.explain.grades import Explanation, GradeReport, explain
from rankone.explain.plots import draw_plots

__all__ = ["Explanation", "GradeReport", "draw_plots", "explain"]
