"""The audit of a corpus: what contradicts, what leaks, what is likely to be wrong."""

from rankone.audit.findings import Comparison, Duplicate, Evidence, Known, Leak, Row, Suspect
from rankone.audit.inspect import inspect
from rankone.audit.probabilities import read_probabilities
from rankone.audit.result import Audit

__all__ = [
    "Audit",
    "Comparison",
    "Duplicate",
    "Evidence",
    "Known",
    "Leak",
    "Row",
    "Suspect",
    "inspect",
    "read_probabilities",
]
