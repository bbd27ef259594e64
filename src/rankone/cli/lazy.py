"""Keeps the command line quick to start: a command is imported when it is called."""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group


class OnDemand(TyperCommand):
    """A name and a line of help; the rest is in `rankone.cli.NAME`, imported when it is called."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        return load(str(self.name)).make_context(*arguments, **settings)


class Group(TyperGroup):
    """Commands, and a `--help` option that costs nothing if it is not given."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False  # None would be validated, and pydantic imported for that
        return option


def load(name: str) -> Any:
    """The command itself: the function or group of the same name in its module."""
    found = getattr(importlib.import_module(f"rankone.cli.{name}"), name)
    home = typer.Typer()
    if isinstance(found, typer.Typer):
        home.add_typer(found, name=name, cls=Group)
    else:
        home.command(name)(found)
    return get_group(home).commands[name]
