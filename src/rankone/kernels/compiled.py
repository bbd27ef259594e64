"""numba, with machine code on disk that is as new as all of the code it was made from."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


# All that machine code is made from; a test holds that these import nothing else of the room.
SOURCES = (
    *("cells", "compiled", "exponential", "grid", "lanes"),
    *("points", "sentences", "transform", "triangle"),
)


def _fingerprint() -> str:
    sources = (Path(__file__).with_name(f"{name}.py") for name in SOURCES)
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


FINGERPRINT = _fingerprint()


def compiled(**options: Any) -> Callable[[F], F]:
    """Compiled on first use, kept on disk, and run without the interpreter's lock.

    numba takes what it finds on disk for good while the file of the function is unchanged. But the
    functions here contain each other's code across files, so that an update could leave old code
    in use; hence the fingerprint of all these files takes the place of numba's stamp of one.
    """

    def decorate(function: F) -> F:
        dispatcher = njit(nogil=True, cache=True, **options)(function)
        dispatcher._cache._cache_file._source_stamp = FINGERPRINT
        return dispatcher  # type: ignore[no-any-return]

    return decorate
