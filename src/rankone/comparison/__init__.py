"""Every construction of the field on the same data, side by side, and how each of them grows."""

from rankone.comparison.compare import compare
from rankone.comparison.growth import Growth, grow
from rankone.comparison.result import Comparison, Row

__all__ = ["Comparison", "Growth", "Row", "compare", "grow"]
