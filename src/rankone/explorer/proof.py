"""The certificate of a page: what it proves, and the tokens that it names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rankone.audit.digest import tails
from rankone.certification import Certificate, read_certificate
from rankone.corpus import Corpus
from rankone.nn import Model
from rankone.nn.store import CERTIFICATE

SPOT = re.compile(r"line \d+ \(sentence (\d+), position (\d+)\)")  # as `Spot` is written


def certificate_in(directory: Path) -> Certificate | None:
    """The certificate that `certify` left in a model directory, if there is one."""
    path = directory / CERTIFICATE
    return read_certificate(path) if path.exists() else None


def proof_data(
    certificate: Certificate | None, model: Model, corpus: Corpus | None
) -> dict[str, Any] | None:
    """The certificate as JSON, and what the page must know besides: whether it is about these
    weights and this corpus, and where its witnesses are (sentence and position, from 1)."""
    if certificate is None:
        return None
    own = certificate.is_of(model)
    same = corpus is not None and certificate.hashes["corpus"] == corpus.sha256
    found = SPOT.findall(certificate.reason or "")
    return {
        **certificate.to_json(),
        "source": tails([certificate.source])[0],
        "claims": certificate.claims,
        "of_model": own,
        "of_corpus": same,
        "witnesses": [[int(sentence), int(position)] for sentence, position in found],
    }
