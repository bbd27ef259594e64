"""Before Ray is imported: does anybody answer at an address? Ray itself would wait long."""

from __future__ import annotations

import socket

from rankone.errors import ClusterError, SettingError

PATIENCE = 5.0  # seconds
REMEDY = "look at the cluster (ray status), or leave out address (--address)"


def check_address(address: str) -> None:
    """Refuse what is no address of a cluster, and one where nobody answers."""
    if address == "auto":  # of a cluster on this machine, which Ray finds by its files
        return
    host, _, port = address.rpartition(":")
    sound = bool(host) and port.isdigit() and "/" not in host
    SettingError.unless(sound, "address", address, "HOST:PORT, or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"no Ray cluster answers ({getattr(error, 'strerror', None) or error})",
            where=address,
            remedy=REMEDY,
        ) from None
