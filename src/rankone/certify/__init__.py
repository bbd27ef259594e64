"""Rigorous checks of given weights. Nothing here knows how weights are made."""

from rankone.certify.certificate import Certificate, read_certificate
from rankone.certify.certify import certify_model
from rankone.certify.check import Check, check_certificate
from rankone.certify.outcome import Outcome

__all__ = [
    "Certificate",
    "Check",
    "Outcome",
    "certify_model",
    "check_certificate",
    "read_certificate",
]
