"""The paper's proofs as functions that return weights."""

from rankone.construct.edit import edit, forget, learn
from rankone.construct.edited import Edited
from rankone.construct.memorize import memorize
from rankone.construct.memorized import Memorized
from rankone.construct.vectors import read_vectors

__all__ = ["Edited", "Memorized", "edit", "forget", "learn", "memorize", "read_vectors"]
