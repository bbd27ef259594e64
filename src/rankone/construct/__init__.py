"""The paper's proofs as functions that return weights."""

from rankone.construct.memorize import memorize
from rankone.construct.memorized import Memorized
from rankone.construct.vectors import read_vectors

__all__ = ["Memorized", "memorize", "read_vectors"]
