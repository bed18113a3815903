"""A graph as the files that the daemon's importer of arrays reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gnnd_formats.graph import Graph, Sparse, TypedGraph

#: Bytes that are written at once, so that progress is told and a mapped array need not fit.
BLOCK_BYTES = 1 << 26


def write(graph: Graph | TypedGraph, folder: Path, wrote: Callable[[float], None]) -> None:
    """Makes NAME.npy of each array, `links/NAME.npy`, `meta.json` and `names.txt`; of several types
    `types.json` and folders of arrays. `wrote` gets shares of 1."""
    if isinstance(graph, TypedGraph):
        (folder / "types.json").write_text(json.dumps(graph.counts), encoding="utf-8")
        parts = [("nodes", graph.nodes), ("edges", graph.edges)]
        _write_arrays(
            {
                f"{kind}/{owner}/{name}": array
                for kind, owners in parts
                for owner, arrays in owners.items()
                for name, array in arrays.items()
            },
            folder,
            wrote,
        )
        return
    links = {f"links/{name}": links for name, links in graph.links.items()}
    _write_arrays({**graph.arrays, **links}, folder, wrote)
    meta: dict[str, Any] = {"undirected": graph.undirected}
    facts: dict[str, Any] = {
        "task": graph.task,
        "class_names": graph.class_names,
        "feature_names": graph.feature_names,
        "num_nodes": graph.num_nodes,
    }
    if graph.class_names is not None:
        # Also those that no node has.
        facts["num_classes"] = len(graph.class_names)
    meta.update({name: value for name, value in facts.items() if value is not None})
    (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    if graph.node_names is not None:
        names = "".join(f"{name}\n" for name in graph.node_names)
        (folder / "names.txt").write_text(names, encoding="utf-8")


def _write_arrays(arrays: dict[str, Any], folder: Path, wrote: Callable[[float], None]) -> None:
    """`arrays` by paths without .npy."""
    total, done = max(1, sum(map(_bytes_of, arrays.values()))), 0
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        for count in _write_array(path, array):
            done += count
            wrote(min(1.0, done / total))
        path.chmod(0o440)  # It may become a file of the dataset by a link.


def _bytes_of(array: Any) -> int:
    return 4 * array.shape[0] * array.shape[1] if isinstance(array, Sparse) else array.nbytes


def _write_array(path: Path, array: Any) -> Any:
    """Writes rows by rows; yields how many bytes."""
    if isinstance(array, Sparse):
        shape, dtype, blocks = array.shape, np.dtype(np.float32), array.blocks()
    else:
        dtype = array.dtype.newbyteorder("<")
        shape, blocks = array.shape, _blocks(array, dtype)
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False}
        np.lib.format.write_array_header_2_0(file, {**header, "shape": tuple(map(int, shape))})
        for block in blocks:
            file.write(block.tobytes())
            yield block.nbytes


def _blocks(array: np.ndarray, dtype: np.dtype[Any]) -> Any:
    if array.ndim == 0:
        yield array.astype(dtype)
        return
    row_bytes = max(1, array.nbytes // max(1, len(array)))
    rows = max(1, BLOCK_BYTES // row_bytes)
    for start in range(0, len(array), rows):
        yield np.ascontiguousarray(array[start : start + rows], dtype)
