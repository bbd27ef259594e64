"""What the model is to put out: for each context it can see, one label."""

from __future__ import annotations

from dataclasses import dataclass

from rankone.construct.mapping import Ints
from rankone.corpus import Conflict, Corpus
from rankone.corpus.ceilings import best_targets
from rankone.corpus.conflicts import find_conflicts
from rankone.corpus.contexts import visible_contexts
from rankone.errors import ConflictError
from rankone.plural import plural


@dataclass(frozen=True)
class ContextTargets:
    """``labels[i]`` is what token i shall get; ``contexts[i]`` the first token with its context.

    ``unavoidable`` counts the tokens that are then wrong: no function of the context can do better.
    """

    contexts: Ints
    labels: Ints
    unavoidable: int
    conflicts: list[Conflict]


def choose_targets(
    corpus: Corpus, *, positions: bool, causal: bool, strict: bool
) -> ContextTargets:
    """The majority label of every context; with `strict` any contradiction is refused."""
    contexts = visible_contexts(corpus, positions=positions, causal=causal)
    targets = best_targets(contexts, corpus.label_ids)
    conflicts = find_conflicts(corpus, contexts, targets.members)
    if strict and conflicts:
        shown = "\n".join(f"    {conflict}" for conflict in conflicts[:10])
        more = f"\n    and {len(conflicts) - 10} more" if len(conflicts) > 10 else ""
        raise ConflictError(
            f"{plural(len(conflicts), 'context carries', 'contexts carry')} contradicting labels"
            f"\n{shown}{more}",
            where=corpus.source,
            remedy="fix the rows, or leave strict out: then each context gets its majority label",
        )
    return ContextTargets(contexts, targets.labels, targets.errors, conflicts)
