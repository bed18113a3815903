"""Graphs as two tables, with the columns that docs/datasets.md gives to CSV files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from gnnd.errors import GnndError, Violation, missing
from gnnd.sources import Graph, as_array, classes_of, splits_of


def from_parquet(
    nodes: str | os.PathLike[str], edges: str | os.PathLike[str], options: Mapping[str, Any]
) -> Graph:
    """Of two files; columns are read one by one."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise missing("pyarrow", "pandas", "import_parquet") from None
    node_table, edge_table = parquet.read_table(nodes), parquet.read_table(edges)
    return from_columns(_Columns(node_table), _Columns(edge_table), options)


class _Columns:
    """A pyarrow table as columns by name."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.columns = list(table.column_names)

    def __getitem__(self, name: str) -> Any:
        column = self._table[name]
        return _Column(column)


class _Column:
    """Of a table: numbers as an array, anything as a list with None where nothing is."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def to_numpy(self) -> Any:
        return self._column.to_numpy()

    def tolist(self) -> list[Any]:
        return list(self._column.to_pylist())


def from_columns(nodes: Any, edges: Any, options: Mapping[str, Any]) -> Graph:
    """Of frames: a node's number is its place in `nodes`. Says all that is wrong at once."""
    rest = {key: value for key, value in options.items() if key != "directed"}
    problems: list[Violation] = []
    for table, frame, needed in (
        ("nodes", nodes, ("id", "label", "split")),
        ("edges", edges, ("source", "target")),
    ):
        absent = [name for name in needed if name not in list(frame.columns)]
        problems += [Violation(table, f"has no column '{name}'") for name in absent]
    _throw_if_any(problems)
    ids = _texts(nodes["id"])
    number = {name: index for index, name in enumerate(ids)}
    if len(number) != len(ids):
        twice = next(name for index, name in enumerate(ids) if number[name] != index)
        problems.append(Violation("nodes", f"has the id {twice!r} twice"))
    ends = []
    for end in ("source", "target"):
        names = _texts(edges[end])
        unknown = [row for row, name in enumerate(names) if name not in number]
        if unknown:
            what = f"row {unknown[0]} has the {end} {names[unknown[0]]!r}, which is no id of nodes"
            more = f", and {len(unknown) - 1} rows more" if len(unknown) > 1 else ""
            problems.append(Violation("edges", what + more))
        ends.append(np.array([number.get(name, 0) for name in names], np.int64))
    features = _features(nodes, problems)
    _throw_if_any(problems)
    weights = as_array(edges["weight"]) if "weight" in list(edges.columns) else None
    edge_index, weights = _edges(np.stack(ends), weights, bool(options.get("directed")))
    labels, class_names = classes_of([_none_of_nan(v) for v in _list(nodes["label"])])
    arrays = {
        "features": features,
        "labels": labels,
        "edge_index": edge_index,
        **splits_of([_none_of_nan(value) for value in _list(nodes["split"])]),
    }
    if weights is not None:
        arrays["edge_weights"] = weights.astype(np.float32)
    named = {"class_names": class_names, "node_names": ids, **rest}
    return Graph(
        arrays,
        class_names=named["class_names"],
        node_names=named["node_names"],
        undirected=not options.get("directed"),
    )


def _features(nodes: Any, problems: list[Violation]) -> Any:
    """Every column that is none of the known ones: [N, F] float32."""
    names = [name for name in nodes.columns if name not in {"id", "label", "split"}]
    if not names:
        problems.append(Violation("nodes", "has no column of features"))
    features = None
    for index, name in enumerate(names):
        try:
            column = np.asarray(nodes[name].to_numpy(), dtype=np.float32)
        except (TypeError, ValueError) as error:
            problems.append(Violation("nodes", f"column {name!r} holds no numbers: {error}"))
            continue
        if features is None:
            features = np.empty((len(column), len(names)), np.float32)
        features[:, index] = column
    return features


def _edges(ends: Any, weights: Any, directed: bool) -> tuple[Any, Any]:
    """Each edge once, without loops, in both directions unless `directed`; its first weight."""
    kept = ends[0] != ends[1]
    ends = ends[:, kept]
    weights = None if weights is None else weights[kept]
    if not directed:
        ends = np.concatenate([ends, ends[::-1]], axis=1)
        weights = None if weights is None else np.concatenate([weights, weights])
    size = int(ends.max(initial=0)) + 1
    key = ends[1] * size + ends[0]
    _, first = np.unique(key, return_index=True)
    return ends[:, first], None if weights is None else weights[first]


def _texts(column: Any) -> list[str]:
    return [str(value) for value in _list(column)]


def _list(column: Any) -> list[Any]:
    return list(column.tolist())


def _none_of_nan(value: Any) -> Any:
    """What frames have where nothing is; whole numbers that became floats are whole again."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _throw_if_any(problems: list[Violation]) -> None:
    if problems:
        raise GnndError("the tables are no graph", violations=problems)
