"""numba, with machine code on disk that is as new as all of the code it was made from."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def _fingerprint() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


FINGERPRINT = _fingerprint()


def compiled(**options: Any) -> Callable[[F], F]:
    """Compiled on first use, kept on disk, and run without the interpreter's lock.

    numba takes what it finds on disk for good while the file of the function is unchanged. But the
    functions here contain each other's code across files, so that an update could leave old code
    in use; hence the fingerprint of all files takes the place of numba's stamp of one.
    """

    def decorate(function: F) -> F:
        dispatcher = njit(nogil=True, cache=True, **options)(function)
        dispatcher._cache._cache_file._source_stamp = FINGERPRINT
        return dispatcher  # type: ignore[no-any-return]

    return decorate
