"""Makes arrays of a graph's file: `python -m gnnd_formats FORMAT SOURCE FOLDER [--directed]`.

Prints JSON, a line each: `{"progress": 0.5, "message": "…"}`, `{"notice": "…"}`, and for what is
wrong with the source `{"path": "…", "description": "…"}`, after which it exits with 65.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from gnnd_formats import FORMATS, FormatError, read
from gnnd_formats.write import write

#: Exit code for a source that is no good (EX_DATAERR).
BAD_SOURCE = 65


def say(**line: Any) -> None:
    """One line to whoever started this."""
    print(json.dumps(line), flush=True)


def end_with(parent: int) -> None:
    """The kernel kills this process when the one that started it ends, however that ends."""
    set_death_signal = 1  # PR_SET_PDEATHSIG of linux/prctl.h.
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def main() -> int:
    """Exits with 0, or with `BAD_SOURCE`."""
    parser = argparse.ArgumentParser(prog="python -m gnnd_formats", description=__doc__)
    parser.add_argument("format", choices=[*FORMATS])
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--directed", action="store_true", help="keep edges as they are listed")
    parser.add_argument("--parent", type=int, help="process whose end is this one's end, too")
    given = parser.parse_args()
    if given.parent is not None:
        end_with(given.parent)
    try:
        say(progress=0.0, message=f"reading {given.source.name}")
        graph = read(given.format, given.source, directed=given.directed)
        for notice in graph.notices:
            say(notice=notice)
        message = f"writing the arrays of {given.source.name}"
        write(graph, given.folder, lambda share: say(progress=share, message=message))
    except FormatError as error:
        for problem in error.problems:
            say(path=problem.path, description=problem.description)
        return BAD_SOURCE
    except MemoryError:
        say(path=given.source.name, description="does not fit into memory")
        return BAD_SOURCE
    except OSError as error:
        if error.filename is None:
            raise
        say(path=str(error.filename), description=f"cannot be read: {error.strerror}")
        return BAD_SOURCE
    return 0


if __name__ == "__main__":
    sys.exit(main())
