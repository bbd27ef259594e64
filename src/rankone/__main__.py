"""Where the command `rankone` starts."""

from __future__ import annotations

import signal


def main() -> None:
    # Until a command runs there is nothing to clean up, so Ctrl-C may end us on the spot: modules
    # that are interrupted while they are imported would leave a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from rankone.cli import main as run

    run()


if __name__ == "__main__":
    main()
