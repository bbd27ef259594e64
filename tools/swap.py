"""Put changed code into a module that is imported already: nothing is imported anew."""

from __future__ import annotations

import gc
import inspect
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType


def swap(path: Path, before: str, after: str) -> bool:
    """Give every living function of the file its code in `after`.

    False, and nothing is done, if more than that differs: constants, defaults and the bodies of
    classes are run when a module is imported.
    """
    with warnings.catch_warnings(action="ignore"):  # of `is` with a literal, for example
        old, new = (compile(text, str(path), "exec") for text in (before, after))
    if list(_imported(old)) != list(_imported(new)):
        return False
    was, becomes = (dict(_functions(code)) for code in (old, new))
    if was.keys() != becomes.keys():
        return False
    changed = {key for key in was if was[key] != becomes[key]}
    living = [
        found
        for found in gc.get_objects()
        if type(found) is FunctionType  # isinstance() would ask lazy proxies, which import things
        and found.__code__.co_filename == str(path)
    ]
    places = [(found, (found.__qualname__, found.__code__.co_firstlineno)) for found in living]
    places = [(found, key) for found, key in places if key in changed]
    if not places or any(
        found.__code__.co_freevars != becomes[key].co_freevars for found, key in places
    ):
        return False
    for found, key in places:
        found.__code__ = becomes[key]
    return True


def _inner(code: CodeType) -> list[CodeType]:
    return [part for part in code.co_consts if isinstance(part, CodeType)]


def _imported(code: CodeType) -> Iterator[object]:
    """What runs on import: the bodies of the module and its classes, with their comprehensions, but
    without their functions."""
    yield code.co_code, code.co_names
    yield [part for part in code.co_consts if not isinstance(part, CodeType)]
    for part in _inner(code):
        if not part.co_flags & inspect.CO_OPTIMIZED:
            yield from _imported(part)
        elif part.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"):
            yield part


def _functions(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Every function by name and line."""
    for part in _inner(code):
        if part.co_flags & inspect.CO_OPTIMIZED:
            yield (part.co_qualname, part.co_firstlineno), part
        yield from _functions(part)
