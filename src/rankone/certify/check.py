"""An old certificate, verified anew against the model and the corpus that are there."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from flint import arb

from rankone.certify.certificate import Certificate, hashes, spots
from rankone.certify.certify import Progress, Proof, prove
from rankone.corpus import Corpus
from rankone.nn import Model

CHANGED = {
    "weights": "the weights are not those that were certified",
    "network": "the network is not shaped like the one that was certified",
    "vocabulary": "the model's vocabulary is not the one that was certified",
    "label names": "the model's labels are not those that were certified",
    "corpus": "the corpus is not the one that was certified: some word, label or sentence differs",
}


@dataclass(frozen=True)
class Check:
    """Whether a certificate stands; if not, every reason."""

    outcome: str  # what the certificate says
    reasons: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.reasons

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def check_certificate(
    certificate: Certificate,
    model: Model,
    corpus: Corpus,
    *,
    progress: Progress = lambda *_: None,
) -> Check:
    """Nothing in the file is believed: hashes are taken again, and every claim is proved again."""
    found = hashes(model, corpus)
    reasons = [text for part, text in CHANGED.items() if found[part] != certificate.hashes[part]]
    if not reasons:
        proof = prove(model, corpus, cap=certificate.cap, progress=progress)
        reasons = _unproved(certificate, proof, corpus)
    return Check(certificate.outcome.value, tuple(reasons))


def _unproved(old: Certificate, proof: Proof, corpus: Corpus) -> list[str]:
    """The claims of the certificate that the proof does not bear out."""
    mapping, labels = proof.mapping, proof.labels
    exact = {
        "outcome": proof.outcome,
        "mapping": mapping.outcome,
        "labels": labels.outcome,
        "closest": spots(corpus, mapping.pair),
        "contexts": proof.contexts,
        "tokens": corpus.n_tokens,
        "wrong": labels.wrong,
        "unavoidable": labels.unavoidable,
        "float_labels": proof.float_labels,
    }
    reasons = [
        f"it says {name} {_shown(getattr(old, name))}, proved is {_shown(value)}"
        for name, value in exact.items()
        if getattr(old, name) != value
    ]
    at_least = {"r": mapping.r, "float_distance": proof.float_distance}
    at_most = {"delta": mapping.delta, "margin": labels.margin}
    for name, value in {**at_least, **at_most}.items():
        claimed = getattr(old, name)
        if claimed is None or value is None:
            holds = claimed is None and value is None
        else:
            above = arb(claimed) - arb(value)
            holds = bool(above >= 0 if name in at_least else above <= 0)
            holds = holds or str(claimed) in (str(value), "inf")
        if not holds:
            bound = value if not isinstance(value, arb) else value.str(6)
            reasons.append(f"it says {name} {claimed}, proved is no better than {bound}")
    return reasons


def _shown(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, tuple) else str(value)
