"""Modules with given parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)


def module_of(
    kind: type[M], parameters: Mapping[str, Tensor], attributes: Mapping[str, Any] | None = None
) -> M:
    """A module of this kind with these parameters, of which none was drawn before."""
    module = kind.__new__(kind)
    nn.Module.__init__(module)
    for name, tensor in parameters.items():
        setattr(module, name, nn.Parameter(tensor))
    for name, value in (attributes or {}).items():
        setattr(module, name, value)
    return module
