"""Why something is not certified: witnesses of what is refuted, or what is left to decide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rankone.certify.certificate import Left, Spot, spots
from rankone.certify.outcome import Outcome
from rankone.corpus import Corpus
from rankone.nn import Model
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.certify.certify import Proof

BETWEEN = "; "


def reason(
    proof: Proof, model: Model, corpus: Corpus, cap: int, seconds: float | None
) -> str | None:
    """One witness for every claim that is refuted; if there is none, what is left."""
    found = [next(iter(texts)) for texts in witnesses(proof, model, corpus).values()]
    if not found and proof.left is not None:
        found.append(unfinished(proof.left, cap, seconds))
    return BETWEEN.join(found) or None


def witnesses(proof: Proof, model: Model, corpus: Corpus) -> dict[str, Iterable[str]]:
    """For each refuted claim whatever would do as its witness."""
    found: dict[str, Iterable[str]] = {}
    closest = spots(corpus, proof.mapping.pair)
    if proof.mapping.outcome is Outcome.REFUTED and closest is not None:
        found["mapping"] = [f"{closest[0]} and {closest[1]} must differ, but have one context id"]
    if proof.labels.witnesses:
        found["labels"] = _wrong(proof, model, corpus)
    if proof.run.witnesses:
        found["float_labels"] = _other(proof, model, corpus)
    return found


def _wrong(proof: Proof, model: Model, corpus: Corpus) -> Iterator[str]:
    for token, decided in proof.labels.witnesses:
        given = corpus.label_names[corpus.label_ids[token]]
        yield (
            f"{Spot.of(corpus, token)} is labelled {given}, but the network decides for "
            f"{model.labels[decided]}"
        )


def _other(proof: Proof, model: Model, corpus: Corpus) -> Iterator[str]:
    for token, exact, run in proof.run.witnesses:
        yield (
            f"{Spot.of(corpus, token)} gets the label {model.labels[exact]} in exact arithmetic, "
            f"but {model.labels[run]} in float64"
        )


def unfinished(left: Left, cap: int, seconds: float | None) -> str:
    """What is not decided, and what to do about it."""
    parts = []
    if left.tokens:
        tokens, sentences = plural(left.tokens, "token"), plural(left.sentences, "sentence")
        parts.append(f"the labels of {tokens} in {sentences}")
    if left.pairs:
        parts.append(f"the distances of {plural(left.pairs, 'pair')} of contexts")
    what = " and ".join(parts) or "the size of 1 context id"
    if left.time:
        return f"not decided in {seconds:g} s: {what}; give more time (--seconds)"
    return f"not decided with {plural(cap, 'digit')}: {what}; give a larger --cap"


def explained(text: str | None, choices: list[Iterable[str]]) -> bool:
    """Whether a reason consists of a witness of each claim, on whatever lines they stand."""
    rest = _without_lines(text or "")
    for i, texts in enumerate(choices):
        start = BETWEEN if i else ""
        candidates = (start + _without_lines(one) for one in texts)
        match = max((one for one in candidates if rest.startswith(one)), key=len, default=None)
        if match is None:
            return False
        rest = rest[len(match) :]
    return not rest


def _without_lines(text: str) -> str:
    return re.sub(r"line \d+ ", "", text)
