"""Graphs of other libraries as the arrays that gnnd imports. None of these is imported here."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from gnnd import target_links
from gnnd.errors import InvalidRequest, Violation, wrong
from gnnd.parts import Parts, text_names, wrong_names
from gnnd.values import Unfit, as_array, is_sparse
from gnnd.words import advice, shown

#: Options of imports that are not parts of the graph.
FILE_OPTIONS = {
    *("feature_dtype", "link", "staging", "progress", "task", "split"),
    *("made_features", "random_split"),
}
ARRAYS = (
    *("features", "labels", "train", "val", "test"),
    *("edge_index", "indptr", "indices", "edge_weights"),
)
_NAMES = {"class_names", "node_names", "feature_names"}


@dataclass
class Graph:
    """Arrays by the names of docs/datasets.md, and what people call nodes and classes."""

    arrays: dict[str, Any]
    class_names: list[str] | None = None
    node_names: list[str] | None = None
    #: What columns of features are called; a model knows its own by them.
    feature_names: list[str] | None = None
    undirected: bool = False
    #: What the source says is learnt of a node.
    task: str | None = None
    #: Pairs that jobs learn and are judged by, by the names of docs/links.md.
    links: dict[str, np.ndarray] = field(default_factory=dict)
    #: Where no labels tell it.
    num_nodes: int | None = None
    #: What its person should know of how it was taken, a sentence each.
    notices: list[str] = field(default_factory=list)

    def texts(self) -> dict[str, str]:
        """Files beside the arrays."""
        meta: dict[str, Any] = {"undirected": self.undirected}
        if self.task is not None:
            meta["task"] = self.task
        if self.num_nodes is not None and "labels" not in self.arrays:
            meta["num_nodes"] = self.num_nodes
        if self.class_names is not None:
            meta["class_names"] = self.class_names
            # Also those that no node has.
            meta["num_classes"] = len(self.class_names)
        if self.feature_names is not None:
            meta["feature_names"] = self.feature_names
        texts = {"meta.json": json.dumps(meta)}
        if self.node_names is not None:
            texts["names.txt"] = "".join(f"{name}\n" for name in self.node_names)
        return texts


@dataclass(frozen=True)
class Source:
    """Where arrays come from, for messages."""

    #: Such as "the graph".
    what: str
    #: What the source should call arrays, and what it does have.
    named: Mapping[str, str] = field(default_factory=dict)
    there: Iterable[str] = ()
    num_nodes: int | None = None
    notices: tuple[str, ...] = ()


def made_of(found: Mapping[str, Any], options: Mapping[str, Any], source: Source) -> Graph:
    """What a source has, with the caller's own arrays above it; says all that is wrong at once."""
    known = [*ARRAYS, *sorted({*_NAMES, "links", "undirected", *FILE_OPTIONS})]
    given = {key: value for key, value in options.items() if value is not None}
    both = {**found, **given}
    parts = Parts(called={key: name for key, name in source.named.items() if key not in given})
    parts.task = str(both["task"]).upper().replace("-", "_") if both.get("task") else None
    parts.notices += source.notices
    for key in options:
        if key not in known:
            near = advice(key, known) or f"; there are {', '.join(known)}"
            parts.refuse(key, f"there is no such option of an import{near}")
    links = {} if both.get("links") is None else target_links.arrays_of(both["links"])
    if links and all(both.get(key) is None for key in ("train", "random_split")):
        both = _without_labels(parts, both, source)
    _put_names(parts, both)
    rows = _rows_of(both)
    if parts.num_nodes is None:
        parts.num_nodes = source.num_nodes if rows is None else rows
    # Weights are named by their edges, and splits are held against labels.
    for key in ("features", "labels", "edge_index", "indptr", "indices", *ARRAYS[2:5]):
        if both.get(key) is not None:
            parts.put(key, both[key])
    if both.get("edge_weights") is not None:
        parts.put("edge_weights", both["edge_weights"])
    if parts.node_names is not None:
        parts.wrongs += wrong_names(parts.node_names, parts.num_nodes)
    _note_lacking(parts, both, source)
    if not parts.wrongs:
        parts.check()
    if parts.wrongs:
        raise wrong("an import", *parts.wrongs)
    return Graph(
        {key: parts.arrays[key] for key in ARRAYS if key in parts.arrays},
        class_names=parts.class_names,
        node_names=parts.node_names,
        feature_names=parts.feature_names,
        undirected=bool(both.get("undirected", False)),
        links=links,
        num_nodes=parts.num_nodes,
        notices=parts.notices,
    )


