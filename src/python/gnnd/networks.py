"""Graphs of networkx, whose nodes and edges have attributes of any type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gnnd.errors import Violation, wrong
from gnnd.sources import Graph, Source, made_of, of_another_kind
from gnnd.values import Place, Unfit, as_array, is_missing, of_values
from gnnd.words import advice, one_of, shown

_CALL = "import_networkx()"
#: What people call parts of a split.
_PARTS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def from_networkx(graph: Any, options: Mapping[str, Any]) -> Graph:
    """Of any networkx graph; parallel edges and loops are kept, which a notice says."""
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
        raise of_another_kind(graph, _CALL, "a networkx graph")
    reader = _Reader(graph)
    if not reader.nodes:
        raise wrong(_CALL, Violation("graph", "it has no nodes"))
    rest = {key: value for key, value in options.items() if key not in {"split", "weight"}}
    found: dict[str, Any] = reader.edges(options.get("weight"))
    found["node_names"] = reader.names()
    if not graph.is_directed():
        rest.setdefault("undirected", True)
    for key in ("features", "labels", "train", "val", "test"):
        if key in rest:
            reader.read(key, rest.pop(key), found)
    if options.get("split") is not None:
        reader.read_split(options["split"], found)
    if reader.wrongs:
        raise wrong(_CALL, *reader.wrongs)
    source = Source("the graph", num_nodes=len(reader.nodes), notices=tuple(reader.notices))
    return made_of(found, rest, source)


class _Reader:
    """Attributes of a graph by the numbers of its nodes; notes all that is wrong."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.nodes = list(graph.nodes)
        self.wrongs: list[Violation] = []
        self.notices: list[str] = []

    def names(self) -> list[str]:
        """Nodes as texts, which two of them must not share: 1 and "1" do."""
        first: dict[str, Any] = {}
        for node in self.nodes:
            other = first.setdefault(str(node), node)
            if other is not node and other != node:
                text = f"nodes {shown(other)} and {shown(node)} are the same text: rename one"
                self.wrongs.append(Violation("graph", text))
                break
        return [str(node) for node in self.nodes]

    def place(self, at: int) -> str:
        """A node as its person calls it."""
        return f"node {shown(self.nodes[at])}"

    def edges(self, weight: Any) -> dict[str, Any]:
        """Ends, and weights where an attribute of edges is named."""
        number = {node: at for at, node in enumerate(self.nodes)}
        edges = [(number[u], number[v], data) for u, v, data in self.graph.edges(data=True)]
        ends = np.array([edge[:2] for edge in edges], np.int64).reshape(-1, 2).T
        weights = None if weight is None else self._weights(weight, edges)
        self._tell_loops(ends)
        if not self.graph.is_directed():
            loops = ends[0] == ends[1]
            ends = np.concatenate([ends, ends[::-1, ~loops]], axis=1)
            weights = None if weights is None else np.concatenate([weights, weights[~loops]])
        return {"edge_index": ends, "edge_weights": weights}

    def _tell_loops(self, ends: np.ndarray) -> None:
        loops = int(np.count_nonzero(ends[0] == ends[1]))
        if loops > 0:
            self.notices.append(f"{_count(loops, 'edge')} from a node to itself: kept")
        if self.graph.is_multigraph():
            pairs = ends if self.graph.is_directed() else np.sort(ends, axis=0)
            repeated = pairs.shape[1] - np.unique(pairs, axis=1).shape[1]
            if repeated > 0:
                again = f"{_count(repeated, 'edge')} beside another one of the same nodes"
                self.notices.append(f"{again}: kept, each counts")

    def _weights(self, name: Any, edges: list[Any]) -> np.ndarray | None:
        found = [data.get(name) for *_, data in edges]

        def place(at: int) -> str:
            u, v = (self.nodes[end] for end in edges[at][:2])
            return f"the edge from {shown(u)} to {shown(v)}"

        lacking = [at for at, value in enumerate(found) if value is None]
        try:
            if edges and len(lacking) == len(edges):
                there = sorted({str(key) for *_, data in edges for key in data})
                raise Unfit(_no_such("edge", name, there))
            if lacking:
                raise Unfit(f"{place(lacking[0])}{_more(lacking)} has no {name}")
            weights = _numbers(found, place)
            if weights.ndim != 1:
                raise Unfit(f"{place(0)} has {shown(found[0])}: expected one number")
            with np.errstate(invalid="ignore"):
                wrongs = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
            if wrongs.size > 0:
                what = f"{place(int(wrongs[0]))} has {weights[wrongs[0]].item()}"
                raise Unfit(f"{what}{_more(wrongs)}: expected a number of 0 or more")
        except Unfit as error:
            self.wrongs.append(Violation("weight", str(error)))
            return None
        return weights

    def read(self, key: str, value: Any, found: dict[str, Any]) -> None:
        """Takes an array as it is, a mapping by nodes, and attributes by their names."""
        is_names = isinstance(value, (list, tuple)) and bool(value)
        is_names = is_names and all(isinstance(name, str) for name in value)
        try:
            if key == "features" and (isinstance(value, str) or is_names):
                names = [value] if isinstance(value, str) else list(value)
                columns = [self._columns(name, len(names) > 1) for name in names]
                found[key] = np.concatenate(columns, axis=1)
                found["feature_names"] = [
                    f"{name}.{at}" if each.shape[1] > 1 else name
                    for name, each in zip(names, columns, strict=True)
                    for at in range(each.shape[1])
                ]
            elif isinstance(value, str):
                found[key] = self._attribute(value)
                self._tell_lacking(key, value, found[key])
            elif isinstance(value, Mapping):
                found[key] = [value.get(node) for node in self.nodes]
            else:
                found[key] = value
        except Unfit as error:
            self.wrongs.append(Violation(key, str(error)))

    def _attribute(self, name: Any) -> list[Any]:
        found = [self.graph.nodes[node].get(name) for node in self.nodes]
        if self.nodes and all(value is None for value in found):
            there = sorted({str(key) for node in self.nodes for key in self.graph.nodes[node]})
            raise Unfit(_no_such("node", name, there))
        return found

    def _columns(self, name: str, is_one_of_several: bool) -> np.ndarray:
        """[N, 1] of numbers, [N, F] of lists of them."""
        try:
            return self._numbers_in(name)
        except Unfit as error:
            raise Unfit(f"{name}: {error}" if is_one_of_several else str(error)) from None

    def _numbers_in(self, name: str) -> np.ndarray:
        values = self._attribute(name)
        lacking = [at for at, value in enumerate(values) if value is None]
        if lacking:
            raise Unfit(f"{self.place(lacking[0])}{_more(lacking)} has no {name}")
        columns = _numbers(values, self.place)
        wrongs = np.argwhere(~np.isfinite(columns))
        if len(wrongs) > 0:
            at = int(wrongs[0][0])
            what = f"{self.place(at)} has {shown(values[at])} in {name}"
            raise Unfit(f"{what}: expected finite numbers")
        return columns.reshape(len(columns), -1)

    def _tell_lacking(self, key: str, name: str, values: list[Any]) -> None:
        lacking = [at for at, value in enumerate(values) if value is None]
        if lacking and key == "labels":
            who = f"{self.place(lacking[0])}{_more(lacking)}"
            self.notices.append(f"{who} without {name}: the label is not known")

    def read_split(self, name: Any, found: dict[str, Any]) -> None:
        """Masks by the texts train, val and test of an attribute, or of a mapping by nodes."""
        try:
            if isinstance(name, Mapping):
                values = [name.get(node) for node in self.nodes]
            elif isinstance(name, (list, tuple, np.ndarray)):
                values = list(name)
            else:
                values = self._attribute(name)
            found.update(splits_of(values, self.place))
        except Unfit as error:
            self.wrongs.append(Violation("split", str(error)))


