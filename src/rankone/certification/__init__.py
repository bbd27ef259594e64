"""Rigorous checks of given weights. Nothing here knows how weights are made."""

from rankone.certification.certificate import Certificate, Outcome, read_certificate
from rankone.certification.certify import certify
from rankone.certification.check import Check, check_certificate

__all__ = [
    "Certificate",
    "Check",
    "Outcome",
    "certify",
    "check_certificate",
    "read_certificate",
]
