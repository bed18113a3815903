"""Graphs in files, read here: by `gnnd_formats` as data alone, or by what the caller trusts."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gnnd_formats
from gnnd.errors import ImportFailed, Violation, missing, wrong
from gnnd.words import shown
from gnnd_formats import torch_files

_CALL = "import_scipy()"


def graph_in(format: str, path: str | os.PathLike[str], directed: bool = False) -> Any:
    """The `gnnd_formats.Graph` of a file or folder. No code of it runs."""
    try:
        with reading(path):
            return gnnd_formats.read(format, path, directed=directed)
    except gnnd_formats.FormatError as error:
        raise _failed(error) from None


def torch_graph(path: str | os.PathLike[str], *, trust: bool = False) -> Any:
    """The graph of a file of `torch.save`, or of a dataset's folder of torch_geometric.

    A `gnnd_formats.Graph`; with `trust` the object itself, for which the file's code is run.
    """
    try:
        import torch
    except ImportError:
        raise missing("torch", "pyg", "import_pyg of a file") from None
    if not trust:
        return graph_in("PYG", path)
    try:
        file = torch_files.file_of(Path(path))
        with reading(file):
            loaded = torch.load(file, map_location="cpu", weights_only=False)
    except gnnd_formats.FormatError as error:
        raise _failed(error) from None
    except (RuntimeError, pickle.UnpicklingError, EOFError) as error:
        text = f"is no whole file of torch.save: {_first_line(error)}"
        raise ImportFailed(
            "a file cannot be read", violations=[Violation(str(path), text)]
        ) from None
    return _graph_of(loaded)


def _graph_of(loaded: Any) -> Any:
    """Of (data, slices, …) as datasets save them, of a graph, or of tensors by name."""
    graph = loaded
    if isinstance(loaded, tuple) and loaded:
        graph, slices = loaded[0], loaded[1] if len(loaded) > 1 else None
        several = max((len(ends) - 1 for ends in (slices or {}).values()), default=1)
        if several > 1:
            text = f"the file holds {several} graphs: gnnd learns from one"
            raise wrong("import_pyg()", Violation("data", text))
    return SimpleNamespace(**graph) if isinstance(graph, Mapping) else graph


def networkx_graph(path: str | os.PathLike[str]) -> Any:
    """The networkx graph of a .gml, .graphml, .gexf or .json file."""
    from gnnd_formats import networkx_files

    try:
        with reading(path):
            return networkx_files.load(Path(path))
    except gnnd_formats.FormatError as error:
        raise _failed(error) from None


def scipy_matrix(path: str | os.PathLike[str]) -> Any:
    """The sparse matrix of a .npz file of `scipy.sparse.save_npz`, or of a Matrix Market file."""
    name = os.fspath(path)
    is_market = re.search(r"\.mtx(\.gz|\.bz2)?$", str(name)) is not None
    if not is_market and not str(name).endswith(".npz"):
        text = f"{shown(name)}: expected a sparse matrix, or the path of a .npz or .mtx file"
        raise wrong(_CALL, Violation("adjacency", text))
    try:
        import scipy.io
        import scipy.sparse
    except ImportError:
        raise missing("scipy", "", "import_scipy of a file") from None
    read = scipy.io.mmread if is_market else scipy.sparse.load_npz
    try:
        with reading(path):
            open(path, "rb").close()
            return read(name)
    except (ValueError, KeyError, TypeError, EOFError) as error:
        text = (
            f"{os.path.basename(name)} is no sparse matrix that scipy reads: {_first_line(error)}"
        )
        raise wrong(_CALL, Violation("adjacency", text)) from None


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Says of a file that cannot be read which one it is, and where it was looked for."""
    try:
        yield
    except OSError as error:
        where = f" (from {os.getcwd()})" if not os.path.isabs(path) else ""
        if isinstance(error, FileNotFoundError):
            why = "there is no such file"
        else:
            why = error.strerror or _first_line(error)
        raise ImportFailed(
            "a file cannot be read", violations=[Violation(os.fspath(path), f"{why}{where}")]
        ) from None


def _failed(error: gnnd_formats.FormatError) -> ImportFailed:
    found = []
    for problem in error.problems:
        is_code = "which is no data" in problem.description
        more = ", or trust=True, which runs whatever code the file has" if is_code else ""
        found.append(Violation(problem.path, f"{problem.description}{more}"))
    return ImportFailed("a file cannot be read", violations=found)


def _first_line(error: Exception) -> str:
    """Without the colours that PyTorch gives its errors."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().split("\n")[0].strip()
