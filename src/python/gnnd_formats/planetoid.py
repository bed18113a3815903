"""A folder of Planetoid's files (Yang et al. 2016): `ind.NAME.x`, …, `ind.NAME.graph`.

Eight files: features of the training nodes (`x`), of all but the test nodes (`allx`) and of the
test nodes (`tx`), sparse matrices; labels likewise, a column a class (`y`, `ally`, `ty`); the
neighbours of each node (`graph`); and the numbers of the test nodes, as text (`test.index`).
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from gnnd_formats.data_pickles import Inert, Refused, load
from gnnd_formats.graph import FormatError, Graph, Problem, Sparse, both_ways

PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
_PARTS_OF_MATRIX = ("indptr", "indices", "data")
#: Nodes after the training ones that the benchmark validates on.
VALIDATION_NODES = 500


def read(path: Path, *, directed: bool = False) -> Graph:
    """The graph with the benchmark's split, as torch_geometric makes it."""
    folder = path if path.is_dir() else path.parent
    graphs = [*folder.glob("ind.*.graph"), *folder.glob("raw/ind.*.graph")]
    if len(graphs) != 1:
        names = ", ".join(file.name for file in graphs) or "none"
        raise FormatError(Problem(path.name, f"expected one file ind.NAME.graph, found {names}"))
    stem = str(graphs[0]).removesuffix("graph")
    missing = [part for part in PARTS if not Path(stem + part).exists()]
    if missing:
        lacking = (Problem(Path(stem + part).name, "is missing") for part in missing)
        raise FormatError(*lacking)
    parts = {part: _pickle(Path(stem + part)) for part in PARTS[:-1]}
    tests = np.array(Path(stem + "test.index").read_text().split(), np.int64)
    return _graph(parts, tests, Path(stem).name.strip("."))


def _pickle(file: Path) -> Any:
    try:
        with file.open("rb") as opened:
            return load(opened)
    except Refused as refused:
        raise FormatError(Problem(file.name, str(refused))) from None
    except (pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError) as error:
        reason = str(error).split("\n")[0]
        raise FormatError(Problem(file.name, f"is no whole pickle: {reason}")) from None


def _graph(parts: dict[str, Any], tests: np.ndarray, name: str) -> Graph:
    allx, tx = _dense(parts["allx"]), _dense(parts["tx"])
    ally, ty = np.asarray(parts["ally"]), np.asarray(parts["ty"])
    num_nodes = max(len(parts["graph"]), len(allx) + len(tx), int(tests.max(initial=-1)) + 1)
    features = np.zeros((num_nodes, allx.shape[1]), np.float32)
    labels = np.full(num_nodes, -1, np.int64)
    features[: len(allx)], labels[: len(ally)] = allx, ally.argmax(1)
    # The rows of the test nodes stand in the order of test.index; CiteSeer lacks some of them,
    # which no edge reaches: torch_geometric calls them class 0, here they have none.
    features[tests], labels[tests] = tx, ty.argmax(1)
    ends = [
        np.array([[node] * len(near), list(near)], np.int64).reshape(2, -1)
        for node, near in parts["graph"].items()
    ]
    edges = np.concatenate(ends, axis=1) if ends else np.zeros((2, 0), np.int64)
    train = np.arange(len(parts["y"]))
    graph = Graph(
        {
            "features": features,
            "labels": labels,
            "edge_index": both_ways(edges, num_nodes),
            "train": train,
            "val": np.arange(len(train), min(len(train) + VALIDATION_NODES, len(ally))),
            "test": np.sort(tests),
        },
        undirected=True,
    )
    unknown = int((labels < 0).sum())
    if unknown > 0:
        graph.notices.append(f"{unknown} nodes have neither label nor features in ind.{name}.*")
    return graph


def _dense(matrix: Any) -> np.ndarray:
    """A matrix of SciPy's as it was pickled, or an array."""
    if not isinstance(matrix, Inert):
        return np.asarray(matrix, np.float32)
    rows, columns = matrix.get("_shape") or matrix.get("shape")
    indptr, indices, values = (np.asarray(matrix.get(part)) for part in _PARTS_OF_MATRIX)
    blocks = list(Sparse(indptr, indices, values, int(columns)).blocks())
    return np.concatenate(blocks) if blocks else np.zeros((rows, columns), np.float32)
