"""Which contexts a model was made of: a hash of each, so that a prompt can be looked up.

The hash of a context is Karp and Rabin's: with p = 2^61 - 1, begin with h = 0, and for every row t
of the token table, from the first one to the last, h becomes (h b + t + 1) mod p. The base b comes
from the corpus. Different contexts of n tokens have equal hashes with a probability of about n / p.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Bools, Ints
from rankone.corpus import Corpus
from rankone.documents import read_bytes
from rankone.errors import ModelError

MAGIC, VERSION = b"contexts", 1
HEADER = struct.Struct("<8sIIQQ")  # magic, version, window, base, how many
HASH = np.dtype("<u8")
PRIME = (1 << 61) - 1
REMEDY = "write the directory again, or remove this file: then prompts cannot be looked up"


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """``hashes`` are those of all contexts that are asked, in order, each once. A context is a
    window, or a prefix (``window`` 0)."""

    window: int
    base: int
    hashes: NDArray[np.uint64]

    @classmethod
    def of(cls, parts: Sequence[Corpus]) -> Fingerprints:
        """Of the parts of a corpus, which share their words."""
        text = sha256()
        for part in parts:
            text.update(part.token_ids.astype("<i8").tobytes())
        base = int.from_bytes(text.digest()[:8], "little") % (PRIME - 2) + 2
        empty = cls(parts[0].window, base, np.empty(0, np.uint64))
        found = [empty.of_tokens(part.token_ids, part.offsets)[part.asked] for part in parts]
        return cls(parts[0].window, base, np.unique(np.concatenate(found)))

    def of_tokens(self, rows: Ints, offsets: Ints) -> NDArray[np.uint64]:
        """The hash of the context of every token, for texts ``offsets[j]:offsets[j + 1]``."""
        from rankone.kernels.compiled.rolling_hash import rolling_hashes  # loaded when used

        out = np.empty(len(rows), np.uint64)
        rolling_hashes(np.asarray(rows, np.int64), offsets, self.base, self.window, out)
        return out

    def know(self, rows: Ints, offsets: Ints | None = None) -> Bools:
        """For every token whether its context is one of them; without offsets, of one text."""
        given = np.array([0, len(rows)]) if offsets is None else offsets
        found = self.of_tokens(rows, given)
        at = np.minimum(np.searchsorted(self.hashes, found), len(self.hashes) - 1)
        return np.asarray(self.hashes[at] == found)

    def to_bytes(self) -> bytes:
        """The contents of contexts.bin."""
        head = HEADER.pack(MAGIC, VERSION, self.window, self.base, len(self.hashes))
        return head + self.hashes.astype(HASH).tobytes()

    @classmethod
    def read(cls, path: Path, window: int) -> Fingerprints:
        """The same from a file, checked; ``window`` is that of the model."""

        def refused(what: str) -> ModelError:
            return ModelError(what, where=str(path), remedy=REMEDY)

        data = read_bytes(path)
        if len(data) < HEADER.size or not data.startswith(MAGIC):
            raise refused("not the fingerprints of contexts")
        _, version, own, base, count = HEADER.unpack_from(data)
        if version != VERSION:
            raise refused(f"written in version {version} of the format, this reads {VERSION}")
        if len(data) != HEADER.size + HASH.itemsize * count:
            raise refused(f"{len(data):,} bytes where {count:,} fingerprints should be")
        hashes = np.frombuffer(data, HASH, offset=HEADER.size).astype(np.uint64)
        rising = bool((hashes[1:] > hashes[:-1]).all())
        if not count or not 2 <= base < PRIME or not rising or hashes[-1] >= PRIME:
            raise refused("fingerprints that are not in order, or out of range")
        if own != window:
            raise refused(f"contexts of {own} tokens, for a model with a window of {window}")
        return cls(own, base, hashes)
