"""Why something is not certified: witnesses of refuted claims, or what is undecided."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rankone.certification.align import AnyCorpus
from rankone.certification.certificate import Left, Outcome, Spot, spots, where_is
from rankone.certification.leads import OVERFLOW
from rankone.nn import Model
from rankone.nn.classifier import dtype_name
from rankone.nn.exact import ExactModel
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.certification.claims import Proof

BETWEEN = "; "


def reason(
    proof: Proof, model: Model | ExactModel, corpus: AnyCorpus, cap: int, seconds: float | None
) -> str | None:
    """One witness for every refuted claim; if there is none, what is undecided."""
    found = [next(iter(texts)) for texts in witnesses(proof, model, corpus).values()]
    if not found and proof.left is not None:
        found.append(unfinished(proof.left, cap, seconds))
    return BETWEEN.join(found) or None


def witnesses(
    proof: Proof, model: Model | ExactModel, corpus: AnyCorpus
) -> dict[str, Iterable[str]]:
    """For each refuted claim, all its possible witnesses."""
    found: dict[str, Iterable[str]] = {}
    closest = spots(corpus, proof.mapping.pair)
    if proof.mapping.outcome is Outcome.REFUTED and closest is not None:
        found["mapping"] = [
            f"{closest[0]} and {closest[1]} must differ, but have the same context id"
        ]
    if proof.labels.witnesses:
        found["labels"] = _wrong(proof, model, corpus)
    if proof.run.witnesses:
        found["float_labels"] = _other(proof, model, corpus)
    return found


def _wrong(proof: Proof, model: Model | ExactModel, corpus: AnyCorpus) -> Iterator[str]:
    for token, decided in proof.labels.witnesses:
        part, own, _ = where_is(corpus, token)
        given = part.label_names[part.label_ids[own]]
        yield (
            f"{Spot.of(corpus, token)} is labelled {given}, but the network chooses "
            f"{model.labels[decided]}"
        )


def _other(proof: Proof, model: Model | ExactModel, corpus: AnyCorpus) -> Iterator[str]:
    assert isinstance(model, Model)  # exact weights have no run
    dtype = dtype_name(model.network)
    for token, exact, run in proof.run.witnesses:
        other = f"{model.labels[run]} in" if run != OVERFLOW else "its logits overflow"
        yield (
            f"{Spot.of(corpus, token)} gets the label {model.labels[exact]} in exact arithmetic, "
            f"but {other} {dtype}"
        )


def unfinished(left: Left, cap: int, seconds: float | None) -> str:
    """What is undecided, and the remedy."""
    parts = []
    if left.tokens:
        tokens, sentences = plural(left.tokens, "token"), plural(left.sentences, "sentence")
        parts.append(f"the labels of {tokens} in {sentences}")
    if left.pairs:
        parts.append(f"the distances of {plural(left.pairs, 'pair')} of contexts")
    what = " and ".join(parts) or "the size of 1 context id"
    if left.time:
        return f"undecided after {seconds:g} s: {what}; give more time (--seconds)"
    return f"undecided with {plural(cap, 'digit')}: {what}; give a larger --cap"


def explained(text: str | None, choices: list[Iterable[str]]) -> bool:
    """Whether a reason consists of one witness per claim; line numbers may differ."""
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
