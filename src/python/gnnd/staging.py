"""Arrays as files that the daemon reads: written once, beside its own, and never sent."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gnnd.errors import GnndError


@contextmanager
def staging_folder(parent: str | os.PathLike[str] | None, state_dir: str) -> Iterator[Path]:
    """A folder that is gone afterwards: in `parent`, else beside the daemon's state directory.

    There a hard link makes an imported array of a written one. Where nobody may write beside the
    state directory it is the system's folder for temporary files.
    """
    wanted = Path(parent) if parent is not None else Path(state_dir).parent
    if parent is None and not os.access(wanted, os.W_OK | os.X_OK):
        wanted = Path(tempfile.gettempdir())
    folder = Path(tempfile.mkdtemp(prefix="gnnd-arrays-", dir=wanted)).resolve()
    try:
        folder.chmod(0o755)  # The daemon may be another user.
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def may_link(folder: Path, state_dir: str) -> bool:
    """Whether the daemon can make hard links of files in `folder`: same disk and same user."""
    try:
        state = os.stat(state_dir)
    except OSError:
        return False
    return state.st_dev == folder.stat().st_dev and state.st_uid == os.geteuid()


def put_array(folder: Path, name: str, array: Any) -> bool:
    """Makes `NAME.npy` of an array; True where that is the caller's own file, linked.

    An array that `numpy.load(..., mmap_mode="r")` gave is its file already: a hard link where the
    disk is the same, else a copy. Others are written, once, in C order.
    """
    path = folder / f"{name}.npy"
    source = _whole_file(array)
    if source is not None:
        try:
            os.link(source, path)
            return True
        except OSError:
            shutil.copyfile(source, path)
            return False
    values = np.asarray(array)
    if values.dtype.byteorder == ">":
        values = values.astype(values.dtype.newbyteorder("<"))
    with open(path, "wb") as file:
        np.save(file, np.ascontiguousarray(values), allow_pickle=False)
    path.chmod(0o644)
    return False


def _whole_file(array: Any) -> str | None:
    """The .npy file that a mapped array is all of, in the form that the daemon reads."""
    if not isinstance(array, np.memmap) or array.filename is None:
        return None
    if not array.flags.c_contiguous or array.dtype.byteorder == ">":
        return None
    try:
        whole = np.load(array.filename, mmap_mode="r")
    except (OSError, ValueError):
        return None
    same = whole.shape == array.shape and whole.dtype == array.dtype
    is_start = same and whole.offset == array.offset
    return str(array.filename) if is_start else None


def put_text(folder: Path, name: str, text: str) -> None:
    """A file of text that the daemon may read."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)


def require_shared(is_shared: bool, staging: str | os.PathLike[str] | None) -> None:
    """Arrays reach a daemon on another host through a folder that both see."""
    if is_shared or staging is not None:
        return
    raise GnndError(
        "the daemon is on another host: name a folder that both hosts see under the same path, "
        "staging='/shared/folder'"
    )
