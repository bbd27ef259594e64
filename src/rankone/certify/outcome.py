"""How a certificate can end."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """Certified: proved. Refuted: proved wrong, with a witness. Undecided: neither, at the cap."""

    CERTIFIED = "certified"
    REFUTED = "refuted"
    UNDECIDED = "undecided"

    @classmethod
    def of(cls, *parts: Outcome | None) -> Outcome:
        """Of claims that must all hold; None is one that was not made."""
        for outcome in (cls.REFUTED, cls.UNDECIDED):
            if outcome in parts:
                return outcome
        return cls.CERTIFIED
