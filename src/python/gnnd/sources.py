"""Graphs of other libraries as the arrays that gnnd imports. None of these is imported here."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gnnd.errors import GnndError, Violation, wrong
from gnnd.words import advice, one_of, shown

#: Options of imports that are not parts of the graph.
FILE_OPTIONS = {"feature_dtype", "link", "staging", "progress", "task", "split"}
ARRAYS = (
    *("features", "labels", "train", "val", "test"),
    *("edge_index", "indptr", "indices", "edge_weights"),
)


@dataclass
class Graph:
    """Arrays by the names of docs/datasets.md, and what people call nodes and classes."""

    arrays: dict[str, Any]
    class_names: list[str] | None = None
    node_names: list[str] | None = None
    undirected: bool = False
    #: What the source says is learnt of a node.
    task: str | None = None

    def texts(self) -> dict[str, str]:
        """Files beside the arrays."""
        meta: dict[str, Any] = {"undirected": self.undirected}
        if self.task is not None:
            meta["task"] = self.task
        if self.class_names is not None:
            meta["class_names"] = [str(name) for name in self.class_names]
        texts = {"meta.json": json.dumps(meta)}
        if self.node_names is not None:
            texts["names.txt"] = "".join(f"{name}\n" for name in self.node_names)
        return texts


def as_array(values: Any) -> Any:
    """A numpy array over the same memory where there is one: of torch tensors, too."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":
            values = values.float()
        return values.numpy()
    return np.asarray(values)


def _graph(
    found: Mapping[str, Any],
    options: Mapping[str, Any],
    what: str,
    named: Mapping[str, str] | None = None,
    there: Iterable[str] = (),
) -> Graph:
    """What a source has, with the caller's own arrays above it; says all that is wrong at once.

    `named` is what the source should call arrays, and `there` what it does have, for its people.
    """
    more = {"class_names", "node_names", "undirected"}
    known = [*ARRAYS, *sorted(more | FILE_OPTIONS)]
    unknown = [key for key in options if key not in known]
    wrongs = [
        Violation(key, f"there is no such option of an import{advice(key, known)}")
        for key in unknown
    ]
    both = {**found, **{key: value for key, value in options.items() if value is not None}}
    arrays = {key: as_array(both[key]) for key in ARRAYS if both.get(key) is not None}
    for key, array in arrays.items():
        if array.dtype.kind in "OUS":
            how = "; classes are numbers, class_names=[…] names them" if key == "labels" else ""
            wrongs.append(Violation(key, f"they are of type {array.dtype}: expected numbers{how}"))
    for key in ("features", "labels", "train", "val"):
        if key not in arrays:
            name = (named or {}).get(key, key)
            near = advice(name, there)
            wrongs.append(Violation(key, f"{what} has no {name}, give it as {key}=…{near}"))
    for at, node in enumerate(both.get("node_names") or []):
        if "\n" in str(node):
            text = f"{shown(node)}: expected a text without line breaks"
            wrongs.append(Violation(f"node_names[{at}]", text))
    if wrongs:
        raise wrong("an import", *wrongs)
    return Graph(arrays, **{key: both[key] for key in more if key in both})


def from_arrays(options: Mapping[str, Any]) -> Graph:
    """Of nothing but the caller's own arrays."""
    return _graph({}, options, "it")


def _first(get: Callable[[str], Any], *names: str) -> Any:
    return next((value for name in names if (value := get(name)) is not None), None)


