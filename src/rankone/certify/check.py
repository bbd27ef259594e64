"""An old certificate, verified anew against the model and the corpus that are there."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from flint import arb

from rankone.certify.certificate import Certificate, Spot, hashes, spots
from rankone.certify.certify import Proof, prove, reason
from rankone.corpus import Corpus
from rankone.nn import Model
from rankone.progress import Progress

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
        reasons = _unproved(certificate, proof, model, corpus)
    return Check(certificate.outcome.value, tuple(reasons))


def _unproved(old: Certificate, proof: Proof, model: Model, corpus: Corpus) -> list[str]:
    """The claims of the certificate that the proof does not bear out."""
    mapping, labels = proof.mapping, proof.labels
    exact = {
        "outcome": proof.outcome,
        "mapping": mapping.outcome,
        "labels": labels.outcome,
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
    why = reason(model, corpus, mapping, labels, old.cap)
    if _without_lines(old.reason) != _without_lines(why):
        reasons.append(f"it says reason {old.reason}, found is {why}")
    closest = spots(corpus, mapping.pair)
    if _places(old.closest) != _places(closest):
        reasons.append(f"it says closest {_shown(old.closest)}, found are {_shown(closest)}")
    above = {"r": mapping.r, "float_distance": proof.float_distance}
    below = {"delta": mapping.delta, "margin": labels.margin}
    for name, bound in {**above, **below}.items():
        claimed = getattr(old, name)
        if claimed is None and bound is None:
            continue
        if claimed is None or bound is None or not _implied(claimed, bound, name in below):
            shown = bound.str(6) if isinstance(bound, arb) else bound
            reasons.append(f"it says {name} {claimed}, proved is no better than {shown}")
    return reasons


def _implied(claimed: str | float, bound: arb | float, lower: bool) -> bool:
    """Whether a bound from below (or above) that was proved implies the one that is claimed."""
    said, proved = arb(claimed), arb(bound)
    if not said.is_finite() and not proved.is_finite():
        return bool(said > 0) == bool(proved > 0)
    return bool(said <= proved if lower else said >= proved)


def _without_lines(text: str | None) -> str:
    return re.sub(r"line \d+ ", "", text or "")


def _places(pair: tuple[Spot, Spot] | None) -> set[tuple[int, int]]:
    """Sentences and positions; on which lines they stand is a matter of the file."""
    return {(spot.sentence, spot.position) for spot in pair or ()}


def _shown(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, tuple) else str(value)
