"""The audit of a corpus: what contradicts, what leaks, what is likely to be wrong."""

from rankone.audit.findings import Comparison, Duplicate, Evidence, Known, Leak, Row, Suspect
from rankone.audit.inspect import inspect
from rankone.audit.probabilities import read_probabilities
from rankone.audit.result import Audit
from rankone.audit.texts import Passage, TextCeiling, TextConflict, TextFigures

__all__ = [
    "Audit",
    "Comparison",
    "Duplicate",
    "Evidence",
    "Known",
    "Leak",
    "Passage",
    "Row",
    "Suspect",
    "TextCeiling",
    "TextConflict",
    "TextFigures",
    "inspect",
    "read_probabilities",
]
