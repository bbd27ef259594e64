"""What `rankone inspect --task next` shows of a text, besides what all corpora have."""

from __future__ import annotations

from collections.abc import Sequence

from rankone.audit import Passage, TextFigures
from rankone.audit.findings import listed
from rankone.cli.console import print_lines, print_table
from rankone.corpus.conflicts import Conflict
from rankone.plural import plural

SHOWN = 10  # passages, contexts
SIDES = 5  # continuations of a passage
PLACES = 5  # copies of it


def show_ceilings(text: TextFigures) -> None:
    """A row for each window and one for prefixes; and which windows say as much as prefixes."""
    rows = [
        (
            f"{row.window:,}" if row.window else "prefix",
            f"{row.contexts:,}",
            f"{row.determined:,}",
            f"{row.share:.2%}",
            f"{row.accuracy:.4%}",
            f"{row.errors:,}",
            f"{row.bits:.4g}",
            f"{row.perplexity:.6g}",
        )
        for row in text.ceilings
    ]
    print_table(
        "Ceilings: the best that any model of the next token can do on this text",
        rows,
        (
            *("window", "contexts", "determined", "share", "accuracy", "errors"),
            *("bits per token", "perplexity"),
        ),
        wide=True,
    )
    if text.limit is None:
        print_lines("A window of 1 token says as much as prefixes.")
        return
    print_lines(
        f"Windows of {plural(text.enough, 'token')} or more say as much as prefixes. Shorter ones "
        "do not: this stands after different tokens, and goes on in different ways."
    )
    _show_passage(text.limit)


def show_passages(text: TextFigures) -> None:
    """The longest passages that stand more than once."""
    if not text.passages:
        print_lines("No repeated passages: no two tokens stand together more than once.")
        return
    print_lines("Repeated passages, the longest first")
    for passage in text.passages[:SHOWN]:
        _show_passage(passage)
    if len(text.passages) > SHOWN:
        print_lines(f"  and shorter ones (--json lists the {len(text.passages):,} longest)")


def show_conflicts(text: TextFigures, conflicts: Sequence[Conflict]) -> None:
    """The contexts that go on in different ways."""
    row, size = text.ceiling(text.window), plural(text.window, "token")
    if row.ok:
        of_one = f"window of {size}" if text.window else "prefix"
        print_lines(f"No conflicts: every {of_one} has one continuation only.")
        return
    one, many = ("window", "windows") if text.window else ("prefix", "prefixes")
    of_size = f" of {size}" if text.window else ""
    print_lines(
        f"Conflicts: {plural(row.branching, one, many)}{of_size} with several continuations, "
        "those that cost the most errors first"
    )
    for conflict in conflicts[:SHOWN]:
        print_lines(f"  {conflict.excerpt()!r}", f"    {conflict}")
    if row.branching > SHOWN:
        how = "all" if len(conflicts) == row.branching else f"the first {len(conflicts):,}"
        print_lines(f"  and {row.branching - SHOWN:,} more (--json lists {how})")


def _show_passage(found: Passage) -> None:
    rows = listed(found.rows[:PLACES], found.copies, "document")
    sides = [f"{token!r} ({count:,})" for token, count in found.continuations.items()][:SIDES]
    more = len(found.continuations) + found.others - len(sides)
    print_lines(
        f"  {plural(found.length, 'token')}, {plural(found.copies, 'copy', 'copies')}: {rows}",
        f"    {found.text!r}",
        f"    then {', '.join(sides)}{f' and {more:,} more' if more else ''}",
    )
