"""JSON documents: a type describes the fields of each, and is checked when it is read."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rankone.errors import ModelError, RankOneError

ANEW = "write it again"
SMALL = 1 << 20  # bytes
T = TypeVar("T")
# Plain words for the types of JSON, whose names come from msgspec.
WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing (null)",
}


def read_document(
    path: str | os.PathLike[str],
    kind: type[T],
    *,
    remedy: str = ANEW,
    missing: str = "check the path",
) -> T:
    """The document at `path`, as an instance of `kind`: a frozen dataclass, a TypedDict, a
    ``list[str]``. Ranges are part of a field's type, as in ``Annotated[int, msgspec.Meta(ge=1)]``.
    A repeated field is refused, unless the file is so large that checking would take long."""
    data = read_bytes(path, missing=missing)
    found = parse_document(data, kind, path, remedy=remedy)
    twice = _repeated(data) if len(data) <= SMALL else None
    if twice is not None:
        what = f"{twice}: there are two of this name"
        raise ModelError(what, where=os.fspath(path), remedy=remedy)
    return found


def has_field(path: Path, name: str, value: object) -> bool:
    """Whether there is a document at `path` that has this value in a field."""
    try:
        return read_document(path, dict[str, Any]).get(name) == value
    except ModelError:
        return False


def read_bytes(
    path: str | os.PathLike[str],
    *,
    error: type[RankOneError] = ModelError,
    missing: str = "check the path",
) -> bytes:
    try:
        if Path(path).exists() and not Path(path).is_file():  # reading a pipe may never end
            raise OSError("not a file")
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise error("no such file", where=os.fspath(path), remedy=missing) from None
    except (OSError, ValueError) as problem:
        what = f"cannot be read ({getattr(problem, 'strerror', None) or problem})"
        raise error(what, where=os.fspath(path), remedy="check the path") from None


def parse_document(
    data: bytes | str,
    kind: type[T],
    where: str | os.PathLike[str],
    error: type[RankOneError] = ModelError,
    remedy: str = ANEW,
) -> T:
    """The document in `data`. What JSON does not have (NaN, Infinity, half a surrogate pair) is
    refused, and so is a number that no float holds."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as problem:
        what = _explained(problem)
    except (ValueError, RecursionError) as problem:
        what = f"cannot be read ({problem})"
    raise error(what, where=os.fspath(where), remedy=remedy) from None


def convert_document(
    value: Any, kind: type[T], where: str | os.PathLike[str], remedy: str = ANEW
) -> T:
    """The same for a value that has been read already, such as a part of a document."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        raise ModelError(_explained(problem), where=os.fspath(where), remedy=remedy) from None


def figures(result: Any, *but: str) -> dict[str, Any]:
    """The fields of a result as JSON has them, but for some, and before them whether it is ok."""
    names = [field.name for field in dataclasses.fields(result) if field.name not in but]
    return {"ok": result.ok, **{name: _plain(getattr(result, name)) for name in names}}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def dumps(document: Any, *, indent: int | None = None, ascii: bool = False) -> str:
    """A document as JSON, without a line end. All JSON that is written or printed comes from here,
    so it never contains NaN or Infinity."""
    return json.dumps(document, ensure_ascii=ascii, indent=indent, allow_nan=False)


def dump(document: Any, indent: int | None = None) -> bytes:
    """The contents of a file. Words are checked when they are read; only names of files may hold
    what is not Unicode, which becomes a question mark."""
    return (dumps(document, indent=indent) + "\n").encode(errors="replace")


def _repeated(data: bytes) -> str | None:
    """A name that occurs twice in one object of the document; msgspec keeps the last."""
    repeated: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            repeated.extend(name for name in names if names.count(name) > 1)

    with contextlib.suppress(ValueError, RecursionError):  # msgspec has read it already
        json.loads(data, object_pairs_hook=look, parse_int=str)
    return repeated[0] if repeated else None


def _explained(problem: msgspec.ValidationError) -> str:
    """ "Expected `int`, got `array` - at `$.network.heads`" in plain words, the field first."""
    said, _, place = str(problem).partition(" - at `")
    said = said.replace("Invalid enum value", "unknown word").replace("Object missing", "no")
    said = re.sub(r"`([^`]*)`", lambda found: _in_words(found[1]), said)
    said = said[:1].lower() + said[1:]
    field = place.rstrip("`").removeprefix("$").removeprefix(".")
    return f"{field}: {said}" if field else said


def _in_words(kind: str) -> str:
    return " or ".join(WORDS.get(part, part) for part in kind.split(" | "))
