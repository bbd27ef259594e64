"""rankone edit DIR --learn FILE --forget FILE --out DIR"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.cli.options import option
from rankone.errors import SettingError
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.construct.edited import Edited


@bundled
def edit(
    model: options.ModelDirectory,
    out: Annotated[
        Path | None, options.out("DIR", "Write the changed model here (DIR itself is allowed).")
    ] = None,
    learn: Annotated[
        str | None, option("Labelled sentences to add.", "FILE", show_default=False)
    ] = None,
    forget: Annotated[
        str | None, option("Sentences to take out, with all copies.", "FILE", show_default=False)
    ] = None,
    corpus: Annotated[
        str | None,
        option("The corpus of the model, if that is not editable.", "FILE"),
    ] = None,
    *,
    output: options.Output,
) -> None:
    """Add sentences to a gated model, or take some out, without making it anew.

    The result has the same bytes as a model memorized from the changed corpus: what is left of the
    old one, in its order, and then what was learned. Files are read as the model's corpus was.
    """
    from rankone.cli import console

    if learn is None and forget is None:
        raise SettingError("nothing to change", remedy="give --learn FILE or --forget FILE")
    with console.working("start", output) as progress:
        if out is not None:
            from rankone.nn.store import check_target

            check_target(out)
        from rankone.construct.edit import edit
        from rankone.nn import load

        loaded = load(model)
        progress("construct", 0.0)
        found = edit(loaded, learn=learn, forget=forget, corpus=corpus)
        progress("write", 0.0)
        files = [] if out is None else found.model.save(out)
    console.report(
        output,
        found.to_json(),
        lambda: _show(found, str(model)),
        files,
        otherwise="Nothing written: no --out DIR.",
    )


def _show(found: Edited, name: str) -> None:
    from rankone.cli import console

    seconds, more = found.seconds, found.hidden_units - found.before
    fitted = f"{found.groups:,} of {plural(found.words, 'word')}"
    console.print_table(
        f"{name}: changed",
        [
            ("sentences forgotten", f"{found.forgotten:,}"),
            ("sentences learned", f"{found.learned:,}"),
            ("tokens", f"{found.tokens:,} ({found.wrong:,} unavoidably wrong)"),
            ("groups fitted", fitted if found.rebuilt is None else "all"),
            ("hidden units", f"{found.hidden_units:,} ({more:+,})"),
            ("verified", plural(found.checked, "token")),
            ("make again, to change it", f"{seconds['prepare']:.3f} s"),
            ("change", f"{seconds['change']:.3f} s"),
            ("assemble and verify", f"{seconds['verify']:.3f} s"),
        ],
    )
    if found.rebuilt is not None:
        console.print_lines(f"The whole model was made again: {found.rebuilt}.")
