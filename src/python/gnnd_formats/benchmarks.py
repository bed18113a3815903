"""An .npz file of the citation and co-purchase benchmarks, or of the heterophilous ones.

Shchur et al. (Pitfalls of Graph Neural Network Evaluation, 2018) store sparse matrices by rows:
`adj_data`, `adj_indices`, `adj_indptr`, `adj_shape`, likewise `attr_…`, `labels`, and names.
Platonov et al. (A critical look at the evaluation of GNNs under heterophily, 2023) store
`node_features`, `node_labels`, `edges` [E, 2], each edge once, and `train_masks` [splits, N].
"""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gnnd_formats.data_pickles import load
from gnnd_formats.graph import FormatError, Graph, Problem, Sparse, made_undirected, rows_of


def read(path: Path, *, directed: bool = False) -> Graph:
    """The graph; edges are stored in both directions, as torch_geometric reads such files, unless
    `directed`. Numbers in names of columns and texts stay texts."""
    with open_archive(path) as arrays:
        names = set(arrays.files)
        if {"node_features", "node_labels", "edges"} <= names:
            return _heterophilous(arrays, directed)
        lacking = [name for name in ("adj_indptr", "adj_indices") if name not in names]
        if not lacking:
            return _citations(arrays, names, directed, path)
        has = ", ".join(sorted(names)) or "nothing"
        raise FormatError(Problem(path.name, f"lacks {' and '.join(lacking)}, it has {has}"))


def open_archive(path: Path) -> Any:
    """`numpy.load` of an .npz file; texts in it may be pickled, and are read by data alone."""
    try:
        arrays = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = str(error).split("\n")[0]
        raise FormatError(Problem(path.name, f"is no .npz file: {reason}")) from None
    if not hasattr(arrays, "files"):
        raise FormatError(Problem(path.name, "is one array: expected an .npz file"))
    return arrays


def _array(arrays: Any, name: str, path: Path) -> np.ndarray:
    """An array of the archive; texts as objects, which numpy pickles, are read as data alone."""
    try:
        return np.asarray(arrays[name])
    except ValueError:
        pass
    try:
        with arrays.zip.open(f"{name}.npy") as member:
            version = np.lib.format.read_magic(member)
            read_header = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
            read_header(member)
            return np.asarray(load(member))
    except (pickle.UnpicklingError, ValueError, EOFError) as error:
        raise FormatError(Problem(f"{path.name}/{name}", f"cannot be read: {error}")) from None


def _texts(arrays: Any, names: set[str], wanted: str, path: Path) -> list[str] | None:
    """Names for people, where the archive has them."""
    if wanted not in names:
        return None
    values = _array(arrays, wanted, path)
    if values.ndim != 1 or values.dtype.kind not in "USO":
        return None
    return [text.decode() if isinstance(text, bytes) else str(text) for text in values]


def _citations(arrays: Any, names: set[str], directed: bool, path: Path) -> Graph:
    indptr, targets = _array(arrays, "adj_indptr", path), _array(arrays, "adj_indices", path)
    num_nodes = len(indptr) - 1
    edges = np.stack([rows_of(indptr), targets.astype(np.int64)])
    graph = Graph({}, undirected=not directed)
    values = _array(arrays, "adj_data", path) if "adj_data" in names else None
    is_weighted = values is not None and not np.all(values == 1)
    if directed or (is_weighted and _is_symmetric(edges, values, num_nodes)):
        graph.arrays["edge_index"] = edges
        if is_weighted and values is not None:
            graph.arrays["edge_weights"] = values.astype(np.float32)
    else:
        graph.arrays["edge_index"] = made_undirected(edges, num_nodes, graph.notices)
        if is_weighted:
            graph.notices.append(
                "the weights of edges were left out, since edges were stored in both directions: "
                "directed keeps edges and weights as they are"
            )
    if "attr_matrix" in names:
        graph.arrays["features"] = _array(arrays, "attr_matrix", path)
    elif "attr_indptr" in names:
        parts = (f"attr_{part}" for part in ("indptr", "indices", "data", "shape"))
        starts, columns, entries, shape = (_array(arrays, part, path) for part in parts)
        graph.arrays["features"] = Sparse(starts, columns, entries, int(shape[1]))
    if "labels" in names:
        graph.arrays["labels"] = _array(arrays, "labels", path)
    graph.class_names = _texts(arrays, names, "class_names", path)
    graph.node_names = _unique(_texts(arrays, names, "node_names", path), num_nodes, graph.notices)
    graph.feature_names = _texts(arrays, names, "attr_names", path)
    _splits(arrays, names, graph.arrays)
    return graph


def _is_symmetric(edges: np.ndarray, values: Any, num_nodes: int) -> bool:
    forth = edges[0] * num_nodes + edges[1]
    back = edges[1] * num_nodes + edges[0]
    first, second = np.argsort(forth, kind="stable"), np.argsort(back, kind="stable")
    return bool(
        np.array_equal(forth[first], back[second]) and np.array_equal(values[first], values[second])
    )


def _unique(names: list[str] | None, num_nodes: int, notices: list[str]) -> list[str] | None:
    """Names of nodes as ids, where they are such."""
    if names is None or len(names) != num_nodes:
        return None
    if len(set(names)) < num_nodes or any("\n" in name or name == "" for name in names):
        notices.append("node_names are not unique, so nodes have no ids but their numbers")
        return None
    return names


def _splits(arrays: Any, names: set[str], found: dict[str, Any]) -> None:
    """Masks [N], or [splits, N] as the heterophilous benchmarks have them, with a column each."""
    for split in ("train", "val", "test"):
        for name in (f"{split}_mask", f"{split}_masks", f"{split}_idx"):
            if name in names:
                values = np.asarray(arrays[name])
                found[split] = values.T if name.endswith("masks") and values.ndim == 2 else values


def _heterophilous(arrays: Any, directed: bool) -> Graph:
    names = set(arrays.files)
    features = np.asarray(arrays["node_features"])
    edges = np.asarray(arrays["edges"], np.int64)
    edges = edges.T if edges.ndim == 2 and edges.shape[1] == 2 else edges
    graph = Graph({"features": features, "labels": np.asarray(arrays["node_labels"])})
    graph.undirected = not directed
    graph.arrays["edge_index"] = (
        edges if directed else made_undirected(edges, len(features), graph.notices)
    )
    _splits(arrays, names, graph.arrays)
    return graph
