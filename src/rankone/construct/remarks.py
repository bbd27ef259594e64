"""Which of the paper's conditions a corpus does not meet, in words."""

from __future__ import annotations

from rankone.construct.problem import Problem
from rankone.corpus.tasks import asks_next, of_texts, task_of
from rankone.plural import plural


def remarks_on(problem: Problem, positions: bool) -> tuple[str, ...]:
    """Which of the paper's conditions fail or say nothing here, and what was done about it."""
    remarks, targets, corpus = [], problem.targets, problem.corpus
    texts, whole = of_texts(corpus.task), task_of(corpus.task).whole
    unit = "document" if whole else "token"
    if targets.conflicts:
        remarks.append(_on_conflicts(problem, unit))
    repeats = 0 if positions else problem.with_repeats
    if repeats:
        remarks.append(
            f"{plural(repeats, 'sentence repeats', 'sentences repeat')} a token, which Corollary 1 "
            "excludes without positions; "
            "sentences are distinguished by the share of each token"
        )
    for count, thing in (
        (0 if asks_next(corpus.task) else problem.sentences, "document" if texts else "sentence"),
        (problem.longest, f"token per {'document' if texts else 'sentence'}"),
        (len(corpus.vocabulary), "token" if texts else "word"),
        (len(corpus.label_names), "label"),
    ):
        if count == 1:
            remarks.append(f"only one {thing}: the theorem holds, but says little here")
    return tuple(remarks)


def _on_conflicts(problem: Problem, unit: str) -> str:
    """What was done about contexts with several labels."""
    count, wrong = len(problem.targets.conflicts), problem.targets.unavoidable
    stay = plural(wrong, f"{unit} stays", f"{unit}s stay")
    if problem.mixtures is not None:
        return (
            f"{plural(count, 'context goes', 'contexts go')} on in several ways, which the paper "
            "excludes; each gives the share of each next token, and the most frequent one leads, "
            f"so {stay} wrong"
        )
    return (
        f"{plural(count, 'context carries', 'contexts carry')} contradicting labels, which the "
        f"paper excludes; each got its majority label, so {stay} wrong"
    )
