"""What a model should output: one label for each context that it can see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankone.arrays import Ints
from rankone.corpus.conflicts import Conflict, add_conflicts
from rankone.corpus.contexts import visible
from rankone.corpus.corpus import Corpus
from rankone.corpus.tallies import best, tally_parts
from rankone.errors import ConflictError, SettingError
from rankone.plural import plural


@dataclass(frozen=True)
class PartTargets:
    """``labels[i]`` is the label that token i of the part should get, -1 if its context is never
    asked; ``contexts[i]`` is the first token with its context, counted over all parts."""

    contexts: Ints
    labels: Ints


@dataclass(frozen=True)
class Targets:
    """``unavoidable`` is the number of tokens that these labels get wrong; no function of the
    context can do better."""

    parts: tuple[PartTargets, ...]
    unavoidable: int
    conflicts: tuple[Conflict, ...]


def choose_targets(
    parts: Sequence[Corpus], *, positions: bool, causal: bool, strict: bool
) -> Targets:
    """The most frequent label of every context; with `strict`, contradictions are refused.

    Words and labels must have the same numbers in all parts (see `numbered`).
    """
    first = parts[0].vocabulary, parts[0].label_names
    if any((part.vocabulary, part.label_names) != first for part in parts[1:]):
        raise SettingError(
            "parts that number their words differently",
            remedy="give rankone.corpus.parts.numbered(parts)",
        )
    look = visible(positions=positions, causal=causal, window=parts[0].window)
    tally, contexts = tally_parts(parts, look)
    found = best(tally)
    conflicts: dict[int, Conflict] = {}
    files = {file for part in parts for file in part.files}
    for part, own in zip(parts, contexts, strict=True):
        add_conflicts(conflicts, part, own, found.members(own, part.label_ids), files)
    if strict and conflicts:
        refuse(tuple(conflicts.values()), parts[0].source)
    firsts = contexts if tally.keys is None else [tally.first[own] for own in contexts]
    labels = [np.take(found.labels, own) for own in contexts]
    return Targets(tuple(map(PartTargets, firsts, labels)), found.errors, tuple(conflicts.values()))


def refuse(conflicts: Sequence[Conflict], source: str) -> None:
    """Raise an error that lists the first ten contexts with contradicting labels."""
    shown = "\n".join(f"    {conflict}" for conflict in conflicts[:10])
    more = f"\n    and {len(conflicts) - 10} more" if len(conflicts) > 10 else ""
    raise ConflictError(
        f"{plural(len(conflicts), 'context carries', 'contexts carry')} contradicting labels"
        f"\n{shown}{more}",
        where=source,
        remedy="fix the rows, or leave strict out: then each context gets its majority label",
    )
