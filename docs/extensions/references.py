"""Names between backticks lead to their pages: ours, and those of Python, numpy and torch."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from names import address, full_name, known_as, meant
from sphinx import addnodes
from sphinx.util.nodes import make_refnode

NAME = re.compile(r"(rankone|numpy|torch)(\.\w+)+(\(\))?")


def at_home(_app: Any, doctree: Any) -> None:
    """Names in signatures are those of their module: `Corpus` stands for one class, not for any."""
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get("refdomain") == "py":
            target = node["reftarget"].removesuffix("()")
            try:
                written, thing = meant(target, node.get("py:module"), node.get("py:class"))
            except ImportError:
                # A word of code that is no name, or a type inherited from another module. Whoever
                # writes `rankone.x` means a name, and is told if there is none.
                if not NAME.fullmatch(target):
                    node.replace_self(node.children)
            else:
                node["reftarget"] = full_name(thing, written)
                node.attributes.pop("refspecific", None)  # it stands for one thing now


def resolve(app: Any, env: Any, node: Any, content: Any) -> Any:
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removesuffix("()")
    try:
        written, thing = meant(target, node.get("py:module"), node.get("py:class"))
    except ImportError:
        return None if NAME.fullmatch(target) else content
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


def setup(app: Any) -> dict[str, bool]:
    app.connect("missing-reference", resolve)
    app.connect("doctree-read", at_home)
    app.connect("doctree-read", link_names)
    return {"parallel_read_safe": True}
