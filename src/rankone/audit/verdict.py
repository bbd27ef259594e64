"""The verdict: an audit in one sentence."""

from __future__ import annotations

from rankone.audit.result import Audit
from rankone.plural import plural


def verdict(audit: Audit) -> str:
    """How much of the corpus can be learnt, why not all of it, and what else was found.

    >>> from rankone.audit.inspect import inspect
    >>> verdict(inspect([(["a"], ["X"]), (["a"], ["X"])]))
    'The sentence determines all 2 labels; there is also 1 repeated sentence.'
    """
    leaks = sum(len(comparison.leaks) for comparison in audit.against)
    found = [
        plural(count, one, many)
        for count, one, many in (
            (leaks, "leak", "leaks"),
            (len(audit.duplicates), "repeated sentence", "repeated sentences"),
            (len(audit.suspects), "suspect", "suspects"),
        )
        if count
    ]
    if not found:
        return f"{_learnable(audit)}."
    verb = "is" if found[0].startswith("1 ") else "are"
    *first, last = found
    listed = f"{', '.join(first)} and {last}" if first else last
    return f"{_learnable(audit)}; there {verb} also {listed}."


def _learnable(audit: Audit) -> str:
    """What the best model could do."""
    asked, lost = sum(audit.labels.values()), audit.ceilings["sequence"].errors
    if audit.ok:
        return f"The sentence determines {_all(asked)}"
    places = plural(len(audit.conflicts), "place")
    if not lost:
        return f"The sentence determines {_all(asked)}, but other splits contradict {places}"
    share = audit.ceilings["sequence"].accuracy
    return (
        f"No model can be right on more than {asked - lost:,} of {plural(asked, 'label')} "
        f"({share:.4%}), because equal sentences are labelled differently in {places}"
    )


def _all(asked: int) -> str:
    return "the only label" if asked == 1 else f"all {asked:,} labels"
