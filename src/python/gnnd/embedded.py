"""A daemon for this process alone."""

from __future__ import annotations

import atexit
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, BinaryIO

from gnnd.client import Client
from gnnd.errors import GnndError

_CLOSE_SECONDS = 120
#: Exit codes of the daemon that callers tell apart (docs/operating.md).
_REASONS = {73: "STATE_DIR", 78: "CONFIGURATION"}


class LocalClient(Client):
    """A client whose daemon ends with it, with the process, or when the process is killed."""

    def __init__(self, keeper: subprocess.Popen[bytes], address: str, folder: Path) -> None:
        self._keeper = keeper
        self._owner = os.getpid()
        #: What the daemon logs goes here, a JSON object a line.
        self.log_path = folder / "daemon.log"
        try:
            super().__init__(address)
        except BaseException:
            _end(keeper)
            raise
        atexit.register(self.close)

    def close(self) -> None:
        """Stops the daemon, and its jobs with it; returns when it has ended."""
        if os.getpid() != self._owner:
            return  # A forked child's: the daemon is its parent's.
        atexit.unregister(self.close)
        super().close()
        _end(self._keeper)


def local(
    state_dir: str | os.PathLike[str] | None = None,
    *,
    cpu_devices: int | None = None,
    command: str | list[str] | None = None,
    **options: Any,
) -> LocalClient:
    """Starts a daemon for this process, and a client of it.

    The daemon ends with `close()`, at the end of a `with` block, and with this process however that
    ends; nothing of it stays.

    Args:
        state_dir: Folder in which datasets, jobs and checkpoints are kept; a later `local` with it
            finds them. By default they go with the daemon.
        cpu_devices: Number of CPU devices; by default one for each core, at most 8.
        command: How `gnnd` is started, where it is not on the PATH: such as `"npx gnnd"`; also
            `GNND_COMMAND`.
        options: Other keys of the daemon's configuration (docs/operating.md): `share_cores=True`.
    """
    words = _command(command)
    run = Path(tempfile.mkdtemp(prefix="gnnd-local-"))
    state = Path(state_dir).expanduser().absolute() if state_dir is not None else run / "state"
    state.mkdir(parents=True, exist_ok=True)
    address = f"unix:{run / 'gnnd.sock'}"
    flags = {"state_dir": state, "listen": address, "metrics_listen": "127.0.0.1:0"}
    flags |= {"cpu_devices": cpu_devices, **options}
    for key, value in flags.items():
        if value is None or value is False:
            continue
        words.append(f"--{key.replace('_', '-')}")
        words += [] if value is True else [str(value)]
    with open(run / "daemon.log", "w+b") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name("keeper.py")), str(run), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            # An interrupt at the terminal is for this process.
            start_new_session=True,
        )
        try:
            _await_ready(keeper, log)
        except BaseException:
            _end(keeper)
            raise
    return LocalClient(keeper, address, run)


def _command(given: str | list[str] | None) -> list[str]:
    """How the daemon is started: as given, `GNND_COMMAND`, the wheel's, the clone's, the PATH."""
    given = given or os.environ.get("GNND_COMMAND")
    if given:
        words = shlex.split(given) if isinstance(given, str) else list(given)
        return [*words, "serve"]
    if (Path(__file__).parents[1] / "gnnd_daemon" / "dist").exists():
        return [sys.executable, "-m", "gnnd_daemon", "serve"]
    entry = Path(__file__).parents[3] / "dist" / "main.js"
    node = shutil.which("node")
    if entry.exists() and node is not None:
        return [node, str(entry), "serve"]
    found = shutil.which("gnnd")
    if found is not None:
        return [found, "serve"]
    raise GnndError(
        "there is no gnnd on the PATH: in a clone that was set up (npm run setup), name it, "
        "gnnd.local(command='node CLONE/dist/main.js'), or set GNND_COMMAND so"
    )


def _await_ready(keeper: subprocess.Popen[bytes], log: BinaryIO) -> None:
    """The daemon writes one line when it listens; what it says instead is why it does not."""
    assert keeper.stdout is not None
    line = keeper.stdout.readline()
    if line:
        assert json.loads(line)["msg"] == "daemon.ready"
        # Nothing more is expected, and nobody shall wait for a reader.
        threading.Thread(target=keeper.stdout.read, daemon=True).start()
        return
    reason = _REASONS.get(keeper.wait(), "")
    log.seek(0)
    said = log.read().decode(errors="replace").strip().split("\n")[-3:]
    raise GnndError("the daemon did not start:\n  " + "\n  ".join(said), reason=reason)


def _end(keeper: subprocess.Popen[bytes]) -> None:
    if keeper.stdin is not None and not keeper.stdin.closed:
        keeper.stdin.close()
    try:
        keeper.wait(_CLOSE_SECONDS)
    except subprocess.TimeoutExpired:
        keeper.kill()
    if keeper.stdout is not None:
        keeper.stdout.close()
