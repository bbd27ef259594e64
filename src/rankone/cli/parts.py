"""Reading a file into a corpus in parts, as the corpus of a model was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankone.corpus.parted import PartedCorpus
    from rankone.engines import Engine


def in_parts(model: Any, file: str, engine: Engine, layout: dict[str, Any]) -> PartedCorpus:
    """The corpus, for a model that may be an exact one."""
    from rankone.corpus.parted import parted

    return parted(model.read(file, **layout), engine)
