"""Suspects: the tokens of a corpus that are most likely to be mislabelled."""

from rankone.audit.suspects.find import find_suspects

__all__ = ["find_suspects"]
