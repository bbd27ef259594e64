"""An old certificate, verified anew against the model and the corpus that are there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from flint import arb

from rankone.certify.align import taken
from rankone.certify.certificate import Certificate, Spot, spots
from rankone.certify.certify import Proof, prove
from rankone.certify.hashes import hashes
from rankone.certify.outcome import Outcome
from rankone.certify.reasons import explained, unfinished, witnesses
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
    corpus: Corpus | str | os.PathLike[str] | Iterable[Any],
    *,
    seconds: float | None = None,
    progress: Progress = lambda *_: None,
) -> Check:
    """Nothing in the file is believed: hashes are taken again, and every claim is proved again.

    A claim that the certificate leaves undecided says nothing, so it stands. `seconds` limits the
    time; by default there is no limit, or that which left the certificate itself undecided.
    """
    corpus = taken(model, corpus)
    found = hashes(model, corpus)
    changed = [text for part, text in CHANGED.items() if found[part] != certificate.hashes[part]]  # type: ignore[literal-required]
    if changed:
        return Check(certificate.outcome.value, tuple(changed))
    left = certificate.left
    if seconds is None and left is not None and left.time:
        seconds = certificate.limit
    proof = prove(model, corpus, cap=certificate.cap, seconds=seconds, progress=progress)
    reasons = _unproved(certificate, proof, model, corpus)
    if reasons and proof.left is not None and proof.left.time:
        reasons.append(f"time was up after {seconds:g} s: give more time (--seconds)")
    return Check(certificate.outcome.value, tuple(reasons))


def _unproved(old: Certificate, proof: Proof, model: Model, corpus: Corpus) -> list[str]:
    """The claims of the certificate that the proof does not bear out."""
    mapping, labels, run = proof.mapping, proof.labels, proof.run
    proved = {"mapping": mapping.outcome, "labels": labels.outcome, "float_labels": run.outcome}
    reasons = [
        f"it says {name} {claim}, proved is {proved[name]}"
        for name, claim in old.claims.items()
        if claim is not proved[name] and (claim is not Outcome.UNDECIDED or proved[name] is None)
    ]
    figures = {
        "contexts": proof.contexts,
        "tokens": corpus.n_tokens,
        "unavoidable": labels.unavoidable,
        "wrong": labels.wrong,
    }
    some_open = old.left is not None and old.left.tokens > 0
    if some_open and (old.wrong or 0) <= (labels.wrong or 0):  # some of them, and more are open
        figures["wrong"] = old.wrong
    reasons += [
        f"it says {name} {getattr(old, name)}, proved is {value}"
        for name, value in figures.items()
        if getattr(old, name) != value
    ]
    if not _reason_fits(old, proof, model, corpus):
        reasons.append(f"it says reason {old.reason}, which is not what was found")
    closest = spots(corpus, mapping.pair)
    if old.mapping is not Outcome.UNDECIDED and _places(old.closest) != _places(closest):
        reasons.append(f"it says closest {_shown(old.closest)}, found are {_shown(closest)}")
    above = {"r": mapping.r, "float_distance": run.distance}
    below = {"delta": mapping.delta, "margin": labels.margin}
    for name, bound in {**above, **below}.items():
        claimed = getattr(old, name)
        if claimed is None and (bound is None or some_open):
            continue
        if claimed is None or bound is None or not _implied(claimed, bound, name in below):
            shown = bound.str(15, radius=False) if isinstance(bound, arb) else bound
            reasons.append(f"it says {name} {claimed}, proved is no better than {shown}")
    return reasons


def _reason_fits(old: Certificate, proof: Proof, model: Model, corpus: Corpus) -> bool:
    """Whether it names a witness for each claim that it says is refuted; or what it leaves open."""
    if old.outcome is Outcome.UNDECIDED and old.left is not None:
        return old.reason == unfinished(old.left, old.cap, old.limit)
    found = witnesses(proof, model, corpus)
    refuted = (name for name, claim in old.claims.items() if claim is Outcome.REFUTED)
    return explained(old.reason, [found.get(name, ()) for name in refuted])


def _implied(claimed: str | float, bound: arb | float, lower: bool) -> bool:
    """Whether a bound from below (or above) that was proved implies the one that is claimed."""
    said, proved = arb(claimed), arb(bound)
    if not said.is_finite() and not proved.is_finite():
        return bool(said > 0) == bool(proved > 0)
    return bool(said <= proved if lower else said >= proved)


def _places(pair: tuple[Spot, Spot] | None) -> set[tuple[int, int]]:
    """Sentences and positions; on which lines they stand is a matter of the file."""
    return {(spot.sentence, spot.position) for spot in pair or ()}


def _shown(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, tuple) else str(value)
