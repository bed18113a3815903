"""What the build of the package does beside copying: it makes `gnnd/v1` from the clone's protos."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MessagesBuildHook(BuildHookInterface[Any]):
    """Makes messages and stubs anew; an sdist, which has no protos, brings those of its own."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are collected, of an editable install too."""
        stubs = Path(self.root).parents[1] / "proto" / "stubs.py"
        if stubs.exists():
            subprocess.run([sys.executable, str(stubs), self.root], check=True)
