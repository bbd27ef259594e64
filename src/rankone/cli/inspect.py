"""rankone inspect FILE"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.audit import Audit

INPUTS = {
    "majority": "nothing: the most frequent label",
    "token": "the token alone",
    "set": "token and set of tokens in the sentence",
    "multiset": "token and multiset of tokens",
    "prefix": "the sentence up to the token (causal)",
    "sequence": "the whole sentence and the position",
}
SHOWN = 10


@bundled
def inspect(
    file: options.File,
    *,
    reading: options.Reading,
    output: options.Output,
) -> None:
    """Find the best accuracy any model could reach on this file, and contradicting rows."""
    from rankone.audit.inspect import inspect
    from rankone.cli import console
    from rankone.corpus import read_corpus

    with console.working("read", output) as progress:
        corpus = read_corpus(file, **reading.arguments())
        progress("inspect", 0.0)
        audit = inspect(corpus)
    console.report(output, audit.to_json(), lambda: _show(audit, reading.scheme))


def _show(audit: Audit, asked: str) -> None:
    from rankone.cli import console

    where = "sentence" if audit.format == "python" else "line"
    copies = plural(audit.disagreeing_copies, "copy", "copies")
    share = audit.sentences_with_repeated_token / audit.sentences
    console.print_table(
        audit.source if audit.format == "python" else f"{audit.source} ({audit.format})",
        [
            *([("read from", str(audit.columns))] if str(audit.columns) else []),
            ("sentences", f"{audit.sentences:,}"),
            ("tokens", f"{audit.tokens:,}"),
            ("different tokens", f"{audit.vocabulary:,}"),
            (
                "longest sentence",
                f"{plural(audit.longest, 'token')} ({where} {audit.longest_line:,})",
            ),
            ("mean length", f"{audit.mean_length:.2f}"),
            (
                "sentences with a repeated token",
                f"{audit.sentences_with_repeated_token:,} ({share:.2%})",
            ),
            ("surplus copies of a sentence", f"{audit.surplus_copies:,}"),
            (
                "repeated sentences at odds",
                f"{audit.disagreeing_sequences:,} ({copies})",
            ),
        ],
    )
    console.print_table(
        "Labels",
        [(name, f"{n:,}", f"{n / audit.tokens:.2%}") for name, n in audit.labels.items()],
        ("label", "tokens", "share"),
    )
    console.print_table(
        "Ceilings: the best any function of this input can do",
        [
            (seen, f"{audit.ceilings[key].accuracy:.4%}", f"{audit.ceilings[key].errors:,}")
            for key, seen in INPUTS.items()
        ],
        ("input", "accuracy", "errors"),
    )
    console.print_lines(*console.scheme_lines(audit.scheme, asked))
    if not audit.conflicts:
        console.print_lines("No conflicts: the sequence determines every label.")
        return
    places = plural(len(audit.conflicts), "place")
    console.print_lines(f"Conflicts: {places} in equal sentences")
    for conflict in audit.conflicts[:SHOWN]:
        console.print_lines(f"  {conflict}", f"    {conflict.excerpt()}")
    if len(audit.conflicts) > SHOWN:
        console.print_lines(f"  and {len(audit.conflicts) - SHOWN:,} more (--json lists all)")
