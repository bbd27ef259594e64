"""Check a certificate against a model and a corpus by proving its claims again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from flint import arb

from rankone.certification.align import AnyCorpus, taken
from rankone.certification.certificate import Certificate, Outcome, Spot, hashes, spots
from rankone.certification.certify import left_of, prove
from rankone.certification.claims import Proof
from rankone.certification.reasons import explained, unfinished, witnesses
from rankone.corpus import Corpus
from rankone.nn import Model
from rankone.nn.exact import ExactModel
from rankone.progress import Progress

CHANGED = {
    "weights": "the weights are not those that were certified",
    "network": "the network is not of the architecture that was certified",
    "vocabulary": "the model's vocabulary is not the one that was certified",
    "label names": "the model's labels are not those that were certified",
    "corpus": "the corpus is not the one that was certified: some word, label or sentence differs",
}


@dataclass(frozen=True)
class Check:
    """Whether a certificate stands; if not, every reason. ``outcome`` is what it says."""

    outcome: str
    reasons: tuple[str, ...]
    seconds: dict[str, float]

    @property
    def ok(self) -> bool:
        return not self.reasons

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def check_certificate(
    certificate: Certificate,
    model: Model | ExactModel,
    corpus: AnyCorpus | str | os.PathLike[str] | Iterable[Any],
    *,
    forgotten: Corpus | str | os.PathLike[str] | Iterable[Any] | None = None,
    seconds: float | None = None,
    progress: Progress = lambda *_: None,
) -> Check:
    """Check a certificate. Nothing in it is trusted: hashes and proofs are computed again. One that
    says what was `forgotten` needs those sentences again.

    A claim that the certificate leaves undecided says nothing, so it stands. `seconds` is a time
    limit; the default is none, or the certificate's own limit if it ran out of time.
    """
    began = time.perf_counter()
    given = taken(model, corpus)
    found = hashes(model, given)
    changed = [text for part, text in CHANGED.items() if found[part] != certificate.hashes[part]]  # type: ignore[literal-required]
    hashed = time.perf_counter() - began
    if changed:
        return Check(certificate.outcome.value, tuple(changed), {"hash": hashed, "total": hashed})
    left = certificate.left
    if seconds is None and left is not None and left.time:
        seconds = certificate.limit
    proof = prove(model, given, cap=certificate.cap, seconds=seconds, progress=progress)
    reasons = _unproved(certificate, proof, model, given)
    reasons += _not_forgotten(certificate, model, given, forgotten)
    if reasons and proof.left is not None and proof.left.time:
        reasons.append(f"the time limit of {seconds:g} s was hit: give more time (--seconds)")
    stages = {"hash": hashed, **proof.seconds, "total": time.perf_counter() - began}
    return Check(certificate.outcome.value, tuple(reasons), stages)


def _not_forgotten(
    old: Certificate, model: Model | ExactModel, corpus: AnyCorpus, sentences: Any
) -> list[str]:
    """What the certificate says of forgotten sentences, computed again. That the model was made
    again is a remark of who did it."""
    if old.forgotten is None:
        return []
    if sentences is None:
        return ["forgotten: it takes the sentences to check this: give them (--forgotten)"]
    found = left_of(model, corpus, sentences)
    if replace(old.forgotten, anew=None) == found:
        return []
    return ["forgotten: the certificate says something else of these sentences"]


def _unproved(
    old: Certificate, proof: Proof, model: Model | ExactModel, corpus: AnyCorpus
) -> list[str]:
    """The claims of the certificate that the proof does not confirm."""
    mapping, labels, run = proof.mapping, proof.labels, proof.run
    reasons: list[str] = []

    def refuse(name: str, said: object, found: object) -> None:
        reasons.append(f"{name}: the certificate says {_shown(said)}, the proof {_shown(found)}")

    proved = {"mapping": mapping.outcome, "labels": labels.outcome, "float_labels": run.outcome}
    for name, claim in old.claims.items():
        found = proved[name]
        if claim is not found and (claim is not Outcome.UNDECIDED or found is None):
            refuse(name, claim, found)
    if old.any_order and not proof.any_order:
        refuse("any_order", old.any_order, proof.any_order)
    figures = {
        "contexts": proof.contexts,
        "layer": mapping.layer,
        "tokens": corpus.n_tokens,
        "unavoidable": labels.unavoidable,
        "wrong": labels.wrong,
    }
    decoded = ("documents", "recited", "branches")
    figures |= dict.fromkeys(decoded) if proof.recited is None else asdict(proof.recited)
    some_open = old.left is not None and old.left.tokens > 0
    if some_open and (old.wrong or 0) <= (labels.wrong or 0):  # of those decided then
        figures["wrong"] = old.wrong
    for name in decoded[1:]:
        if some_open and (getattr(old, name) or 0) <= (figures[name] or 0):
            figures[name] = getattr(old, name)
    for name, value in figures.items():
        if getattr(old, name) != value:
            refuse(name, getattr(old, name), value)
    if not _reason_fits(old, proof, model, corpus):
        refuse("reason", old.reason, "found another")
    closest = spots(corpus, mapping.pair)
    if old.mapping is not Outcome.UNDECIDED and _places(old.closest) != _places(closest):
        refuse("closest", old.closest, closest)
    above = {"r": mapping.r, "float_distance": run.distance}
    if old.excess is not None:  # a larger one is true, too
        above["excess"] = inf if proof.excess is None else proof.excess
    below = {"delta": mapping.delta, "margin": labels.margin}
    for name, bound in {**above, **below}.items():
        claimed = getattr(old, name)
        if claimed is None and (bound is None or some_open):
            continue
        if claimed is None or bound is None or not _implied(claimed, bound, name in below):
            shown = bound.str(15, radius=False) if isinstance(bound, arb) else bound
            refuse(name, claimed, f"at best {shown}")
    return reasons


def _reason_fits(
    old: Certificate, proof: Proof, model: Model | ExactModel, corpus: AnyCorpus
) -> bool:
    """Whether the reason names a witness for each refuted claim, or what is undecided."""
    if old.outcome is Outcome.UNDECIDED and old.left is not None:
        return old.reason == unfinished(old.left, old.cap, old.limit)
    found = witnesses(proof, model, corpus)
    refuted = (name for name, claim in old.claims.items() if claim is Outcome.REFUTED)
    return explained(old.reason, [found.get(name, ()) for name in refuted])


def _implied(claimed: str | float, bound: arb | float, lower: bool) -> bool:
    """Whether the proved lower (or upper) bound implies the claimed one."""
    said, proved = arb(claimed), arb(bound)
    if not said.is_finite() and not proved.is_finite():
        return bool(said > 0) == bool(proved > 0)
    return bool(said <= proved if lower else said >= proved)


def _places(pair: tuple[Spot, Spot] | None) -> set[tuple[int, int]]:
    """Sentences and positions; line numbers depend on the file and do not count."""
    return {(spot.sentence, spot.position) for spot in pair or ()}


def _shown(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, tuple) else str(value)
