"""Optional dependencies: if one is missing, the error says how to install it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rankone.errors import ExtraError


@contextlib.contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Import inside: a missing package becomes an error that names the extra to install."""
    try:
        yield
    except ImportError as error:
        raise ExtraError(
            f"{purpose} needs the extra {name}: pip install 'rankone[{name}]' ({error})"
        ) from error