def _without_labels(parts: Parts, both: dict[str, Any], source: Source) -> dict[str, Any]:
    """Of a graph whose links are split and whose nodes are not."""
    if both.get("labels") is None:
        return both
    # How many nodes there are only labels may have told.
    parts.num_nodes = _rows_of({"labels": both["labels"]})
    name = source.named.get("labels", "labels")
    parts.notices.append(
        f"{name} is not used: its nodes have no split; random_split=(0.2, 0.2) makes one by chance"
    )
    return {**both, "labels": None}


def _put_names(parts: Parts, both: Mapping[str, Any]) -> None:
    columns = getattr(both.get("features"), "columns", None)
    # Of a frame; numbers of columns are no names.
    if not isinstance(columns, Iterable) or not all(isinstance(name, str) for name in columns):
        columns = None
    for key, given, what in (
        ("class_names", both.get("class_names"), "texts"),
        ("node_names", both.get("node_names"), "texts, one a node"),
        ("feature_names", both.get("feature_names", columns), "texts, one a column"),
    ):
        if given is None:
            continue
        try:
            setattr(parts, key, text_names(given, what))
        except Unfit as error:
            parts.refuse(key, str(error))


def _rows_of(both: Mapping[str, Any]) -> int | None:
    """How many nodes there are, as an array says that has a row for each."""
    for key, more in (("labels", 0), ("features", 0), ("indptr", 1)):
        values = both.get(key)
        shape = getattr(values, "shape", None)
        if shape is not None and len(shape) > 0:
            return int(shape[0]) - more
        if isinstance(values, (list, tuple)):
            return len(values) - more
    return None


def _note_lacking(parts: Parts, both: Mapping[str, Any], source: Source) -> None:
    """Refuses a graph without what no import makes, or that may only have called it otherwise."""
    is_split = both.get("random_split") is not None
    is_made = both.get("made_features") is not None
    for key, is_needed in (
        ("features", False),
        ("labels", False),
        ("train", both.get("labels") is not None and not is_split),
    ):
        if both.get(key) is not None:
            continue
        name = source.named.get(key, key)
        # A word of another option is no other name of this one.
        near = advice(name, [other for other in source.there if other not in source.named.values()])
        if (key == "features" and is_made) or (key == "train" and is_split):
            continue
        if is_needed or near:
            chance = ", or have one by chance, random_split=(0.2, 0.2)" if key == "train" else ""
            parts.refuse(key, f"{source.what} has no {name}, give it as {key}=…{chance}{near}")
    if all(both.get(key) is None for key in ("edge_index", "indptr", "indices")):
        name = source.named.get("edge_index", "edge_index")
        near = advice(name, source.there)
        parts.refuse("edge_index", f"{source.what} has no {name}, give it as edge_index=…{near}")


def from_arrays(options: Mapping[str, Any]) -> Graph:
    """Of nothing but the caller's own arrays."""
    return made_of({}, options, Source("it"))


def not_a_path(value: Any, call: str, how: str) -> None:
    """Refuses the path of a file where an object is expected; `how` reads such a file."""
    if isinstance(value, (str, bytes, os.PathLike)):
        text = f"{shown(os.fspath(value))} is a path: expected an object; {how}"
        raise wrong(call, Violation("graph", text))


