"""Reading files into a corpus in parts, which an engine keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankone.corpus.parted import PartedCorpus
    from rankone.engines import Engine
    from rankone.progress import Progress


def in_parts(
    model: Any, files: Sequence[str], engine: Engine, how: dict[str, Any], progress: Progress
) -> PartedCorpus:
    """The files as the corpus of a model was read, which may be an exact one."""
    from rankone.corpus.read_parts import read_parts_like

    how = {"labelled": None, **how}
    return read_parts_like(files, engine, model.reading, model.labels, progress=progress, **how)
