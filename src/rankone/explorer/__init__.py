"""The explorer: a page in which a model runs, with its corpus and its certificate."""

from rankone.explorer.explore import Explorer, explore

__all__ = ["Explorer", "explore"]