def of_another_kind(value: Any, call: str, expected: str) -> InvalidRequest:
    """The error of an object that a call knows nothing of."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return wrong(call, Violation("graph", f"it is a {kind}: expected {expected}"))


def _first(get: Callable[[str], Any], *names: str) -> tuple[str, Any]:
    """Of several names the first that is there, and what it names."""
    found = ((name, get(name)) for name in names)
    return next((each for each in found if each[1] is not None), (names[0], None))


def from_pyg(data: Any, options: Mapping[str, Any]) -> Graph:
    """Of `torch_geometric.data.Data`, a dataset with one graph, or what splits its links."""
    # A dataset of OGB has its split beside the graph.
    split = data.get_idx_split() if hasattr(data, "get_idx_split") else {}
    data, links = _with_links(data)
    data = _one_graph(data)
    named: dict[str, str] = {"edge_index": "edge_index"}
    found: dict[str, Any] = {}
    for key, *names in (
        ("features", "x"),
        ("labels", "y"),
        ("train", "train_mask", "train_idx"),
        ("val", "val_mask", "val_idx", "valid_mask", "valid_idx"),
        ("test", "test_mask", "test_idx"),
        ("edge_weights", "edge_weight"),
    ):
        named[key], found[key] = _first(lambda name: getattr(data, name, None), *names)
    for key, name in (("train", "train"), ("val", "valid"), ("test", "test")):
        if found[key] is None and split.get(name) is not None:
            named[key], found[key] = name, split[name]
    notices = links.notices
    if links.links:
        found["links"] = links.links
    elif getattr(data, "edge_label_index", None) is not None:
        notices.append(
            "edge_label_index is not used: of links it takes all three of RandomLinkSplit, "
            "import_pyg((train, val, test), …)"
        )
    if getattr(data, "edge_attr", None) is not None:
        notices.append(
            "edge_attr is not used: models here read no edge features, but one edge_weight an edge"
        )
    if getattr(data, "edge_index", None) is not None:
        found["edge_index"] = data.edge_index
    elif getattr(data, "adj_t", None) is not None:
        # Row v of the transposed adjacency lists what v learns from.
        found["indptr"], found["indices"], weights = _csr(data.adj_t)
        found["edge_weights"] = weights if weights is not None else found["edge_weights"]
    source = Source(
        *("the data", named, _attributes(data)),
        # torch_geometric guesses where there are no rows, and warns.
        num_nodes=_count(getattr(data, "num_nodes", None)) if found["labels"] is None else None,
        notices=tuple(notices),
    )
    return made_of(found, options, source)


def _with_links(data: Any) -> tuple[Any, target_links.Found]:
    """The graph that messages use in training, and the links that are learnt, if it has some."""
    if target_links.is_pyg_split(data):
        return data[0], target_links.of_pyg(data)
    if hasattr(data, "get_edge_split"):
        return data, target_links.of_ogb(data.get_edge_split())
    return data, target_links.Found()


def _one_graph(data: Any) -> Any:
    """The one graph of what `import_pyg` was given."""
    if isinstance(data, Mapping):
        data = SimpleNamespace(**{str(key): value for key, value in data.items()})
    is_graph = hasattr(data, "edge_index") or hasattr(data, "adj_t") or hasattr(data, "node_types")
    is_array = hasattr(data, "detach") or isinstance(data, np.ndarray)
    if not is_graph and not is_array and hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        if len(data) != 1:
            text = f"it holds {len(data):,} graphs: gnnd learns from one, data[0]"
            raise wrong("import_pyg()", Violation("data", text))
        data = data[0]
    if hasattr(data, "node_types") and hasattr(data, "edge_types"):
        types, relations = list(data.node_types), list(data.edge_types)
        if len(types) != 1 or len(relations) != 1:
            text = (
                f"it has types of nodes {types} and of edges {relations}: expected one or more of "
                "each, and of links one of each"
            )
            raise wrong("import_pyg()", Violation("data", text))
        together = {**data[relations[0]].to_dict(), **data[types[0]].to_dict()}
        together.setdefault("num_nodes", data[types[0]].num_nodes)
        data = SimpleNamespace(**together)
    if not any(hasattr(data, name) for name in ("edge_index", "adj_t", "x", "y")):
        raise of_another_kind(data, "import_pyg()", "a torch_geometric.data.Data, or its file")
    return data


def _count(number: Any) -> int | None:
    return int(number) if isinstance(number, (int, np.integer)) else None


def _attributes(data: Any) -> list[str]:
    """Of torch_geometric's `Data`, whose `keys` was a property before it was a method."""
    keys = getattr(data, "keys", None)
    return [str(key) for key in (keys() if callable(keys) else keys or vars(data))]


