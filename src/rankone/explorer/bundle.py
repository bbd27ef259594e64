"""Modules of JavaScript as one script, for a page that loads nothing.

Each module becomes a function that is called at once and returns what the module exports. Modules
are written so that lines tell: ``import {a, b} from "./name.js";`` stands on a line, and what is
exported is a function or a constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable

IMPORT = re.compile(r'^import \{([\w$, ]+)\} from "\./([\w-]+)\.js";$', re.M)
EXPORT = re.compile(r"^export ((?:async )?function\*?|const|class) ([\w$]+)", re.M)


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """The module `entry` and all that it imports, in the order in which they are needed; `read`
    gives the text of the module with a name."""
    done: dict[str, str] = {}

    def add(name: str) -> None:
        text = read(name)
        done[name] = ""  # its place, so that two that import each other come to an end
        for _, needed in IMPORT.findall(text):
            if needed not in done:
                add(needed)
        del done[name]
        done[name] = wrapped(name, text)

    add(entry)
    return "\n".join(done.values())


def wrapped(name: str, text: str) -> str:
    r"""One module as a call.

    >>> wrapped("b", 'import {x} from "./a.js";\nexport const y = x;')
    'const $b = (() => {\n"use strict";\nconst {x} = $a;\nconst y = x;\nreturn {y};\n})();'
    """
    names = ", ".join(name for _, name in EXPORT.findall(text))
    body = IMPORT.sub(lambda found: f"const {{{found[1]}}} = ${found[2]};", text)
    body = EXPORT.sub(r"\1 \2", body).rstrip("\n")
    return f'const ${name} = (() => {{\n"use strict";\n{body}\nreturn {{{names}}};\n}})();'
