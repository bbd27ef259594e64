"""The verdict: an audit in one sentence, and where its labels were found."""

from __future__ import annotations

from rankone.audit.result import Audit
from rankone.audit.texts import TextFigures
from rankone.corpus.tasks import of_texts
from rankone.plural import plural


def verdict(audit: Audit) -> str:
    """How much of the corpus can be learnt, why not all of it, and what else was found.

    >>> from rankone.audit.inspect import inspect
    >>> verdict(inspect([(["a"], ["X"]), (["a"], ["X"])]))
    'The sentence determines all 2 labels; there is also 1 repeated sentence.'
    """
    one = "document" if of_texts(audit.task) else "sentence"
    leaks = sum(len(comparison.leaks) for comparison in audit.against)
    found = [
        plural(count, one, many)
        for count, one, many in (
            (leaks, "leak", "leaks"),
            (len(audit.duplicates), f"repeated {one}", f"repeated {one}s"),
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
    if audit.text is not None:
        return _recited(audit.text)
    one = "document" if of_texts(audit.task) else "sentence"
    asked, lost = sum(audit.labels.values()), audit.ceilings["sequence"].errors
    if audit.ok:
        return f"The {one} determines {_all(asked)}"
    places = plural(len(audit.conflicts), "place")
    if not lost:
        return f"The {one} determines {_all(asked)}, but other splits contradict {places}"
    share = audit.ceilings["sequence"].accuracy
    return (
        f"No model can be right on more than {asked - lost:,} of {plural(asked, 'label')} "
        f"({share:.4%}), because equal {one}s are labelled differently in {places}"
    )


def _recited(text: TextFigures) -> str:
    """What the best model of the next token could do."""
    row = text.ceiling(text.window)
    if text.window:
        one, many = "window", f"windows of {plural(text.window, 'token')}"
    else:
        one, many = "prefix", "prefixes"
    if row.ok:
        return f"{many.capitalize()} determine {_all(row.tokens, 'next token')}"
    several = "has" if row.branching == 1 else "have"
    return (
        f"No model can predict more than {row.tokens - row.errors:,} of {row.tokens:,} next tokens "
        f"({row.accuracy:.4%}) or have a perplexity below {row.perplexity:.6g}, because "
        f"{plural(row.branching, one, many)} {several} several continuations"
    )


def _all(asked: int, one: str = "label") -> str:
    return f"the only {one}" if asked == 1 else f"all {asked:,} {one}s"


def columns_of(audit: Audit) -> str:
    """What was found in which column."""
    found = str(audit.columns)
    return found.replace("tokens", "texts") if of_texts(audit.task) else found
