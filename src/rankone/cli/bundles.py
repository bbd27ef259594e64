"""Options that are declared once: a parameter of a command may be a bundle of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints


def bundled(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer reads it, with the fields of every bundle in place of the bundle.

    A bundle is a frozen dataclass whose fields are annotated options. They are shown in its
    ``PANEL`` of the help; an instance as the default of the parameter gives other defaults.
    """
    signature = inspect.signature(command, eval_str=True)
    bundles: dict[str, Any] = {}
    shown: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        kind = parameter.annotation
        if not is_dataclass(kind):
            shown.append(parameter)
            continue
        bundles[parameter.name] = kind
        given = kind if parameter.default is parameter.empty else parameter.default
        for name, hint in get_type_hints(kind, include_extras=True).items():
            if name in {field.name for field in fields(kind)}:
                option = parameter.replace(
                    name=name, default=getattr(given, name), annotation=_in_panel(hint, kind)
                )
                shown.append(option)

    @wraps(command)
    def call(**values: Any) -> None:
        for parameter, kind in bundles.items():
            own = {field.name: values.pop(field.name) for field in fields(kind)}
            values[parameter] = kind(**own)
        command(**values)

    call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return call


def _in_panel(hint: Any, bundle: Any) -> Any:
    kind, option = get_args(hint)
    option = copy(option)  # several bundles may share it
    option.rich_help_panel = bundle.PANEL or option.rich_help_panel
    return Annotated[kind, option]
