"""Names between backticks lead to their pages: ours here, those of Python, numpy and torch there.

The inventories of other projects would have to be fetched. Instead a name is imported, and the
address of its page follows from where it is defined.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
import sys
from contextlib import suppress
from functools import cache
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.util.nodes import make_refnode

PYTHON = "https://docs.python.org/3/library"
NUMPY = "https://numpy.org/doc/stable/reference"
TORCH = "https://docs.pytorch.org/docs/stable"
FUNCTIONS = "object type property super map filter zip enumerate reversed".split()  # and classes
NAME = re.compile(r"(rankone|numpy|torch)(\.\w+)+(\(\))?")


def imported(name: str) -> Any:
    """What a dotted name stands for; AttributeError or ImportError where it stands for nothing."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            fields = getattr(found, "__annotations__", {})
            found = fields[part] if part in fields else getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


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
        if name == "numpy.typing.NDArray":
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


@cache
def imports(module: str) -> dict[str, str]:
    """What the names that a module imports stand for, also those it imports for annotations only."""
    found: dict[str, str] = {}
    with suppress(ImportError, OSError, TypeError):
        for node in ast.walk(ast.parse(inspect.getsource(importlib.import_module(module)))):
            if isinstance(node, ast.ImportFrom):
                found |= {
                    each.asname or each.name: f"{node.module}.{each.name}" for each in node.names
                }
    return found


def at_home(_app: Any, doctree: Any) -> None:
    """Names in signatures are those of their module: `Corpus` stands for one class, not for any."""
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get("refdomain") == "py":
            target = node["reftarget"].removesuffix("()")
            try:
                written, thing = meant(target, node.get("py:module"), node.get("py:class"))
            except ImportError:
                if not is_name(node, target):
                    node.replace_self(node.children)
            else:
                node["reftarget"] = full_name(thing, written)
                node["refspecific"] = False


def is_name(node: Any, target: str) -> bool:
    """Whether somebody meant a name: not a word of code between backticks, nor a piece of a type
    that Python could not evaluate."""
    return bool(NAME.fullmatch(target)) or (node["reftype"] != "obj" and "py:module" in node)


def resolve(app: Any, env: Any, node: Any, content: Any) -> Any:
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removesuffix("()")
    try:
        written, thing = meant(target, node.get("py:module"), node.get("py:class"))
    except ImportError:
        return None if is_name(node, target) else content
    name = full_name(thing, written)
    domain = env.get_domain("py")
    for known in (name, written, name.replace("torch._C", "torch")):
        if known in domain.objects:
            entry = domain.objects[known]
            refdoc = node.get("refdoc", env.docname)
            return make_refnode(app.builder, refdoc, entry.docname, entry.node_id, content, known)
    if name.startswith("rankone"):  # a type alias, a constant: there is no page, but it exists
        return content
    found = address(known_as(name, target))
    return nodes.reference("", "", content, internal=False, refuri=found) if found else content


def known_as(name: str, target: str) -> str:
    """numpy and torch define things in modules that are not their public homes."""
    short = name.rpartition(".")[2]
    for home in ("torch", "torch.nn", "numpy"):
        if name.startswith(home.partition(".")[0]) and hasattr(imported(home), short):
            return f"{home}.{short}"
    return {"numpy.typing._array_like.NDArray": "numpy.typing.NDArray"}.get(name, name) or target


def link_names(_app: Any, doctree: Any) -> None:
    """Code in a page that is the name of something here, in numpy or in torch."""
    for literal in list(doctree.findall(nodes.literal)):
        text = literal.astext()
        inside = isinstance(literal.parent, (nodes.reference, addnodes.pending_xref))
        if NAME.fullmatch(text) and not inside:
            target = text.removesuffix("()")
            reference = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refexplicit=False
            )
            literal.replace_self(reference)
            reference += literal


def no_arguments(_gallery: Any, _script: Any) -> list[str]:
    return []


def setup(app: Any) -> dict[str, bool]:
    app.connect("missing-reference", resolve)
    app.connect("doctree-read", at_home)
    app.connect("doctree-read", link_names)
    return {"parallel_read_safe": True}
