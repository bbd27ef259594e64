"""What `rankone inspect` shows: the figures of a corpus, and a few findings of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rankone.audit import Audit, Comparison, Leak
from rankone.audit.findings import Row, excerpt, listed
from rankone.audit.verdict import columns_of
from rankone.cli.console import print_lines, print_table, scheme_lines
from rankone.cli.text_tables import show_ceilings, show_conflicts, show_passages
from rankone.corpus.tasks import of_texts
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
DOCUMENT = {  # of which the last token is asked for the label
    "majority": "nothing: the most frequent label",
    "token": "the last token alone",
    "set": "last token and set of tokens",
    "multiset": "last token and multiset of tokens",
    "sequence": "the whole document",
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
    if audit.text is None:
        _show_conflicts(audit)
        _show_duplicates(audit)
    else:
        show_passages(audit.text)
        show_conflicts(audit.text, audit.conflicts)
        _show_duplicates(audit)
    if not of_texts(audit.task):
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
    one = _unit(audit)
    where = one if audit.format == "python" else "line"
    place = f"{where} {audit.longest_line:,}"
    place += f" of {audit.longest_file}" if len(audit.inputs) > 1 else ""
    copies = plural(audit.disagreeing_copies, "copy", "copies")
    share = audit.sentences_with_repeated_token / audit.sentences
    read = columns_of(audit)
    repeated = f"{audit.sentences_with_repeated_token:,} ({share:.2%})"
    at_odds = f"{audit.disagreeing_sequences:,} ({copies})"
    print_table(
        audit.source if audit.format == "python" else f"{audit.source} ({audit.format})",
        [
            *([("read from", read)] if read else []),
            (f"{one}s", f"{audit.sentences:,}"),
            ("tokens", f"{audit.tokens:,}"),
            ("different tokens", f"{audit.vocabulary:,}"),
            (f"longest {one}", f"{plural(audit.longest, 'token')} ({place})"),
            ("mean length", f"{audit.mean_length:.2f}"),
            *([("sentences with a repeated token", repeated)] if one == "sentence" else []),
            (f"surplus copies of a {one}", f"{audit.surplus_copies:,}"),
            *([(f"repeated {one}s at odds", at_odds)] if audit.text is None else []),
        ],
    )
    if audit.text is not None:
        show_ceilings(audit.text)
        return
    of = audit.tokens if one == "sentence" else audit.asked
    print_table(
        "Labels",
        [(name, f"{n:,}", f"{n / of:.2%}") for name, n in audit.labels.items()],
        ("label", "tokens" if one == "sentence" else "documents", "share"),
    )
    print_table(
        "Ceilings: the best any function of this input can do",
        [
            (seen, f"{audit.ceilings[key].accuracy:.4%}", f"{audit.ceilings[key].errors:,}")
            for key, seen in _inputs(audit).items()
        ],
        ("input", "accuracy", "errors"),
    )


def _unit(audit: Audit) -> str:
    """What the corpus consists of."""
    return "document" if of_texts(audit.task) else "sentence"


def _inputs(audit: Audit) -> Mapping[str, str]:
    return DOCUMENT if of_texts(audit.task) else INPUTS


def _show_comparison(audit: Audit, found: Comparison) -> None:
    one = _unit(audit)

    def cell(side: str, name: str) -> str:
        known = found.known[side]
        count, of = getattr(known, name), "tokens" if name not in ("exact", "near") else "sentences"
        return f"{count:,} ({count / getattr(known, of):.2%})"

    print_table(
        f"Known from the other split (here: {audit.source}; there: {found.file})",
        [
            (words.replace("sentence", one), cell("here", name), cell("there", name))
            for name, words in KNOWN.items()
        ],
        ("what the other split has", "of here", "of there"),
    )
    if audit.text is not None:
        return
    print_table(
        f"Ceilings of a model that has memorised the other split ({found.file})",
        [
            (seen, *(f"{found.ceilings[side][key].accuracy:.4%}" for side in ("here", "there")))
            for key, seen in _inputs(audit).items()
        ],
        ("input", "here", "there"),
    )


def _show_leaks(audit: Audit) -> None:
    leaks, one = [leak for comparison in audit.against for leak in comparison.leaks], _unit(audit)
    if not audit.against:
        return
    counts = {kind: sum(leak.kind == kind for leak in leaks) for kind in ("exact", "near")}
    _show_some(
        f"Leaks: {plural(len(leaks), one)} in another split too "
        f"({counts['exact']:,} exact, {counts['near']:,} near)"
        if leaks
        else f"No leaks: no {one} stands in another split.",
        [
            (_leak(leak, audit), excerpt(leak.sentence))
            for leak in sorted(leaks, key=lambda leak: leak.kind)[:SHOWN]
        ],
        len(leaks),
    )


def _leak(leak: Leak, audit: Audit) -> str:
    agree = AGREE[leak.agree] if audit.text is None else ""
    here, there = (listed(rows, unit=_unit(audit)) for rows in (leak.here, leak.there))
    return f"{leak.kind}: {here} and {there}{agree}"


def _show_conflicts(audit: Audit) -> None:
    found = audit.conflicts
    if of_texts(audit.task):
        title = f"Conflicts: {plural(len(found), 'document')} with several labels"
        none = "No conflicts: equal documents have equal labels."
    else:
        title = f"Conflicts: {plural(len(found), 'place')} in equal sentences"
        none = "No conflicts: the sequence determines every label."
    _show_some(
        title if found else none,
        [(str(conflict), conflict.excerpt()) for conflict in found[:SHOWN]],
        len(found),
    )


def _show_duplicates(audit: Audit) -> None:
    found = audit.duplicates
    one, agree = _unit(audit), AGREE if audit.text is None else dict.fromkeys(AGREE, "")
    _show_some(
        f"Duplicates: {plural(len(found), one)} more than once" if found else "",
        [
            (f"{listed(twice.rows, unit=one)}{agree[twice.agree]}", excerpt(twice.sentence))
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
