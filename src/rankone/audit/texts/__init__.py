"""Texts: what a model of the next token can reach at best, and the passages that limit it.

Nothing is imported here but results: the loops of the other modules are compiled.
"""

from rankone.audit.texts.result import Passage, TextCeiling, TextConflict, TextFigures

__all__ = ["Passage", "TextCeiling", "TextConflict", "TextFigures"]