def from_pyg(data: Any, options: Mapping[str, Any]) -> Graph:
    """Of `torch_geometric.data.Data`, or a dataset with one graph."""
    if not hasattr(data, "edge_index") and hasattr(data, "__getitem__") and len(data) == 1:
        data = data[0]
    if hasattr(data, "node_types"):
        raise GnndError(
            "the data have several types of nodes or edges, which gnnd does not learn from: "
            "data.to_homogeneous() makes one graph"
        )

    def get(name: str) -> Any:
        return getattr(data, name, None)

    found = {
        "features": get("x"),
        "labels": get("y"),
        "train": _first(get, "train_mask", "train_idx"),
        "val": _first(get, "val_mask", "val_idx", "valid_idx"),
        "test": _first(get, "test_mask", "test_idx"),
        "edge_weights": get("edge_weight"),
    }
    if get("edge_attr") is not None:
        warnings.warn(
            "edge_attr is not used: models here read no edge features, but one edge_weight an edge",
            stacklevel=4,
        )
    if get("edge_index") is not None:
        found["edge_index"] = data.edge_index
    elif get("adj_t") is not None:
        # Row v of the transposed adjacency lists what v learns from.
        found["indptr"], found["indices"], weights = _csr(data.adj_t)
        found["edge_weights"] = weights if weights is not None else found["edge_weights"]
    names = {"features": "x", "labels": "y", "train": "train_mask", "val": "val_mask"}
    return _graph(found, options, "the data", names, _attributes(data))


def _attributes(data: Any) -> list[str]:
    """Of torch_geometric's `Data`, whose `keys` was a property before it was a method."""
    keys = getattr(data, "keys", None)
    return [str(key) for key in (keys() if callable(keys) else keys or vars(data))]


def from_sparse(found: Mapping[str, Any], options: Mapping[str, Any]) -> Graph:
    """Of the arrays of `saved.sparse_graph`."""
    return _graph(found, options, "the file")


def _csr(matrix: Any) -> tuple[Any, Any, Any]:
    """Of a `torch_sparse.SparseTensor` or a sparse CSR tensor of torch."""
    if hasattr(matrix, "csr"):
        indptr, indices, weights = matrix.csr()
        return indptr, indices, weights
    rows = matrix.to_sparse_csr()
    values = np.asarray(rows.values())
    weights = None if np.all(values == 1) else values.astype(np.float32, copy=False)
    return rows.crow_indices(), rows.col_indices(), weights


def from_scipy(adjacency: Any, options: Mapping[str, Any]) -> Graph:
    """Of a sparse matrix or array: columns list in-neighbours."""
    rows, columns = adjacency.shape
    if rows != columns:
        raise GnndError(f"the adjacency is {rows} by {columns}: expected as many rows as columns")
    matrix = adjacency.tocsc()
    found: dict[str, Any] = {"indptr": matrix.indptr, "indices": matrix.indices}
    if matrix.data.size > 0 and not np.all(matrix.data == 1):
        found["edge_weights"] = matrix.data.astype(np.float32, copy=False)
    return _graph(found, options, "the adjacency")


def from_networkx(graph: Any, options: Mapping[str, Any]) -> Graph:
    """Of any networkx graph without parallel edges."""
    nodes = list(graph.nodes)
    number = {node: index for index, node in enumerate(nodes)}
    rest = {key: value for key, value in options.items() if key not in {"split", "weight"}}
    weight = options.get("weight")
    edges = list(graph.edges(data=weight)) if weight is not None else list(graph.edges())
    ends = np.array([[number[u] for u, *_ in edges], [number[v] for _, v, *_ in edges]], np.int64)
    weights = None if weight is None else np.array([w for *_, w in edges], np.float32)
    if not graph.is_directed():
        loops = ends[0] == ends[1]
        ends = np.concatenate([ends, ends[::-1, ~loops]], axis=1)
        weights = None if weights is None else np.concatenate([weights, weights[~loops]])
        rest.setdefault("undirected", True)

    def attribute(name: Any) -> list[Any]:
        found = [graph.nodes[node].get(name) for node in nodes]
        if nodes and all(value is None for value in found):
            there = sorted({str(key) for node in nodes for key in graph.nodes[node]})
            text = f"no node has that attribute; there are: {', '.join(there) or 'none'}"
            raise wrong("an import", Violation(str(name), f"{text}{advice(name, there)}"))
        return found

    found: dict[str, Any] = {
        "edge_index": ends.reshape(2, -1),
        "edge_weights": weights,
        "node_names": [str(node) for node in nodes],
    }
    if isinstance(rest.get("features"), str):
        found["features"] = np.array(attribute(rest.pop("features")), np.float32)
    if isinstance(rest.get("labels"), str):
        found["labels"], found["class_names"] = classes_of(attribute(rest.pop("labels")))
    if options.get("split") is not None:
        found.update(splits_of(attribute(options["split"])))
    return _graph(found, rest, "the graph")


