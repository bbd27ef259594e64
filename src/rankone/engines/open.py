"""Open an engine by its name."""

from __future__ import annotations

import os
from typing import Any

from rankone.choices import EngineName
from rankone.engines.engine import Engine
from rankone.engines.here import Here
from rankone.engines.private import keep_private
from rankone.engines.reach import check_address
from rankone.errors import SettingError


def open_engine(
    name: EngineName | None = None,
    *,
    memory: float | None = None,
    scratch: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    address: str | None = None,
) -> Engine:
    """The engine of this name: "here" (everything in memory), "disk", or "ray".

    `memory` is how many gigabytes this process, or each worker of a cluster, may take; `scratch` is
    a directory for temporary files. `address` is that of a Ray cluster; without it, Ray is started
    on this machine with so many `workers` (default: one per core). If any of these is given, the
    name may be left out.

    >>> with open_engine("disk", memory=2) as engine:
    ...     engine.name
    'disk'
    """
    if name is None:
        on_disk = memory is not None or scratch is not None
        name = (
            "ray" if address is not None or workers is not None else "disk" if on_disk else "here"
        )
    if name != "ray":
        _refuse(f"the engine {name} has no", "choose ray", address=address, workers=workers)
    if name == "here":
        if memory is not None or scratch is not None:
            raise SettingError(
                "with the engine here everything stays in memory",
                remedy="leave out memory and scratch (--memory, --scratch), or choose disk",
            )
        return Here()
    if name == "disk":
        from rankone.engines.disk import Disk

        return Disk(scratch, memory)
    if name == "ray":
        if address is None:
            keep_private()
        else:
            of_others = f"the Ray at {address} was not started here, so leave its settings alone:"
            _refuse(of_others, "address (--address)", workers=workers, scratch=scratch)
            check_address(address)
        from rankone.engines.ray import Ray

        return Ray(address, memory=memory, workers=workers, scratch=scratch)
    raise SettingError(f"unknown engine {name!r}", remedy="choose here, disk or ray")


def _refuse(what: str, otherwise: str, **settings: Any) -> None:
    """Refuse settings that are given."""
    for name, value in settings.items():
        if value is not None:
            raise SettingError(
                f"{what} {name}", remedy=f"leave out {name} (--{name}), or {otherwise}"
            )
