"""Where the command `rankone` starts."""

from __future__ import annotations

import gc
import signal

OBJECTS = 500_000  # that are made before any are looked through: imports make many, and drop none


def main() -> None:
    gc.set_threshold(OBJECTS, 10, 10)
    # Until a command runs there is nothing to clean up, so Ctrl-C may end us on the spot: modules
    # that are interrupted while they are imported would leave a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from rankone.cli import main as run

    run()


if __name__ == "__main__":
    main()
