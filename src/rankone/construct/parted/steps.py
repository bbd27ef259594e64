"""The steps of `memorize` for a corpus in parts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rankone.construct.memorize import Steps
from rankone.construct.parted.check import check_dense_parts, check_fast_parts
from rankone.construct.parted.draw import draw_parts
from rankone.construct.parted.problem import pose_parts
from rankone.construct.problem import table_length
from rankone.corpus.parted import PartedCorpus
from rankone.corpus.tasks import of_texts
from rankone.errors import SettingError
from rankone.nn.ragged import check_lengths
from rankone.progress import Progress

ALONE = "leave out memory and engine (--memory, --engine)"  # for what needs all of a corpus


def check_settings_of_parts(
    construction: str | None, options: Mapping[str, Any], task: str, source: str | None = None
) -> None:
    """Refuse what takes a whole corpus at once; known before it is read."""
    if of_texts(task):
        raise SettingError(
            f"texts (task {task!r}) are memorized in memory", where=source, remedy=ALONE
        )
    if construction != "gated":
        name = "line, the default," if construction is None else construction
        raise SettingError(
            f"{name} needs the whole corpus in memory",
            where=source,
            remedy=f"choose gated (--construction gated), or {ALONE}",
        )
    for name in ("vectors", "editable"):
        if options[name] is not None and options[name] is not False:
            raise SettingError(
                f"{name} needs the whole corpus in memory", where=source, remedy=ALONE
            )


def check_parts(
    whole: PartedCorpus,
    construction: str,
    options: Mapping[str, Any],
    positions: bool,
    max_length: int | None,
) -> int:
    """Refuse what takes a whole corpus at once. Returns the rows of the table of positions."""
    check_settings_of_parts(construction, options, whole.heading.task, whole.source)
    length = table_length(whole.longest, positions, max_length)
    if positions and length < whole.longest:
        number = next(i for i, part in enumerate(whole.parts) if part.longest > length)
        part = whole.part(number)
        check_lengths(part.lengths, length, part.place_of_sentence)
    return length


def steps_of(whole: PartedCorpus, progress: Progress) -> Steps:
    """What is done with it, over its parts."""

    def pose(_: Any, **settings: Any) -> Any:
        return pose_parts(whole, tell=partial(progress, "construct"), **settings)

    return Steps(
        pose,
        draw_parts,
        partial(check_fast_parts, tell=partial(progress, "verify")),
        check_dense_parts,
    )
