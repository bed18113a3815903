"""A file of `dgl.save_graphs` with one graph of one type of node and edge. DGL is not needed.

The layout is that of DGL's src/graph/serialize/heterograph_serialize.cc (version 2, since DGL
0.5): numbers are little-endian, a vector is its length (uint64) and its elements, a text likewise.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gnnd_formats.graph import FormatError, Graph, Problem, as_mask, rows_of

MAGIC = 0xDD2E4FF046B4A13F
_HETERO_GRAPH = 0xDD589FBE35224ABF
_META_GRAPH = 0xDD3C5FFE20046ABF
_UNIT_GRAPH = 0xDD2E60F0F6B4A127
_CSR = 0xDD6CD31205DFF127
_COO = 0xDD61FFD305DFF127
_ARRAY = 0xDD5E40F096B4A13F
#: Where the graphs' part begins: what stands before is padded to a page.
_HEADER_BYTES = 4096
_KINDS = {0: "i", 1: "u", 2: "f"}
#: Bits of how the edges are stored, in the order in which they follow each other.
_IS_COO, _IS_CSR, _IS_CSC = 1, 2, 4


def read(path: Path, *, directed: bool = False) -> Graph:
    """The graph, its edges in the order of their ids; `label`, `feat` and masks of its ndata."""
    reader = _Reader(path)
    magic, version, kind, count = (reader.number() for _ in range(4))
    if magic != MAGIC or kind != 2 or version != 2:
        raise reader.wrong("is no file of dgl.save_graphs (DGL 0.5 or later)")
    if count != 1:
        raise reader.wrong(f"holds {count} graphs: gnnd learns from one; save the one alone")
    reader.at = _HEADER_BYTES
    reader.at = reader.number()  # Labels of whole graphs stand between.
    ends, num_nodes, types, relations = reader.graph()
    node_data = reader.vector(lambda: dict(reader.vector(reader.named)))
    edge_data = reader.vector(lambda: dict(reader.vector(reader.named)))
    if len(num_nodes) != 1 or len(ends) != 1:
        names = ", ".join(reader.vector(reader.text))
        text = f"has {types} types of nodes ({names}) and {relations} of edges"
        raise reader.wrong(f"{text}: gnnd learns from one; dgl.to_homogeneous makes one graph")
    graph = graph_of(node_data[0], edge_data[0] if edge_data else {}, ends[0], path.name)
    graph.num_nodes = num_nodes[0]
    return graph


def graph_of(
    nodes: dict[str, Any], edges: dict[str, Any], ends: np.ndarray, file: str = "ndata"
) -> Graph:
    """What `ndata`, `edata` and edges [2, E] in the order of their ids make."""

    def first(data: dict[str, Any], *names: str) -> Any:
        return next((data[name] for name in names if name in data), None)

    found = {
        "edge_index": ends,
        "features": first(nodes, "feat", "features", "x"),
        "labels": first(nodes, "label", "labels", "y"),
        "edge_weights": first(edges, "weight", "w"),
    }
    for split in ("train", "val", "test"):
        mask = first(nodes, f"{split}_mask", "valid_mask" if split == "val" else f"{split}_mask")
        # DGL stores masks of bool as uint8.
        found[split] = None if mask is None else as_mask(mask, file, f"{split}_mask")
    return Graph({name: array for name, array in found.items() if array is not None})


class _Reader:
    """Reads a file from where it is; arrays are mapped, not copied."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.stat().st_size < _HEADER_BYTES + 8:
            raise self.wrong("is too short for a file of dgl.save_graphs")
        self.data = np.memmap(path, np.uint8, "r")
        self.at = 0

    def wrong(self, text: str) -> FormatError:
        return FormatError(Problem(self.path.name, text))

    def take(self, count: int) -> np.ndarray:
        if count < 0 or self.at + count > len(self.data):
            raise self.wrong(f"is cut off at byte {len(self.data)}, or damaged")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self) -> int:
        return int(struct.unpack("<Q", self.take(8).tobytes())[0])

    def expect(self, magic: int, what: str) -> None:
        if self.number() != magic:
            raise self.wrong(f"is damaged, or of another version: no {what} at byte {self.at - 8}")

    def vector(self, element: Callable[[], Any]) -> list[Any]:
        count = self.number()
        if count > len(self.data):
            raise self.wrong(f"is damaged: {count} elements at byte {self.at - 8}")
        return [element() for _ in range(count)]

    def text(self) -> str:
        return self.take(self.number()).tobytes().decode(errors="replace")

    def named(self) -> tuple[str, np.ndarray]:
        return self.text(), self.array()

    def array(self) -> np.ndarray:
        self.expect(_ARRAY, "array")
        self.take(16)  # Reserved; the device, which is the processor.
        ndim, kind, bits, _ = struct.unpack("<iBBH", self.take(8).tobytes())
        if kind not in _KINDS or bits not in (8, 16, 32, 64) or not 0 <= ndim <= 8:
            raise self.wrong(f"has an array of a type that is not read at byte {self.at}")
        shape = [self.number() for _ in range(ndim)]
        values = self.take(self.number())
        dtype = np.dtype(f"<{_KINDS[kind]}{bits // 8}")
        if values.nbytes != dtype.itemsize * int(np.prod(shape, dtype=np.int64)):
            raise self.wrong(f"is damaged: an array of {values.nbytes} bytes has shape {shape}")
        return values.view(dtype).reshape(shape)

    def graph(self) -> tuple[list[np.ndarray], list[int], int, int]:
        """Edges [2, E] of each relation, nodes of each type, and how many of both there are."""
        self.expect(_HETERO_GRAPH, "graph")
        types = self.meta_graph()
        ends = self.vector(self.unit_graph)
        num_nodes = self.vector(self.number)
        return ends, num_nodes, types, len(ends)

    def meta_graph(self) -> int:
        """The graph of types, of which only the number of nodes matters."""
        self.expect(_META_GRAPH, "graph of types")
        rows, _ = self.csr()
        return rows

    def unit_graph(self) -> np.ndarray:
        """The edges of a relation, in the order of their ids."""
        self.expect(_UNIT_GRAPH, "relation")
        code = self.number()
        self.number()
        # Before DGL 0.7 there was one form, as its number in a list.
        stored = code & 0xFF if code >> 32 else {1: _IS_COO, 2: _IS_CSR, 3: _IS_CSC}.get(code, 0)
        found = []
        if stored & _IS_COO:
            self.expect(_META_GRAPH, "graph of types")
            self.csr()
            found.append(self.coo())
        if stored & _IS_CSR:
            self.expect(_META_GRAPH, "graph of types")
            self.csr()
            found.append(self.csr()[1])
        if stored & _IS_CSC:
            self.expect(_META_GRAPH, "graph of types")
            self.csr()
            found.append(self.csr()[1][::-1])
        if not found:
            raise self.wrong(f"stores its edges in a form that is not known ({code:#x})")
        return found[0]

    def coo(self) -> np.ndarray:
        self.expect(_COO, "list of edges")
        self.take(16)
        rows, columns, ids = self.array(), self.array(), self.array()
        self.take(2)
        return _by_ids(rows, columns, ids)

    def csr(self) -> tuple[int, np.ndarray]:
        """Rows, and entries [2, E] as (row, column) in the order of their ids."""
        self.expect(_CSR, "matrix")
        self.number()
        rows = self.number()
        indptr, indices, ids = self.array(), self.array(), self.array()
        self.take(1)
        return rows, _by_ids(rows_of(indptr), indices, ids)


def _by_ids(rows: np.ndarray, columns: np.ndarray, ids: np.ndarray) -> np.ndarray:
    ends = np.stack([rows.astype(np.int64), columns.astype(np.int64)])
    if len(ids) == 0:
        return ends
    ordered = np.empty_like(ends)
    ordered[:, ids] = ends
    return ordered
