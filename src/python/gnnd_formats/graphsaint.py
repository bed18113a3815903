"""A folder of GraphSAINT (Zeng et al. 2020): `adj_full.npz`, `feats.npy`, `class_map.json`,
`role.json`.

`adj_full.npz` is a matrix as `scipy.sparse.save_npz` writes it: row u lists the neighbours of u.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gnnd_formats.benchmarks import open_archive
from gnnd_formats.graph import FormatError, Graph, Problem, rows_of

FILES = ("adj_full.npz", "feats.npy", "class_map.json", "role.json")
_SPLITS = {"train": "tr", "val": "va", "test": "te"}


def read(path: Path, *, directed: bool = False) -> Graph:
    """The graph; edges are taken as they are listed, row u to column v as u → v."""
    missing = [name for name in FILES if not (path / name).exists()]
    if missing:
        raise FormatError(*(Problem(name, f"is missing in {path.name}") for name in missing))
    with open_archive(path / "adj_full.npz") as arrays:
        if not {"indptr", "indices"} <= set(arrays.files):
            has = ", ".join(arrays.files)
            text = f"is no matrix of scipy.sparse.save_npz by rows: it has {has}"
            raise FormatError(Problem("adj_full.npz", text))
        indptr, indices = arrays["indptr"], arrays["indices"]
    features = np.load(path / "feats.npy", mmap_mode="r")
    roles = read_json(path / "role.json")
    return Graph(
        {
            "features": features,
            "labels": labels_of(read_json(path / "class_map.json"), len(features)),
            "edge_index": np.stack([rows_of(indptr), indices.astype(np.int64)]),
            **{split: np.array(roles.get(role, []), np.int64) for split, role in _SPLITS.items()},
        }
    )


def read_json(file: Path) -> Any:
    """The JSON of a file. Raises `FormatError` where it is none."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise FormatError(Problem(file.name, f"is no JSON: {error}")) from None


def labels_of(classes: Any, num_nodes: int, number: dict[str, int] | None = None) -> np.ndarray:
    """Labels [N], or [N, C] of lists; `classes` has them by the node's number, or by what `number`
    has as such."""
    wrong = []
    first = next(iter(classes.values()), 0) if isinstance(classes, dict) else None
    if first is None or isinstance(classes, list):
        raise FormatError(Problem("class_map.json", "expected an object: a node's class by its id"))
    width = len(first) if isinstance(first, list) else None
    labels = np.full(num_nodes if width is None else (num_nodes, width), -1, np.float64)
    for node, label in classes.items():
        at = (number or {}).get(node) if number is not None else int(node)
        if at is None or not 0 <= at < num_nodes:
            wrong.append(Problem("class_map.json", f"has the node {node}, which has no features"))
            continue
        size = len(label) if isinstance(label, list) else None
        if size != width:
            text = f"has labels of different lengths: node {node} has {label}"
            wrong.append(Problem("class_map.json", text))
            continue
        labels[at] = label
    if wrong:
        raise FormatError(*wrong[:20])
    is_whole = bool(np.all(labels == np.floor(labels)))
    return labels.astype(np.int64) if is_whole else labels
