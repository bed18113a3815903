"""Graphs in files that only Python reads."""

from __future__ import annotations

import os
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from gnnd.errors import GnndError, ImportFailed, Violation, missing

#: What torch_geometric and the package of OGB call the file of a dataset in its `processed`.
PROCESSED = ("data.pt", "geometric_data_processed.pt")


def torch_graph(path: str | os.PathLike[str], *, trust: bool = False) -> Any:
    """The graph of a file of `torch.save`, or of a dataset's folder of torch_geometric.

    Tensors are mapped, not read. Without `trust` nothing but tensors, plain values and
    torch_geometric's graphs is loaded, so that no code of the file runs.
    """
    try:
        import torch
    except ImportError:
        raise missing("torch", "pyg", "import_pyg of a file") from None
    file = _file_of(Path(path))
    try:
        with reading(file), nullcontext() if trust else _only_graphs(torch):
            loaded = torch.load(file, map_location="cpu", mmap=True, weights_only=not trust)
    except pickle.UnpicklingError as error:
        raise GnndError(
            f"{file} holds more than tensors and a graph ({_first_line(error)}): trust=True loads "
            "it, which runs whatever code the file has"
        ) from None
    except RuntimeError as error:
        raise GnndError(f"{file} is no whole file of torch.save: {_first_line(error)}") from None
    return _graph_of(loaded, file)


def _file_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    places = [folder / name for folder in (path, path / "processed") for name in PROCESSED]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise GnndError(f"{path} has no {' or '.join(PROCESSED)}, nor has a folder processed in it")
    return found


def _only_graphs(torch: Any) -> AbstractContextManager[Any]:
    """Lets `weights_only` pass torch_geometric's graphs, where it is installed."""
    try:
        from torch_geometric.data import data, hetero_data, storage
    except ImportError:
        return nullcontext()
    kinds = [data.Data, data.DataEdgeAttr, data.DataTensorAttr, storage.GlobalStorage]
    kinds += [hetero_data.HeteroData, storage.BaseStorage, storage.NodeStorage, storage.EdgeStorage]
    allowed: AbstractContextManager[Any] = torch.serialization.safe_globals(kinds)
    return allowed


def _graph_of(loaded: Any, file: Path) -> Any:
    """Of (data, slices, …) as datasets save them, of a graph, or of tensors by name."""
    graph = loaded
    if isinstance(loaded, tuple):
        graph, slices = loaded[0], loaded[1] if len(loaded) > 1 else None
        several = max((len(ends) - 1 for ends in (slices or {}).values()), default=1)
        if several > 1:
            raise GnndError(f"{file} holds {several} graphs: gnnd learns from one")
    if isinstance(graph, Mapping):
        graph = SimpleNamespace(**graph)
    # Of several types, too: what is wrong with those import_pyg says.
    if not any(hasattr(graph, name) for name in ("edge_index", "adj_t", "edge_types")):
        raise GnndError(f"{file} holds a {type(loaded).__name__} without edge_index or adj_t")
    return graph


def sparse_graph(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of an .npz file with a sparse adjacency, as benchmarks of citations come.

    `adj_data`, `adj_indices`, `adj_indptr` are rows of targets of each source; features are
    `attr_matrix` or, sparse, `attr_data` and so on.
    """
    with reading(path), _archive(path) as arrays:
        names = set(arrays.files)
        lacking = [name for name in ("adj_indptr", "adj_indices") if name not in names]
        if lacking:
            has = ", ".join(sorted(names))
            raise GnndError(f"{os.fspath(path)} lacks {' and '.join(lacking)}, it has {has}")
        indptr, targets = arrays["adj_indptr"], arrays["adj_indices"]
        sources = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        found = {"edge_index": np.stack([sources, targets])}
        values = arrays["adj_data"] if "adj_data" in names else None
        if values is not None and not np.all(values == 1):
            found["edge_weights"] = values.astype(np.float32)
        if "labels" in names:
            found["labels"] = arrays["labels"]
        if "attr_matrix" in names:
            found["features"] = arrays["attr_matrix"]
        elif "attr_indptr" in names:
            found["features"] = _dense(arrays)
    return found


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


def _archive(path: str | os.PathLike[str]) -> Any:
    try:
        arrays = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise GnndError(f"{os.fspath(path)} is no .npz file: {_first_line(error)}") from None
    if not hasattr(arrays, "files"):
        raise GnndError(f"{os.fspath(path)} is one array: expected an .npz file")
    return arrays


def _dense(arrays: Any) -> np.ndarray:
    """Of rows that are sparse."""
    indptr, columns = arrays["attr_indptr"], arrays["attr_indices"]
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    dense = np.zeros(tuple(arrays["attr_shape"]), np.float32)
    dense[rows, columns] = arrays["attr_data"]
    return dense


def _first_line(error: Exception) -> str:
    """Without the colours that PyTorch gives its errors."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().split("\n")[0].strip()
