"""Reciting: a model goes on from a prompt, token by token."""

from rankone.recitation.check import check_recitation
from rankone.recitation.recite import recite
from rankone.recitation.result import Branch, Recitation, RecitationCheck

__all__ = ["Branch", "Recitation", "RecitationCheck", "check_recitation", "recite"]
