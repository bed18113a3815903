"""Arrays as files that the daemon reads: written once, beside its own, and never sent."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
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
    disk is the same, else a copy. Others are written, once, in C order, and so are arrays that
    differ from the file that they were mapped from.
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
    """The .npy file whose bytes a mapped array is, all of them, in the form that the daemon reads.

    An array that was changed where its file was not (mode "c") has no such file, nor has one whose
    name is another file's by now. What is written through a shared map (modes "r+" and "w+") is in
    its file at once, for all who read it by its name; a flush brings it to the disk as well.
    """
    if not isinstance(array, np.memmap) or array.filename is None:
        return None
    is_same_memory = array.mode in ("r", "r+", "w+")
    if not is_same_memory or not array.flags.c_contiguous or array.dtype.byteorder == ">":
        return None
    path = str(array.filename)
    if not _is_whole(array, path):
        return None
    if array.mode != "r":
        array.flush()
    return path


def _is_whole(array: np.memmap, path: str) -> bool:
    """Whether what `path` names now is the file that is mapped, and the array all of it."""
    try:
        about = os.stat(path)
        if _mapped_inode(array) != about.st_ino:
            return False
        if about.st_size < array.offset + array.nbytes:
            raise GnndError(
                f"{path} was cut to {about.st_size:,} bytes after it was mapped: expected "
                f"{array.offset + array.nbytes:,}; numpy.load reads it anew"
            )
        whole = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return False
    is_same = whole.shape == array.shape and whole.dtype == array.dtype
    return bool(is_same and whole.offset == array.offset and whole.flags.c_contiguous)


def _mapped_inode(array: np.memmap) -> int | None:
    """Of the file that an array's first byte is mapped from, whatever has its name by now.

    None where the host does not tell: then the array is written anew, which is always right.
    """
    address = array.ctypes.data
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                span, _, _, _, inode, *_ = line.split()
                start, end = (int(bound, 16) for bound in span.split("-"))
                if start <= address < end:
                    return int(inode)
    except (OSError, ValueError):
        pass
    return None


def put_links(folder: Path, links: Mapping[str, Any]) -> None:
    """Makes `links/NAME.npy` of each array, where there are some."""
    if not links:
        return
    inner = folder / "links"
    inner.mkdir()
    inner.chmod(0o755)
    for name, array in links.items():
        put_array(inner, name, array)


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
