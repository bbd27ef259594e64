"""What `rankone inspect` shows: the figures of a corpus, and a few findings of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rankone.audit import Audit, Comparison, Leak
from rankone.audit.findings import Row, excerpt, listed
from rankone.cli.console import print_lines, print_table, scheme_lines
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.audit.apply import Applied

INPUTS = {
    "majority": "nothing: the most frequent label",
    "token": "the token alone",
    "set": "token and set of tokens in the sentence",
    "multiset": "token and multiset of tokens",
    "prefix": "the sentence up to the token (causal)",
    "sequence": "the whole sentence and the position",
}
SHOWN = 10  # findings of a kind
KNOWN = {
    "exact": "sentences, exact",
    "near": "sentences, same letters only",
    "words": "tokens: the word",
    "windows": "tokens: the word and its two neighbours",
    "contexts": "tokens: the sentence and the position",
}
AGREE = {True: ", same labels", False: ", other labels", None: ""}


def show(audit: Audit, asked: str, remarks: Sequence[str] = ()) -> None:
    """Everything about an audit, except what only --json lists."""
    _show_figures(audit)
    print_lines(*scheme_lines(audit.scheme, asked), *remarks)
    for comparison in audit.against:
        _show_comparison(audit, comparison)
    _show_leaks(audit)
    _show_conflicts(audit)
    _show_duplicates(audit)
    _show_suspects(audit)


def show_applied(applied: Applied, title: str) -> None:
    """What became of the rows that were accepted."""
    print_table(
        title,
        [
            ("accepted rows applied", f"{applied.applied:,}"),
            ("labels changed", f"{applied.changed:,}"),
            ("accepted rows of other files", f"{applied.elsewhere:,}"),
            ("accepted rows without a proposal", f"{applied.unlabelled:,}"),
        ],
    )
    if applied.unlabelled:
        print_lines("Rows without a proposal are for you: nothing is removed from a file.")
    if not applied.applied and applied.elsewhere:
        print_lines("No accepted row is of this file: is it the one that was inspected?")


def _show_figures(audit: Audit) -> None:
    where = "sentence" if audit.format == "python" else "line"
    place = f"{where} {audit.longest_line:,}"
    place += f" of {audit.longest_file}" if len(audit.inputs) > 1 else ""
    copies = plural(audit.disagreeing_copies, "copy", "copies")
    share = audit.sentences_with_repeated_token / audit.sentences
    print_table(
        audit.source if audit.format == "python" else f"{audit.source} ({audit.format})",
        [
            *([("read from", str(audit.columns))] if str(audit.columns) else []),
            ("sentences", f"{audit.sentences:,}"),
            ("tokens", f"{audit.tokens:,}"),
            ("different tokens", f"{audit.vocabulary:,}"),
            ("longest sentence", f"{plural(audit.longest, 'token')} ({place})"),
            ("mean length", f"{audit.mean_length:.2f}"),
            (
                "sentences with a repeated token",
                f"{audit.sentences_with_repeated_token:,} ({share:.2%})",
            ),
            ("surplus copies of a sentence", f"{audit.surplus_copies:,}"),
            ("repeated sentences at odds", f"{audit.disagreeing_sequences:,} ({copies})"),
        ],
    )
    print_table(
        "Labels",
        [(name, f"{n:,}", f"{n / audit.tokens:.2%}") for name, n in audit.labels.items()],
        ("label", "tokens", "share"),
    )
    print_table(
        "Ceilings: the best any function of this input can do",
        [
            (seen, f"{audit.ceilings[key].accuracy:.4%}", f"{audit.ceilings[key].errors:,}")
            for key, seen in INPUTS.items()
        ],
        ("input", "accuracy", "errors"),
    )


def _show_comparison(audit: Audit, found: Comparison) -> None:
    def cell(side: str, name: str) -> str:
        known = found.known[side]
        count, of = getattr(known, name), "tokens" if name not in ("exact", "near") else "sentences"
        return f"{count:,} ({count / getattr(known, of):.2%})"

    print_table(
        f"Known from the other split (here: {audit.source}; there: {found.file})",
        [(words, cell("here", name), cell("there", name)) for name, words in KNOWN.items()],
        ("what the other split has", "of here", "of there"),
    )
    print_table(
        f"Ceilings of a model that has memorised the other split ({found.file})",
        [
            (seen, *(f"{found.ceilings[side][key].accuracy:.4%}" for side in ("here", "there")))
            for key, seen in INPUTS.items()
        ],
        ("input", "here", "there"),
    )


def _show_leaks(audit: Audit) -> None:
    leaks = [leak for comparison in audit.against for leak in comparison.leaks]
    if not audit.against:
        return
    counts = {kind: sum(leak.kind == kind for leak in leaks) for kind in ("exact", "near")}
    _show_some(
        f"Leaks: {plural(len(leaks), 'sentence')} in another split too "
        f"({counts['exact']:,} exact, {counts['near']:,} near)"
        if leaks
        else "No leaks: no sentence stands in another split.",
        [
            (_leak(leak), excerpt(leak.sentence))
            for leak in sorted(leaks, key=lambda leak: leak.kind)[:SHOWN]
        ],
        len(leaks),
    )


def _leak(leak: Leak) -> str:
    return f"{leak.kind}: {listed(leak.here)} and {listed(leak.there)}{AGREE[leak.agree]}"


def _show_conflicts(audit: Audit) -> None:
    found = audit.conflicts
    _show_some(
        f"Conflicts: {plural(len(found), 'place')} in equal sentences"
        if found
        else "No conflicts: the sequence determines every label.",
        [(str(conflict), conflict.excerpt()) for conflict in found[:SHOWN]],
        len(found),
    )


def _show_duplicates(audit: Audit) -> None:
    found = audit.duplicates
    _show_some(
        f"Duplicates: {plural(len(found), 'sentence')} more than once" if found else "",
        [
            (f"{listed(twice.rows)}{AGREE[twice.agree]}", excerpt(twice.sentence))
            for twice in found[:SHOWN]
        ],
        len(found),
    )


def _show_suspects(audit: Audit) -> None:
    found = audit.suspects
    title = "Suspects: not looked for (--suspects N lists the N labels most likely to be wrong)"
    if "suspects" in audit.seconds:
        title = (
            f"Suspects: {plural(len(found), 'label')} likely to be wrong"
            if found
            else "No suspects."
        )
    _show_some(
        title,
        [
            (
                f"{s.score:.3f}  {Row(s.file, s.line)}: {s.token!r}: {s.label}, more likely "
                f"{s.proposal}",
                excerpt(s.sentence, s.position - s.start, len(s.lines)),
            )
            for s in found[:SHOWN]
        ],
        len(found),
        "--rows PATH and --json list all",
    )


def _show_some(
    title: str, shown: Iterable[tuple[str, str]], count: int, how: str = "--json lists all"
) -> None:
    """A title, some findings with their sentences, and how many more there are."""
    if title:
        print_lines(title)
    for finding, sentence in shown:
        print_lines(f"  {finding}", f"    {sentence}")
    if count > SHOWN:
        print_lines(f"  and {count - SHOWN:,} more ({how})")
