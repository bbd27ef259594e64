"""Open an engine by its name."""

from __future__ import annotations

import os

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
        for what, value in (("address", address), ("workers", workers)):
            if value is not None:
                raise SettingError(
                    f"the engine {name} has no {what}",
                    remedy=f"leave out {what} (--{what}), or choose ray",
                )
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
            for what, value in (("workers", workers), ("scratch", scratch)):
                if value is not None:
                    raise SettingError(
                        f"{what} is for a Ray that is started here, and this one runs at {address}",
                        remedy=f"leave out {what} (--{what}), or address (--address)",
                    )
            check_address(address)
        from rankone.engines.ray import Ray

        return Ray(address, memory=memory, workers=workers, scratch=scratch)
    raise SettingError(f"unknown engine {name!r}", remedy="choose here, disk or ray")
