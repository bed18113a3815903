"""What a reader makes of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Values of a dense block that is made of sparse rows at once.
BLOCK_VALUES = 1 << 22


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a source."""

    #: The file, and where in it.
    path: str
    #: What was found, and what was expected.
    description: str

    def __str__(self) -> str:
        return f"{self.path}: {self.description}"


class FormatError(Exception):
    """A source that cannot be read as what it should be, with all that is wrong."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


@dataclass(frozen=True)
class Sparse:
    """A sparse matrix [N, F] by rows, whose values that are not listed are 0."""

    #: [N + 1]: where the entries of each row start.
    indptr: np.ndarray
    #: [entries]: their columns, in any order; one that is listed twice counts with its sum.
    indices: np.ndarray
    #: [entries]
    values: np.ndarray
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """[N, F]."""
        return len(self.indptr) - 1, self.columns

    def blocks(self) -> Iterator[np.ndarray]:
        """Dense rows [n, F] float32, block by block, so that the whole need not fit in memory."""
        rows = max(1, BLOCK_VALUES // max(1, self.columns))
        for start in range(0, self.shape[0], rows):
            ends = self.indptr[start : start + rows + 1]
            dense = np.zeros((len(ends) - 1, self.columns), np.float32)
            at = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
            part = slice(int(ends[0]), int(ends[-1]))
            np.add.at(dense, (at, self.indices[part]), self.values[part])
            yield dense


@dataclass
class Graph:
    """Arrays by the names of docs/datasets.md, and what people call nodes, classes and columns."""

    #: features, labels, train, val, test, edge_index or indptr and indices, edge_weights: numpy
    #: arrays, or `Sparse` for features. What the source lacks is not there.
    arrays: dict[str, Any]
    class_names: Sequence[str] | None = None
    node_names: Sequence[str] | None = None
    feature_names: Sequence[str] | None = None
    #: Pairs that jobs learn and are judged by, and their negatives, by the names of docs/links.md.
    links: dict[str, np.ndarray] = field(default_factory=dict)
    #: Each edge is there in both directions.
    undirected: bool = False
    #: Needed where there are neither features, labels nor rows of edges.
    num_nodes: int | None = None
    #: What the source says is learnt of a node: CLASSIFICATION, MULTI_LABEL or REGRESSION.
    task: str | None = None
    #: What a user should know of how it was read, a sentence each.
    notices: list[str] = field(default_factory=list)


@dataclass
class TypedGraph:
    """A graph of several types of nodes and relations."""

    #: How many nodes each type has.
    counts: dict[str, int]
    #: Of types that have some: features, labels, train, val, test, as of `Graph`.
    nodes: dict[str, dict[str, Any]]
    #: By SOURCE__RELATION__DESTINATION: edge_index, or indptr and indices.
    edges: dict[str, dict[str, Any]]
    notices: list[str] = field(default_factory=list)


def as_mask(values: Any, path: str, name: str) -> np.ndarray:
    """A mask of bool, of one that older versions of a library stored as numbers.

    Raises `FormatError` for anything but 0 and 1, such as ids.
    """
    found = np.asarray(values)
    if found.dtype == bool:
        return found
    wrong = np.flatnonzero((found != 0) & (found != 1))
    if wrong.size > 0:
        text = f"has {found.reshape(-1)[wrong[0]]} at index {wrong[0]}: expected a mask of 0 and 1"
        raise FormatError(Problem(f"{path}/{name}", text))
    return found.astype(bool)


def both_ways(edge_index: np.ndarray, num_nodes: int) -> np.ndarray:
    """Edges [2, E] in both directions, each once, without loops: as torch_geometric stores the
    citation benchmarks."""
    ends = np.asarray(edge_index, np.int64)
    ends = ends[:, ends[0] != ends[1]]
    keys = np.concatenate([ends[0] * num_nodes + ends[1], ends[1] * num_nodes + ends[0]])
    keys = np.unique(keys)
    return np.stack([keys // num_nodes, keys % num_nodes])


def made_undirected(edge_index: np.ndarray, num_nodes: int, notices: list[str]) -> np.ndarray:
    """`both_ways`, and a notice where that changed the graph."""
    made = both_ways(edge_index, num_nodes)
    loops = int((edge_index[0] == edge_index[1]).sum())
    once = len(np.unique(edge_index[0] * np.int64(num_nodes) + edge_index[1]))
    added = made.shape[1] - (once - loops)
    if added > 0:
        notices.append(
            f"edges are stored in both directions, as torch_geometric does: {added:,} were added"
        )
    dropped = edge_index.shape[1] - once + loops
    if dropped > 0:
        notices.append(f"{dropped:,} loops and repeated edges were left out")
    return made


def rows_of(indptr: np.ndarray) -> np.ndarray:
    """[entries]: the row of each entry of a matrix by rows."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
