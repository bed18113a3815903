"""Makes Python's messages and stubs of all protos: `stubs.py FOLDER` writes FOLDER/gnnd/v1.

Set-up runs this, and so does the build of a wheel. The version of grpc_tools decides which grpcio
and protobuf can read what is made, so both have the one that src/python/pyproject.toml names.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

PROTOS = Path(__file__).resolve().parent


def protoc(*args: object) -> None:
    """Runs the compiler in a process of its own, as its command line is."""
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", *map(str, args)]
    subprocess.run(command, check=True)


def make(folder: Path) -> None:
    """Fills folder/gnnd/v1, which is empty."""
    made = folder / "gnnd" / "v1"
    made.mkdir(parents=True)
    paths = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.glob("gnnd/v1/*.proto"))
    protoc(f"--python_out={folder}", f"--pyi_out={folder}", *paths)
    services = [path for path in paths if path.endswith("_service.proto")]
    protoc(f"--grpc_python_out={folder}", *services)
    # Details of errors are data: modules of their names belong to another package.
    details = ["google/rpc/status.proto", "google/rpc/error_details.proto"]
    protoc("--include_imports", f"--descriptor_set_out={made / 'error_details.binpb'}", *details)


def replace(old: Path, new: Path) -> None:
    """Makes the files of `old` those of `new`; who reads one that did not change sees no change."""
    old.mkdir(parents=True, exist_ok=True)
    for path in old.iterdir():
        if path.is_file() and not (new / path.name).exists():
            path.unlink()
    for path in new.iterdir():
        target = old / path.name
        if not target.exists() or target.read_bytes() != path.read_bytes():
            target.write_bytes(path.read_bytes())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        make(Path(scratch))
        replace(Path(sys.argv[1]) / "gnnd" / "v1", Path(scratch) / "gnnd" / "v1")
