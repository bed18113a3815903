"""Graphs of several types of nodes and relations, as the folder that the daemon reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import gnnd_formats
from gnnd import staging
from gnnd.errors import Violation, wrong
from gnnd.parts import Parts
from gnnd.words import advice

#: Options of an import that graphs of several types have a use for.
OPTIONS = ("feature_dtype", "task", "random_split", "reverse", "staging", "progress")
#: What a type has, and what torch_geometric calls it.
_NODES = {
    "features": ("x",),
    "labels": ("y",),
    "train": ("train_mask", "train_idx"),
    "val": ("val_mask", "val_idx", "valid_mask", "valid_idx"),
    "test": ("test_mask", "test_idx"),
}
#: Of edges, which would be lost.
_NOT_YET = ("edge_weight", "time", "edge_time")


@dataclass
class TypedGraph:
    """Arrays by the names of docs/datasets.md, by type and by SOURCE__RELATION__DESTINATION."""

    #: How many nodes each type has.
    counts: dict[str, int]
    nodes: dict[str, dict[str, np.ndarray]]
    #: `pairs` [2, E], or `indptr` and `indices` of rows.
    edges: dict[str, dict[str, np.ndarray]]
    #: Of types whose labels were texts.
    class_names: dict[str, list[str]] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    def put(self, folder: Path) -> None:
        """Writes it into an empty folder that the daemon may read."""
        staging.put_text(folder, "types.json", json.dumps(self.counts))
        for kind, parts in (("nodes", self.nodes), ("edges", self.edges)):
            for name, arrays in parts.items():
                inner = folder / kind / name
                inner.mkdir(parents=True)
                for each in (inner.parent, inner):
                    each.chmod(0o755)
                for array, values in arrays.items():
                    staging.put_array(inner, array, values)
        for name, classes in self.class_names.items():
            meta = {"class_names": classes, "num_classes": len(classes)}
            staging.put_text(folder / "nodes" / name, "meta.json", json.dumps(meta))


def graph_in(data: Any) -> Any:
    """The `HeteroData` with several types that it is, or that a dataset holds alone; or None."""
    if hasattr(data, "node_types") and hasattr(data, "edge_types"):
        has_both = len(data.node_types) > 0 and len(data.edge_types) > 0
        return data if has_both and len(data.node_types) + len(data.edge_types) > 2 else None
    is_array = hasattr(data, "detach") or isinstance(data, (Mapping, np.ndarray))
    if is_array or not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
        return None
    return graph_in(data[0]) if len(data) == 1 else None


def from_hetero(data: Any, options: Iterable[str]) -> TypedGraph:
    """Of a `torch_geometric.data.HeteroData`; says all that is wrong at once."""
    wrongs = _wrong_options(options)
    graph = TypedGraph({}, {}, {})
    for name in data.node_types:
        store = data[name]
        count = store.num_nodes
        if count is None:
            wrongs.append(Violation(name, "nobody knows how many nodes it has: set num_nodes"))
            continue
        graph.counts[name] = int(count)
        found = _parts(store, _NODES, name, wrongs)
        if found.arrays:
            graph.nodes[name] = found.arrays
        if found.class_names is not None:
            graph.class_names[name] = found.class_names
    for relation in data.edge_types:
        text = "__".join(relation)
        store = data[relation]
        for lost in _NOT_YET:
            if getattr(store, lost, None) is not None:
                what = f"has {lost}, and several types take edges alone so far"
                wrongs.append(Violation(text, f"{what}; del data[{relation}].{lost} first"))
        if getattr(store, "edge_attr", None) is not None:
            graph.notices.append(f"{text}: edge_attr is not used")
        edges = _edges(store, text, wrongs)
        if edges:
            graph.edges[text] = edges
    if wrongs:
        raise wrong("import_pyg()", *wrongs)
    return graph


def from_file(found: gnnd_formats.TypedGraph, options: Iterable[str]) -> TypedGraph:
    """Of a file that a reader of ours has read."""
    wrongs = _wrong_options(options)
    graph = TypedGraph(found.counts, {}, {}, notices=list(found.notices))
    for owner, arrays in found.nodes.items():
        own = {key: (key,) for key in arrays}
        graph.nodes[owner] = _parts(SimpleNamespace(**arrays), own, owner, wrongs).arrays
    for relation, arrays in found.edges.items():
        called = {"pairs" if key == "edge_index" else key: (key,) for key in arrays}
        edges = _parts(SimpleNamespace(**arrays), called, relation, wrongs)
        graph.edges[relation] = edges.arrays
    if wrongs:
        raise wrong("import_pyg()", *wrongs)
    return graph


def _wrong_options(options: Iterable[str]) -> list[Violation]:
    wrongs: list[Violation] = []
    for option in options:
        if option not in OPTIONS:
            near = advice(option, OPTIONS) or f"; there are {', '.join(OPTIONS)}"
            wrongs.append(Violation(option, f"is not for graphs of several types{near}"))
    return wrongs


def _parts(
    store: Any, named: Mapping[str, tuple[str, ...]], owner: str, wrongs: list[Violation]
) -> Parts:
    """Arrays of a store under our names, as far as it has them."""
    parts = Parts()
    for key, names in named.items():
        name = next((each for each in names if getattr(store, each, None) is not None), None)
        if name is None:
            continue
        before = len(parts.wrongs)
        parts.put(key, getattr(store, name))
        for refused in parts.wrongs[before:]:
            wrongs.append(Violation(f"{owner}.{name}", refused.description))
    return parts


def _edges(store: Any, text: str, wrongs: list[Violation]) -> dict[str, np.ndarray]:
    if getattr(store, "edge_index", None) is not None:
        return _parts(store, {"pairs": ("edge_index",)}, text, wrongs).arrays
    matrix = getattr(store, "adj_t", None)
    if matrix is None:
        wrongs.append(Violation(text, "has no edge_index"))
        return {}
    # Row v of the transposed adjacency lists what v learns from.
    rows = matrix.csr() if hasattr(matrix, "csr") else _rows(matrix)
    parts = Parts()
    parts.put("indptr", rows[0])
    parts.put("indices", rows[1])
    return parts.arrays


def _rows(matrix: Any) -> tuple[Any, Any]:
    found = matrix.to_sparse_csr()
    return found.crow_indices(), found.col_indices()
