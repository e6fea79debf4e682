"""The command line: ``python -m runslice``."""

from __future__ import annotations

import signal
import sys


def main(args: list[str] | None = None) -> int:
    """The command line ``runslice``.

    Args:
        args: its words, without the program's name. Default: those of this process.

    Returns:
        The exit status, which ``runslice --help`` explains.
    """
    words = sys.argv[1:] if args is None else list(args)
    from . import _engines

    status = _engines.verb(words)
    if status is not None:
        return status
    from . import _runslice

    if args is None:
        # The process is the program: a signal ends it, or is caught by the verb that runs.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.stdout.flush()
    return _runslice.main(["runslice", *words])


if __name__ == "__main__":
    sys.exit(main())
