"""numba, with machine code kept on disk until any of the code it was made from changes."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

from rankone.kernels import chebyshev

F = TypeVar("F", bound=Callable[..., Any])

# A product and a sum may round once; sums may also be taken in the order that suits the registers.
FUSED, SUMS = {"contract"}, {"contract", "reassoc"}
# All that machine code is made from; a test checks that compiled code imports nothing else.
SOURCES = (Path(chebyshev.__file__), *sorted(Path(__file__).parent.glob("*.py")))
FINGERPRINT = sha256(b"".join(source.read_bytes() for source in SOURCES)).hexdigest()


def compiled(**options: Any) -> Callable[[F], F]:
    """Compile on first use, keep the machine code on disk, run without the interpreter's lock.

    numba trusts what it finds on disk while the file of the function is unchanged. But the
    functions here contain each other's code across files, so that an update could leave old code
    in use. Hence the fingerprint of all these files replaces numba's stamp of one.
    """

    def decorate(function: F) -> F:
        dispatcher = njit(nogil=True, cache=True, **options)(function)
        dispatcher._cache._cache_file._source_stamp = FINGERPRINT
        return dispatcher  # type: ignore[no-any-return]

    return decorate


def inlined(function: F) -> F:
    """Inline the function into its callers, under their rounding rules."""
    return njit(inline="always")(function)  # type: ignore[return-value]
