"""Numbers and words of a page as one text: JSON and typed arrays, packed by gzip, in base64.

The bytes that are packed: the length of the JSON (4 bytes, little-endian) and 4 bytes of 0; the
JSON, filled up with blanks to a multiple of 8; the arrays one after the other, each filled up like
that. In the JSON, ``arrays`` has the type, the length and the first byte of each.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Ints
from rankone.documents import dumps

EIGHT = 8
TYPES = {  # of numpy and of JavaScript
    "float64": "Float64Array",
    "float32": "Float32Array",
    "int32": "Int32Array",
    "uint8": "Uint8Array",
    "uint16": "Uint16Array",
    "uint32": "Uint32Array",
}

Arrays = Mapping[str, NDArray[Any]]


def pack(document: Mapping[str, Any], arrays: Arrays) -> str:
    """The text, in which every character is safe inside HTML. Same input, same text."""
    listed, pieces, at = {}, [], 0
    for name, array in arrays.items():
        kind = TYPES[array.dtype.name]
        listed[name] = [kind, array.size, at]
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
        pieces.append(data.ljust(padded(len(data)), b"\0"))
        at += len(pieces[-1])
    text = dumps({**document, "arrays": listed}, ascii=True).encode()
    text = text.ljust(padded(len(text)))
    head = len(text).to_bytes(EIGHT, "little")
    return base64.b64encode(gzip.compress(b"".join([head, text, *pieces]), 6, mtime=0)).decode()


def padded(size: int) -> int:
    return -(-size // EIGHT) * EIGHT


def whole(numbers: Ints) -> NDArray[Any]:
    """Whole numbers from 0 to 2^32 - 1 in the smallest type that holds them."""
    most = int(numbers.max(initial=0))
    kind = np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32
    return numbers.astype(kind)
