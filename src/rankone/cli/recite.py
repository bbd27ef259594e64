"""rankone recite DIR --prompt TEXT, rankone recite DIR --verify FILE"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rankone.cli import options
from rankone.cli.bundles import bundled
from rankone.cli.options import flag, option
from rankone.errors import SettingError
from rankone.plural import plural

if TYPE_CHECKING:
    from rankone.corpus.tokenizers import Tokenizer
    from rankone.nn import Model
    from rankone.recitation import Recitation, RecitationCheck

SHOWN = 10  # branches
ENDED = {
    "end": "the document ends here",
    "count": "as many as were asked for",
    "positions": "the model has no more positions",
    "loop": "from here on it would repeat itself",
}


@bundled
def recite(
    model: options.ModelDirectory,
    prompt: Annotated[
        str | None, option("Go on from this text.", "TEXT", show_default=False)
    ] = None,
    prompt_file: Annotated[
        str | None,
        option("Go on from the text in this file (-: standard input).", "FILE", show_default=False),
    ] = None,
    tokens: Annotated[
        int | None,
        option("Tokens to print (default: to the end of the document).", "N", min=0, max=1 << 40),
    ] = None,
    force: Annotated[
        bool, flag("Go on from a prompt that is not in the corpus of the model.", "--force")
    ] = False,
    verify: Annotated[
        str | None,
        option("Recite all of this file, and list where the model parts from it.", "FILE"),
    ] = None,
    *,
    output: options.Output,
) -> None:
    """Go on from a prompt, one token after the other, or recite a whole file.

    The model is one of the task `next`. What it says is the text that it was made of, as far as the
    tokens that it sees determine that.

    Exit status 1: with --verify, the model says something else where it could do better.
    """
    _check_options(prompt, prompt_file, tokens, verify, force=force)
    from rankone.nn import load

    if verify is not None:
        _verify(load(model), verify, output)
        return
    from rankone.recitation import recite
    from rankone.recitation.prompt import check_task, prompt_of_file

    loaded = load(model)
    check_task(loaded)
    given = prompt if prompt_file is None else prompt_of_file(loaded, prompt_file)
    assert given is not None
    listen = None if output.silent else _printer(loaded)
    found = recite(loaded, given, tokens, force=force, heard=listen)
    if not output.silent:
        _finish(loaded, found, streamed=listen is not None)
    elif output.json:
        from rankone.cli import console

        console.print_json(found.to_json())


def _check_options(
    prompt: str | None,
    prompt_file: str | None,
    tokens: int | None,
    verify: str | None,
    *,
    force: bool,
) -> None:
    given = [prompt, prompt_file, verify]
    if sum(x is not None for x in given) != 1:
        raise SettingError(
            "nothing to recite" if not any(given) else "several things to recite",
            remedy="give one of --prompt TEXT, --prompt-file FILE and --verify FILE",
        )
    if verify is not None and (tokens is not None or force):
        raise SettingError(
            "a file that is verified is recited as a whole",
            remedy="leave out --tokens and --force, or give --prompt TEXT",
        )


def _tokenizer(model: Model) -> Tokenizer | None:
    from rankone.corpus.tokenizers import tokenizer_of

    return tokenizer_of(model.reading["tokenizer"]) if "tokenizer" in model.reading else None


def _printer(model: Model) -> Callable[[Sequence[str]], None] | None:
    """Print text to a terminal as it is made. None elsewhere, and where tokens are not pieces of
    the text, so that only all of them have one."""
    from rankone.corpus.tokenizers import TOKENIZERS

    tokenizer = _tokenizer(model)
    if tokenizer is None or tokenizer.name not in TOKENIZERS or not _terminal():
        return None
    return lambda tokens: print(_shown(tokenizer.join(tokens)), end="", flush=True)


def _terminal() -> bool:
    return sys.stdout.isatty()


def _shown(text: str) -> str:
    """For a terminal, which must not be steered by it; lines stay lines."""
    from rankone.cli.console import plain

    return "".join(c if c in "\n\t" else plain(c) for c in text)


def _finish(model: Model, found: Recitation, *, streamed: bool) -> None:
    """The text, if it is not there yet: to a file or a pipe as it is, to the last byte."""
    from rankone.cli.console import plain

    tokenizer = _tokenizer(model)
    if _terminal() or tokenizer is None:
        print("" if streamed else _shown(found.text), flush=True)
    else:
        sys.stdout.flush()
        binary = getattr(sys.stdout, "buffer", None)
        if binary is None:
            sys.stdout.write(found.text)
        else:
            binary.write(tokenizer.encode(found.text))
            binary.flush()
    rate = len(found.tokens) / max(found.seconds["recite"], 1e-9)
    speed = f", {rate:,.0f} a second" if len(found.tokens) >= 1000 else ""
    lines = [f"{plural(len(found.tokens), 'token')}{speed}: {ENDED[found.ended]}", *found.remarks]
    typer.echo("\n".join(map(plain, lines)), err=True)


def _verify(model: Model, file: str, output: options.Output) -> None:
    from rankone.cli import console

    with console.working("recite", output) as progress:
        from rankone.recitation import check_recitation

        found = check_recitation(model, file, progress=progress)
    console.report(output, found.to_json(), lambda: _show(found))
    if not found.ok:
        raise typer.Exit(1)


def _show(found: RecitationCheck) -> None:
    from rankone.cli import console

    seconds = found.seconds["recite"]
    share = found.recited / max(1, found.tokens)
    console.print_table(
        f"{found.source}: " + ("recited" if found.ok else "NOT RECITED"),
        [
            ("documents", f"{found.documents:,} ({found.whole:,} without a branch)"),
            ("tokens recited", f"{found.recited:,} of {found.tokens:,} ({share:.4%})"),
            ("branches", f"{found.parted:,} ({found.avoidable:,} avoidable)"),
            ("time", f"{seconds:.3f} s ({found.tokens / max(seconds, 1e-9):,.0f} tokens a second)"),
        ],
    )
    console.print_lines(*found.remarks)
    first = sorted(found.branches, key=lambda branch: not branch.avoidable)[:SHOWN]
    for branch in sorted(first, key=lambda branch: (branch.document, branch.position)):
        place = f"line {branch.line}" if branch.file is not None else f"document {branch.document}"
        better = ", and could do better" if branch.avoidable else ""
        console.print_lines(
            f"  {place}: after {branch.before!r} the text has {branch.text!r}, "
            f"the model says {branch.said!r}{better}"
        )
    if found.parted > SHOWN:
        console.print_lines(f"  and {found.parted - SHOWN:,} more (--json lists them)")
