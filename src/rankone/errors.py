"""One error type, a subclass per broken assumption; messages say where, what and the remedy."""

from __future__ import annotations


class RankOneError(Exception):
    """Something the user can fix: `where` it is, `what` is wrong, and the `remedy`."""

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        self.where, self.what, self.remedy = where, what, remedy
        head = f"{where}: {what}" if where else what
        super().__init__(f"{head}\n  remedy: {remedy}" if remedy else head)


class CorpusError(RankOneError):
    """The file is not a labelled corpus that can be read."""


class ConflictError(RankOneError):
    """The same context carries different labels, and the caller asked for none of that."""


class VectorError(RankOneError):
    """The given token vectors break a condition of the theorem."""


class LengthError(RankOneError):
    """A sentence is longer than the table of positions."""


class PrecisionError(RankOneError):
    """Double precision cannot tell the context ids apart, whatever was drawn."""


class ModelError(RankOneError):
    """A saved model is missing, damaged or of another version."""


class CertificateError(RankOneError):
    """A certificate is missing, damaged or of another version."""


class BaselineError(RankOneError):
    """A baseline is missing, or is not what `rankone inspect --json` prints."""


class OutputError(RankOneError):
    """The place to write to cannot be used."""


class TrainingError(RankOneError):
    """A run diverged or was ended, or cannot be continued from where it is."""


class AttentionError(RankOneError):
    """Queries, keys, values and masks that do not fit together, or what the method cannot do."""


class FunctionError(RankOneError):
    """A function to approximate is not what Proposition 1 is about."""


class SettingError(RankOneError):
    """A setting cannot be used, or two settings do not go together."""


class SizeError(RankOneError):
    """What was asked for does not fit in memory."""


class ExportError(RankOneError):
    """What was exported does not do what the model does."""


class ExtraError(RankOneError, ImportError):
    """An optional dependency is not installed."""
