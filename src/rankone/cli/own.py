"""Import a user's function: file.py:name, or module:name."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from rankone.errors import FunctionError

if TYPE_CHECKING:
    from rankone.approximation.target import Function


def own_function(path: str) -> Function:
    """From a file, with the modules next to it, or from a module, here or installed."""
    from rankone.approximation.target import one_line

    module, _, name = path.rpartition(":")
    found: Function
    try:
        with contextlib.redirect_stdout(sys.stderr):
            imported = _file(Path(module)) if module.endswith(".py") else _module(module)
        found = getattr(imported, name)
        if not callable(found):
            raise TypeError("it cannot be called")
    except (Exception, SystemExit) as error:  # whatever the user's module does
        raise FunctionError(
            f"cannot be imported ({one_line(error)})",
            where=path,
            remedy="give file.py:name, or module:name with the module here or installed",
        ) from None
    return found


def _module(name: str) -> ModuleType:
    sys.path.insert(0, "")
    return importlib.import_module(name)


def _file(path: Path) -> ModuleType:
    """Import under the file's own name, so that pickle finds what it defines."""
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(path.stem, None)
        raise
    return module
