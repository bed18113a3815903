"""Numbers of a batch's edges: which of a graph's given edges each is, for what they carry."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gnnd.errors import GnndError
from gnnd.reader import Edges

_NUMBERS = 2**32


class EdgeTable:
    """A graph's edges, sorted, so that the reader finds each edge's number.

    Takes 8 bytes an edge and 8 a node, and 16 more an edge while it is made.
    """

    def __init__(
        self,
        sources: np.ndarray,
        targets: np.ndarray,
        num_nodes: int,
        kept: np.ndarray | None = None,
        num_sources: int | None = None,
    ) -> None:
        """Of edges in their order: the first has number 0. `kept`: the numbers of those in it.

        `num_nodes` are the targets; the sources are the same nodes unless there are `num_sources`.
        """
        if len(sources) >= _NUMBERS:
            raise GnndError(
                f"numbers of {len(sources):,} edges are 64 bits wide; a loader gives fewer than "
                f"{_NUMBERS:,} edges their numbers"
            )
        if kept is not None:
            sources, targets = sources[kept], targets[kept]
        # Less than 2^64: ids are of 32 bits.
        width = np.uint64(num_nodes if num_sources is None else num_sources)
        place = targets.astype(np.uint64) * width + sources.astype(np.uint64)
        is_sorted = bool(np.all(place[1:] >= place[:-1]))
        order = np.arange(len(place)) if is_sorted else np.argsort(place, kind="stable")
        del place
        self._numbers = (order if kept is None else kept[order]).astype(np.uint32)
        self._sources = sources[order].astype(np.uint32)
        self._indptr = np.zeros(num_nodes + 1, np.int64)
        np.cumsum(np.bincount(targets, minlength=num_nodes), out=self._indptr[1:])
        arrays = (self._indptr, self._sources, self._numbers)
        #: As the reader takes it.
        self.of_reader = Edges(*(each.ctypes.data for each in arrays), num_nodes)

    @property
    def address(self) -> int:
        """Where the reader finds it, as long as this lives."""
        return ctypes.addressof(self.of_reader)


def pairs_of(data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sources and targets of the edges of a `Data`, in its order of them."""
    if "edge_index" in data:
        pairs = data.edge_index.cpu().numpy()
        return pairs[0], pairs[1]
    adjacency = data.adj_t
    if hasattr(adjacency, "coo"):  # A SparseTensor, whose rows are targets.
        targets, sources, _ = adjacency.coo()
    else:
        targets, sources = adjacency.to_sparse_coo().coalesce().indices()
    return sources.cpu().numpy(), targets.cpu().numpy()
