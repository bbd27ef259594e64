"""One error type, a subclass per broken assumption; messages say where, what and the remedy."""

from __future__ import annotations

import reprlib


class RankOneError(Exception):
    """Something the user can fix: `where` it is, `what` is wrong, and the `remedy`."""

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        self.where, self.what, self.remedy = where, what, remedy
        head = f"{where}: {what}" if where else what
        super().__init__(f"{head}\n  remedy: {remedy}" if remedy else head)


class CorpusError(RankOneError):
    """The file is not a labelled corpus that can be read."""


class RowsError(RankOneError):
    """Rows with findings cannot be read, or do not fit the corpus that they are to correct."""


class ConflictError(RankOneError):
    """The same context carries different labels, which the caller does not allow."""


class VectorError(RankOneError):
    """The given token vectors break a condition of the theorem."""


class LengthError(RankOneError):
    """A sentence is longer than the table of positions."""


class UnfitError(RankOneError):
    """The corpus does not meet the conditions of a construction."""


class PrecisionError(RankOneError):
    """Double precision cannot tell the context ids apart, whatever was drawn."""


class ProbabilityError(RankOneError):
    """Probabilities of labels that cannot be read, or are not those of the corpus."""


class ModelError(RankOneError):
    """A saved model is missing, damaged or of another version."""


class CertificateError(RankOneError):
    """A certificate is missing, damaged or of another version."""


class BaselineError(RankOneError):
    """A baseline is missing, or is not what `rankone inspect --json` prints."""


class OutputError(RankOneError):
    """The place to write to cannot be used."""


class TrainingError(RankOneError):
    """A run diverged, was ended, or cannot be resumed."""


class AttentionError(RankOneError):
    """Queries, keys, values and masks do not fit together, or the method cannot handle them."""


class FunctionError(RankOneError):
    """A function does not meet the assumptions of Proposition 1."""


class SettingError(RankOneError):
    """A setting cannot be used, or two settings do not go together."""

    @classmethod
    def unless(cls, sound: bool, name: str, value: object, wanted: str) -> None:
        """Refuse the value of a setting that is not sound; the remedy is to give what is wanted."""
        if not sound:
            raise cls(f"{name} cannot be {reprlib.repr(value)}", remedy=f"give {wanted}")


class SizeError(RankOneError):
    """The request does not fit in memory."""


class ClusterError(RankOneError):
    """A cluster cannot be reached, or has failed."""


class ExportError(RankOneError):
    """The exported model does not behave like the original."""


class ExtraError(RankOneError, ImportError):
    """An optional dependency is not installed."""