def splits_of(values: list[Any], place: Place) -> dict[str, Any]:
    """Masks by the texts train, val and test; None, NaN and nothing are in none of them."""
    is_nothing = [is_missing(value) or str(value) == "" for value in values]
    parts = []
    for at, value in enumerate(values):
        part = "" if is_nothing[at] else _PARTS.get(str(value).strip().lower())
        if part is None:
            raise Unfit(f"{place(at)} has {one_of(value, ('None', 'train', 'val', 'test'))}")
        parts.append(part)
    splits = np.array(parts, dtype=object)
    return {name: splits == name for name in ("train", "val", "test")}


def _numbers(values: list[Any], place: Place) -> np.ndarray:
    """One number, or a row of them, of each value. Raises `Unfit` with the place of a text."""
    at = next((at for at, value in enumerate(values) if isinstance(value, (str, bytes))), None)
    if at is not None:
        raise Unfit(f"{place(at)} has {shown(values[at])}: expected a number")
    found = as_array(of_values(values, place))
    if found.dtype == object:
        raise Unfit(f"{place(0)} has {shown(values[0])}: expected numbers")
    return found


def _no_such(what: str, name: Any, there: list[str]) -> str:
    listed = ", ".join(there[:20]) or "none"
    return f"no {what} has {shown(name)}; there are: {listed}{advice(name, there)}"


def _more(lacking: Any) -> str:
    return f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
