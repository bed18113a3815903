"""What the build of the package does beside copying: it makes `gnnd/v1` from the clone's protos.

`npm run wheel` (deploy/wheel.mjs) names a folder in GNND_WHEEL: compiled files, which become
`gnnd_daemon`, and what the wheel's metadata says of them.
"""

import json
import os
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
        staged = os.environ.get("GNND_WHEEL")
        if staged and self.target_name == "wheel":
            self._add_daemon(Path(staged), build_data)

    def _add_daemon(self, staged: Path, build_data: dict[str, Any]) -> None:
        about = json.loads((staged / "wheel.json").read_text())
        build_data["pure_python"] = False
        build_data["tag"] = about["tag"]
        build_data["dependencies"] += about["dependencies"]
        build_data["force_include"][str(staged / "gnnd_daemon")] = "gnnd_daemon"
        for path in (Path(self.root) / "gnnd_daemon").glob("*.py"):
            build_data["force_include"][str(path)] = f"gnnd_daemon/{path.name}"
        for path in (staged / "share").rglob("*.*"):
            build_data["shared_data"][str(path)] = str(path.relative_to(staged))
        for path in (staged / "scripts").iterdir():
            build_data["shared_scripts"][str(path)] = path.name
