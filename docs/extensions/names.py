"""What a name in a docstring stands for, and the address of its page elsewhere.

The inventories of other projects would have to be fetched. Instead a name is imported, and the
address of its page follows from where it is defined.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import sys
from contextlib import suppress
from functools import cache
from types import ModuleType
from typing import Any

PYTHON = "https://docs.python.org/3/library"
NUMPY = "https://numpy.org/doc/stable/reference"
TORCH = "https://docs.pytorch.org/docs/stable"
FUNCTIONS = "object type property super map filter zip enumerate reversed".split()  # and classes


def imported(name: str) -> Any:
    """What a dotted name stands for; AttributeError or ImportError where it stands for nothing."""
    parts = name.split(".")
    with suppress(AttributeError, ImportError):  # `rankone.theory.boltzmann` is a function, and
        return below(importlib.import_module(parts[0]), parts[1:])  # the module that it is in
    for cut in range(len(parts) - 1, 0, -1):
        try:
            home = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        with suppress(ModuleNotFoundError):
            return below(home, parts[cut:])
    raise ModuleNotFoundError(name)


def below(thing: Any, parts: list[str]) -> Any:
    """What is found in a module, in a class, or among the fields of one."""
    for part in parts:
        fields = getattr(thing, "__annotations__", {})
        if part in fields and not hasattr(thing, part):
            thing = fields[part]
        elif isinstance(thing, ModuleType) and not hasattr(thing, part):
            thing = importlib.import_module(f"{thing.__name__}.{part}")
        else:
            thing = getattr(thing, part)
    return thing


def address(name: str) -> str | None:
    """The page of a name of Python, numpy or torch."""
    head, _, tail = name.partition(".")
    if hasattr(builtins, name):
        kind = getattr(builtins, name)
        if inspect.isclass(kind) and issubclass(kind, BaseException):
            return f"{PYTHON}/exceptions.html#{name}"
        page = "stdtypes" if inspect.isclass(kind) and name not in FUNCTIONS else "functions"
        return f"{PYTHON}/{page}.html#{name}"
    if head == "numpy":
        thing = imported(name)
        if name.startswith("numpy.typing."):
            return f"{NUMPY}/typing.html#{name}"
        if inspect.isclass(thing) and issubclass(thing, imported("numpy.generic")):
            return f"{NUMPY}/arrays.scalars.html#{name}"
        return f"{NUMPY}/generated/{name}.html#{name}"
    if head == "torch":
        if tail == "Tensor":
            return f"{TORCH}/tensors.html#{name}"
        if tail in ("dtype", "device"):
            return f"{TORCH}/tensor_attributes.html#{name}"
        return f"{TORCH}/generated/{name}.html#{name}"
    if head in sys.stdlib_module_names:
        module = name.rpartition(".")[0]
        module = module if module in ("collections.abc", "os.path") else head
        return f"{PYTHON}/{module}.html#{name}"
    return None


def full_name(thing: Any, name: str) -> str:
    """Where it is defined: `rankone.memorize` is `rankone.construct.memorize.memorize`."""
    if isinstance(thing, ModuleType):
        return thing.__name__
    home, own = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if home == "builtins":
        return str(own)
    return f"{home}.{own}" if isinstance(home, str) and isinstance(own, str) else name


@cache
def imports(module: str) -> dict[str, str]:
    """What the names that a module imports stand for, also where only annotations need them."""
    found: dict[str, str] = {}
    with suppress(ImportError, OSError, TypeError):
        for node in ast.walk(ast.parse(inspect.getsource(importlib.import_module(module)))):
            if isinstance(node, ast.ImportFrom):
                found |= {
                    each.asname or each.name: f"{node.module}.{each.name}" for each in node.names
                }
    return found


def meant(target: str, module: str | None, class_: str | None) -> tuple[str, Any]:
    """A name as it is written in a module: of what is there, or dotted from the top."""
    head, _, tail = target.partition(".")
    elsewhere = imports(module).get(head) if module else None
    for name in (
        f"{module}.{class_}.{target}" if module and class_ else "",
        f"{module}.{target}" if module else "",
        target,
        f"builtins.{target}",
        f"{elsewhere}.{tail}".rstrip(".") if elsewhere else "",
    ):
        with suppress(ImportError, AttributeError, KeyError, ValueError):
            return name, imported(name)
    raise ImportError(target)


def known_as(name: str, target: str) -> str:
    """numpy and torch define things in modules that are not their public homes."""
    short = name.rpartition(".")[2]
    for home in ("torch", "torch.nn", "numpy"):
        if name.startswith(home.partition(".")[0]) and hasattr(imported(home), short):
            return f"{home}.{short}"
    return {"numpy.typing._array_like.NDArray": "numpy.typing.NDArray"}.get(name, name) or target
