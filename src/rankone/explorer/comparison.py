"""The page of a comparison: constructions side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankone.explorer.frame import page
from rankone.explorer.packing import pack
from rankone.plural import plural


def comparison_page(found: Mapping[str, Any]) -> str:
    """The page, from a `Comparison` as JSON."""
    sees = "with" if found["positions"] else "without"
    sizes = plural(found["sentences"], "sentence"), plural(found["tokens"], "token")
    return page(
        "comparison.html",
        "compare",
        title=f"Constructions for {found['source']}",
        shape=f"{' · '.join(sizes)} · {sees} positions",
        data=pack({"rows": found["rows"]}, {}),
    )