def from_file(graph: Any, options: Mapping[str, Any]) -> Graph:
    """Of a `gnnd_formats.Graph`."""
    found = {
        **graph.arrays,
        **{"class_names": graph.class_names, "node_names": graph.node_names},
        **{"undirected": graph.undirected, "feature_names": graph.feature_names},
        "links": graph.links or None,
    }
    made = made_of(found, options, Source("the file", notices=tuple(graph.notices)))
    made.task = made.task or graph.task
    return made


def _csr(matrix: Any) -> tuple[Any, Any, Any]:
    """Of a `torch_sparse.SparseTensor` or a sparse tensor of torch."""
    if hasattr(matrix, "csr"):
        indptr, indices, weights = matrix.csr()
        return indptr, indices, weights
    if not hasattr(matrix, "to_sparse_csr"):
        raise wrong(
            "import_pyg()", Violation("adj_t", f"{shown(matrix)}: expected a sparse matrix")
        )
    rows = matrix.to_sparse_csr()
    values = as_array(rows.values())
    return rows.crow_indices(), rows.col_indices(), None if np.all(values == 1) else values


def from_scipy(adjacency: Any, options: Mapping[str, Any]) -> Graph:
    """Of a sparse matrix or array, or of a dense one: columns list in-neighbours."""
    if not is_sparse(adjacency) and not hasattr(adjacency, "__array__"):
        raise of_another_kind(adjacency, "import_scipy()", "a scipy.sparse array [N, N]")
    shape = tuple(adjacency.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        text = f"it has shape {shape}: expected as many rows as columns"
        raise wrong("import_scipy()", Violation("adjacency", text))
    notices = []
    if not hasattr(adjacency, "tocsc"):
        dense = as_array(adjacency)
        ends = np.nonzero(dense)
        found: dict[str, Any] = {"edge_index": np.stack(ends)}
        values = dense[ends]
    else:
        indptr, indices, values = _columns(adjacency)
        found = {"indptr": indptr, "indices": indices}
        zeros = int(np.count_nonzero(values == 0))
        if zeros > 0:
            notices.append(f"{zeros:,} values of the adjacency are 0, and are edges of weight 0")
    if values.size > 0 and values.dtype != bool and not np.all(values == 1):
        found["edge_weights"] = values
    source = Source("the adjacency", num_nodes=int(shape[0]), notices=tuple(notices))
    return made_of(found, options, source)


def _columns(adjacency: Any) -> tuple[Any, Any, Any]:
    """The arrays of a matrix in CSC form. scipy would add up values of a cell in COO form."""
    if getattr(adjacency, "format", "") != "coo":
        matrix = adjacency.tocsc()
        return matrix.indptr, matrix.indices, matrix.data
    order = np.lexsort((adjacency.row, adjacency.col))
    counts = np.bincount(adjacency.col, minlength=adjacency.shape[1])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return indptr, adjacency.row[order], adjacency.data[order]


def from_dgl(graph: Any, options: Mapping[str, Any]) -> Graph:
    """Of a `dgl.DGLGraph` with one type of nodes and edges, or what `dgl.load_graphs` gave."""
    call = "import_dgl()"
    links = target_links.Found()
    if target_links.is_dgl_split(graph):
        graph, links = graph[0], target_links.of_dgl(graph)
    if isinstance(graph, (list, tuple)):
        # (graphs, labels), or the graphs.
        listed = graph[0] if graph and isinstance(graph[0], (list, tuple)) else graph
        if len(listed) != 1:
            text = f"there are {len(listed)} graphs: gnnd learns from one, graphs[0]"
            raise wrong(call, Violation("graph", text))
        graph = listed[0]
    if not all(hasattr(graph, name) for name in ("ntypes", "etypes", "ndata", "edges")):
        raise of_another_kind(graph, call, "a dgl.DGLGraph")
    if len(graph.ntypes) != 1 or len(graph.etypes) != 1:
        text = (
            f"it has types of nodes {list(graph.ntypes)} and of edges {list(graph.etypes)}, and "
            "gnnd learns from one of each: dgl.to_homogeneous makes one graph"
        )
        raise wrong(call, Violation("graph", text))
    sources, targets = graph.edges(order="eid")
    found: dict[str, Any] = {"edge_index": np.stack([as_array(sources), as_array(targets)])}
    named = {"edge_index": "edges"}
    for key, data, *names in (
        ("features", graph.ndata, "feat", "features", "x"),
        ("labels", graph.ndata, "label", "labels", "y"),
        ("train", graph.ndata, "train_mask"),
        ("val", graph.ndata, "val_mask", "valid_mask"),
        ("test", graph.ndata, "test_mask"),
        ("edge_weights", graph.edata, "weight", "w"),
    ):
        named[key], found[key] = _first(data.get, *names)
    count = graph.num_nodes() if hasattr(graph, "num_nodes") else None
    there = [str(key) for key in graph.ndata]
    if links.links:
        found["links"] = links.links
    source = Source(
        "the graph's ndata", named, there, num_nodes=_count(count), notices=tuple(links.notices)
    )
    return made_of(found, options, source)


def from_ogb(dataset: Any, options: Mapping[str, Any]) -> Graph:
    """Of `NodePropPredDataset` or `LinkPropPredDataset` of OGB: one homogeneous graph."""
    call = "import_ogb()"
    not_a_path(dataset, call, "client.import_path takes a dataset's folder")
    is_of_links = hasattr(dataset, "get_edge_split")
    if not is_of_links and not hasattr(dataset, "get_idx_split"):
        expected = "an ogb.nodeproppred.NodePropPredDataset or linkproppred.LinkPropPredDataset"
        raise of_another_kind(dataset, call, expected)
    first = dataset[0]
    graph = first[0] if isinstance(first, (tuple, list)) else first
    if not isinstance(graph, Mapping):
        text = "it is one of torch_geometric's or of DGL's (PygNodePropPredDataset, …): expected a"
        text = f"{text} NodePropPredDataset; import_pyg and import_dgl take the graph of those"
        raise wrong(call, Violation("dataset", text))
    if "edge_index" not in graph:
        text = "it has several types of nodes or edges: gnnd learns from one"
        raise wrong(call, Violation("dataset", text))
    found = {"edge_index": graph["edge_index"], "features": graph.get("node_feat")}
    links = target_links.Found()
    if is_of_links:
        links = target_links.of_ogb(dataset.get_edge_split())
        found["links"] = links.links
    else:
        split = dataset.get_idx_split()
        found["labels"] = first[1]
        found |= {"train": split.get("train"), "val": split.get("valid"), "test": split.get("test")}
    source = Source(
        "the dataset", num_nodes=_count(graph.get("num_nodes")), notices=tuple(links.notices)
    )
    made = made_of(found, options, source)
    if "regression" in str(getattr(dataset, "task_type", "")):
        made.task = "REGRESSION"
    return made
