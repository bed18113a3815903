"""A file that networkx reads: GML, GraphML, GEXF, or JSON as `node_link_data` has it. Needs
networkx."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np

from gnnd_formats.graph import FormatError, Graph, Problem


def load(path: Path) -> Any:
    """The networkx graph of a file, by the end of its name."""
    try:
        import networkx as nx
    except ImportError:
        problem = Problem("NETWORKX", "needs networkx in Python: pip install networkx")
        raise FormatError(problem) from None
    readers = {
        ".gml": _gml,
        ".graphml": nx.read_graphml,
        ".gexf": nx.read_gexf,
        ".json": _node_link,
    }
    # Packed files are read by networkx as they are: graph.graphml.gz.
    kind = next((each for each in reversed(path.suffixes) if each in readers), None) or _kind(path)
    if kind is None:
        text = f"expected a file that ends in {', '.join(readers)}"
        raise FormatError(Problem(path.name, text))
    try:
        return readers[kind](path)
    except (nx.NetworkXException, ParseError, ValueError, KeyError, TypeError) as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        text = f"networkx cannot read it as {kind[1:]}: {reason}"
        raise FormatError(Problem(path.name, text)) from None


def _kind(path: Path) -> str | None:
    """By how the text begins, of a file that is called something else."""
    with path.open("rb") as opened:
        start = opened.read(4096).decode(errors="replace").lower()
    begins = {"<graphml": ".graphml", "<gexf": ".gexf", "graph": ".gml", "{": ".json"}
    return next((kind for word, kind in begins.items() if word in start), None)


def _gml(path: Path) -> Any:
    import networkx as nx

    try:
        return nx.read_gml(path)
    except nx.NetworkXError:
        # Nodes without a label of their own are called by their ids.
        return nx.read_gml(path, label="id")


def _node_link(path: Path) -> Any:
    import networkx as nx

    listed = json.loads(path.read_text(encoding="utf-8"))
    name = "links" if isinstance(listed, dict) and "links" in listed else "edges"
    if not isinstance(listed, dict) or not {"nodes", name} <= listed.keys():
        has = ", ".join(listed) if isinstance(listed, dict) else f"a {type(listed).__name__}"
        text = f"expected nodes and links, as networkx.node_link_data writes them; it has {has}"
        raise FormatError(Problem(path.name, text))
    return nx.node_link_graph(listed, edges=name)


#: What people call the attribute with a node's class or number, the usual names first.
LABELS = ("label", "y", "class", "target", "category", "value")
#: Attributes with all features of a node in a list.
FEATURES = ("x", "feat", "features")
SPLITS = {"train": ("train", "training"), "val": ("val", "valid", "validation"), "test": ("test",)}
#: Texts that say that a label is not known.
UNKNOWN = {"", "nan", "none", "na", "n/a", "null"}
_NUMBERS = (int, float)  # Of which bool is one.


def read(path: Path, *, directed: bool = False) -> Graph:
    """The graph, its attributes taken by their usual names; a notice says which.

    Labels are `label`, `y`, `class` and so on; features a list in `x`, or else all other attributes
    that are a number of every node; the split is `split`. Edges without direction are stored in
    both, as `client.import_networkx` does, which takes attributes by any names.
    """
    found = load(path)
    nodes = list(found.nodes)
    if not nodes:
        raise FormatError(Problem(path.name, "has no node"))
    columns = _columns(found, nodes)
    graph = Graph({}, node_names=[str(node) for node in nodes], num_nodes=len(nodes))
    if graph.node_names == [str(at) for at in range(len(nodes))]:
        graph.node_names = None
    taken = []
    label = next((name for name in LABELS if name in columns), None)
    if label is not None:
        graph.arrays["labels"], graph.class_names = _labels(columns.pop(label), label, nodes, path)
        taken.append(f"'{label}' for the label")
    if "split" in columns:
        words = [str(value or "").strip().lower() for value in columns.pop("split")]
        for split, called in SPLITS.items():
            ids = [at for at, word in enumerate(words) if word in called]
            graph.arrays[split] = np.array(ids, np.int64)
        taken.append("'split' for the split")
    features = next((name for name in FEATURES if name in columns), None)
    if features is not None:
        graph.arrays["features"] = _rows(columns.pop(features), features, nodes, path)
        taken.append(f"'{features}' for the features")
    else:
        numbers = {name: each for name, each in columns.items() if _are_numbers(each)}
        if numbers:
            graph.arrays["features"] = np.array(list(numbers.values()), np.float32).T
            graph.feature_names = list(numbers)
            taken.append(f"{', '.join(map(repr, numbers))} for features")
            columns = {name: each for name, each in columns.items() if name not in numbers}
    if taken:
        graph.notices.append(f"{path.name}: took {'; '.join(taken)}")
    if columns:
        names = ", ".join(repr(name) for name in list(columns)[:20])
        graph.notices.append(f"{path.name}: left out the attributes {names}")
    _edges(found, nodes, graph)
    return graph


def _columns(found: Any, nodes: list[Any]) -> dict[str, list[Any]]:
    """Values of all nodes by attribute, None where a node has none."""
    names = dict.fromkeys(str(name) for node in nodes for name in found.nodes[node])
    columns = {name: [found.nodes[node].get(name) for node in nodes] for name in names}
    # GEXF calls each node by its id once more.
    called = [str(node) for node in nodes]
    return {name: each for name, each in columns.items() if each != called}


def _are_numbers(values: list[Any]) -> bool:
    return all(isinstance(value, _NUMBERS) for value in values)


def _labels(
    values: list[Any], name: str, nodes: list[Any], path: Path
) -> tuple[np.ndarray, list[str] | None]:
    """Classes by their texts in order, or numbers; what is not known is -1, or NaN of fractions."""
    texts = sorted({value for value in values if isinstance(value, str)})
    if texts:
        names = [text for text in texts if text.strip().lower() not in UNKNOWN]
        number = {text: at for at, text in enumerate(names)}
        kinds = [[at for at, each in enumerate(values) if isinstance(each, str)]]
        kinds.append([at for at, each in enumerate(values) if not isinstance(each, str | None)])
        few = min(kinds, key=len)
        if few:
            text = f"has {name} {values[few[0]]!r}, which is of another kind than most: expected "
            text += "texts alone, or numbers alone"
            raise FormatError(Problem(f"{path.name} node {nodes[few[0]]}", text))
        return np.array([number.get(value, -1) for value in values], np.int64), names
    if any(isinstance(value, list | tuple) for value in values):
        return _rows(values, name, nodes, path), None
    known = [np.nan if value is None else float(value) for value in values]
    labels = np.array(known, np.float64)
    whole = np.where(np.isnan(labels), -1, labels)
    return (whole.astype(np.int64) if np.all(whole == np.floor(whole)) else labels), None


def _rows(values: list[Any], name: str, nodes: list[Any], path: Path) -> np.ndarray:
    """Lists of as many numbers as the first node has."""
    width = next((len(value) for value in values if isinstance(value, list | tuple)), 1)
    wrong = []
    for at, value in enumerate(values):
        row = value if isinstance(value, list | tuple) else [value]
        if len(row) != width or not _are_numbers(list(row)):
            text = f"has {name} {value!r}: expected {width} numbers, as the first node has"
            wrong.append(Problem(f"{path.name} node {nodes[at]}", text))
    if wrong:
        raise FormatError(*wrong[:20])
    rows = [value if isinstance(value, list | tuple) else [value] for value in values]
    return np.array(rows, np.float32)


def _edges(found: Any, nodes: list[Any], graph: Graph) -> None:
    number = {node: at for at, node in enumerate(nodes)}
    listed = list(found.edges(data="weight"))
    ends = np.array([[number[u], number[v]] for u, v, _ in listed], np.int64).reshape(-1, 2).T
    given = [weight for *_, weight in listed]
    weights = np.array(given, np.float32) if given and _are_numbers(given) else None
    if not found.is_directed():
        others = ends[0] != ends[1]
        ends = np.concatenate([ends, ends[::-1, others]], axis=1)
        weights = None if weights is None else np.concatenate([weights, weights[others]])
        graph.undirected = True
    order = np.lexsort((ends[0], ends[1]))
    graph.arrays["edge_index"] = np.ascontiguousarray(ends[:, order])
    if weights is not None and not np.all(weights == 1):
        graph.arrays["edge_weights"] = weights[order]