def classes_of(values: list[Any]) -> tuple[Any, list[str] | None]:
    """Labels as numbers, -1 for None; texts become classes in their order, NaN is None of others.

    Lists, of several labels or targets a node, become rows.
    """
    names = sorted({value for value in values if isinstance(value, str)})
    width = next((len(value) for value in values if isinstance(value, (list, tuple))), None)
    if width is not None:
        rows = [[None] * width if value is None else value for value in values]
        return np.array(rows, np.float64), None
    if not names:
        if any(isinstance(value, float) for value in values):
            return np.array(values, np.float64), None
        return np.array([-1 if value is None else value for value in values], np.int64), None
    number = {name: index for index, name in enumerate(names)}
    return np.array([-1 if value is None else number[value] for value in values], np.int64), names


def splits_of(values: list[Any]) -> dict[str, Any]:
    """Node ids by the texts train, val and test."""
    known = {"train": "train", "val": "val", "valid": "val", "test": "test"}
    unknown = sorted({str(value) for value in values if value and value not in known})
    if unknown:
        texts = (one_of(value, ("None", "train", "val", "test")) for value in unknown)
        raise wrong("an import", *(Violation("split", text) for text in texts))
    splits = np.array([known[value] if value else "" for value in values])
    return {name: np.flatnonzero(splits == name) for name in ("train", "val", "test")}


def from_dgl(graph: Any, options: Mapping[str, Any]) -> Graph:
    """Of a `dgl.DGLGraph` with one type of nodes and edges."""
    if len(graph.ntypes) != 1 or len(graph.etypes) != 1:
        raise GnndError(
            "the graph has several types of nodes or edges, which gnnd does not learn from: "
            "dgl.to_homogeneous makes one graph"
        )
    data, edge_data = graph.ndata, graph.edata
    sources, targets = graph.edges(order="eid")
    found = {
        "edge_index": np.stack([as_array(sources), as_array(targets)]),
        "features": _first(data.get, "feat", "features", "x"),
        "labels": _first(data.get, "label", "labels", "y"),
        "train": data.get("train_mask"),
        "val": data.get("val_mask"),
        "test": data.get("test_mask"),
        "edge_weights": _first(edge_data.get, "weight", "w"),
    }
    names = {"features": "feat", "labels": "label", "train": "train_mask", "val": "val_mask"}
    return _graph(found, options, "the graph's ndata", names, data.keys())


def from_ogb(dataset: Any, options: Mapping[str, Any]) -> Graph:
    """Of `ogb.nodeproppred.NodePropPredDataset`: one homogeneous graph."""
    if not hasattr(dataset, "get_idx_split"):
        raise GnndError("expected an ogb.nodeproppred.NodePropPredDataset: gnnd learns of nodes")
    graph, labels = dataset[0]
    if "edge_index" not in graph:
        raise GnndError("the graph has several types of nodes or edges: gnnd learns from one")
    split = dataset.get_idx_split()
    found = {
        "edge_index": graph["edge_index"],
        "features": graph.get("node_feat"),
        "labels": labels,
        "train": split["train"],
        "val": split["valid"],
        "test": split["test"],
    }
    made = _graph(found, options, "the dataset")
    if "regression" in str(getattr(dataset, "task_type", "")):
        made.task = "REGRESSION"
    return made
