"""Keeps a daemon for the process at the other end of stdin; run as a script, imports nothing else.

usage: python keeper.py REMOVE COMMAND...     REMOVE: a folder that goes at the end, or empty

When stdin ends, by the caller's will or death of any kind, the daemon is asked to stop, killed if
it does not, and REMOVE is removed. When the keeper dies the kernel tells the daemon to stop.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading

#: Seconds that a daemon has for its end: its own limit, and a little.
STOP_SECONDS = 110
_PR_SET_PDEATHSIG = 1


def _stop_with_keeper() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def main(remove: str, command: list[str]) -> int:
    """Runs the daemon until stdin ends or it does; its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    daemon = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        restore_signals=True,
        # Its signals are ignored here, and that would be inherited.
        preexec_fn=_child,  # noqa: PLW1509 (there is one thread)
    )

    def stop_at_end() -> None:
        while os.read(0, 4096):
            pass
        with contextlib.suppress(ProcessLookupError):
            daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            daemon.kill()

    threading.Thread(target=stop_at_end, daemon=True).start()
    code = daemon.wait()
    if remove:
        shutil.rmtree(remove, ignore_errors=True)
    return code


def _child() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _stop_with_keeper()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
