"""Theorem 2 on a corpus: what each grade needs, promises and achieves."""

from rankone.explanation.grades import Explanation, GradeReport, explain
from rankone.explanation.plots import draw_plots

__all__ = ["Explanation", "GradeReport", "draw_plots", "explain"]
