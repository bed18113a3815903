"""What a loop gets of a batch of several types: a `HeteroData`, named as NeighborLoader's."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from gnnd.errors import missing
from gnnd.forms import Shape, table_of
from gnnd.reader import Batch, Block, Reader, RelationArrays, Table, TypeArrays
from gnnd.typed_supply import TypedSource


class TypedShape(Shape):
    """Makes a `HeteroData` of a batch that is lent; of the forms there is `"pyg"` alone."""

    def made(self, reader: Reader, batch: Batch, source: Any) -> Any:
        """The batch, of a `TypedSource`. Nothing of it is in the record's memory."""
        try:
            from torch_geometric.data import HeteroData
        except ImportError:
            raise missing("torch_geometric", "pyg", "gnnd.loader()") from None
        types, blocks = reader.parts(batch)
        edges = _Edges(source, blocks, int(batch.num_hops), shared=bool(batch.shared))
        nodes = [
            self._nodes(source.of_nodes(name), int(count.num_nodes))
            for name, count in zip(source.types, types, strict=True)
        ]
        pairs = [self._pairs(source, relation, edges) for relation in range(len(source.relations))]
        reader.copy_typed([each.arrays for each in nodes], [arrays for _, arrays in pairs])
        data = HeteroData()
        for at, (name, each) in enumerate(zip(source.types, nodes, strict=True)):
            own = {**each.parts, **each.picked()}
            data[name].update(
                {**own, "num_sampled_nodes": edges.nodes(at, int(types[at].num_seeds))}
            )
            data[name].num_nodes = int(types[at].num_nodes)
        for at, (relation, (parts, _)) in enumerate(zip(source.relations, pairs, strict=True)):
            own = source.of_edges(relation, parts["e_id"]) if "e_id" in parts else {}
            data[relation].update({**parts, **own, "num_sampled_edges": edges.added(at)})
        self._fill_others(data, source, int(batch.num_hops))
        seeds = data[source.target]
        seeds.batch_size = int(batch.num_seeds)
        seeds.input_id = source.places_of(seeds.n_id[: seeds.batch_size])
        return data if self._transform is None else self._transform(data)

    def _nodes(self, wanted: dict[str, Any], count: int) -> _Nodes:
        parts = {"n_id": self._empty((count,), self._torch.int64)}
        tables = []
        for name, values in wanted.items():
            if self._is_plain(values):
                parts[name] = self._empty((count, *values.shape[1:]), values.dtype)
                tables.append(table_of(values, parts[name]))
        return _Nodes(wanted, parts, tables)

    def _pairs(
        self, source: TypedSource, relation: int, edges: _Edges
    ) -> tuple[dict[str, Any], RelationArrays]:
        count = edges.total(relation)
        parts = {"edge_index": self._empty((2, count), self._torch.int64)}
        table = None
        if self._numbers:
            parts["e_id"] = self._empty((count,), self._torch.int64)
            table = source.edge_table(source.relations[relation]).address
        numbers = parts["e_id"].data_ptr() if "e_id" in parts else None
        return parts, RelationArrays(parts["edge_index"].data_ptr(), table, numbers)

    def _fill_others(self, data: Any, source: TypedSource, num_hops: int) -> None:
        """Types that no relation leads to or from have no nodes in a batch."""
        none = self._torch.empty(0, dtype=self._torch.int64)
        for name in source.data.node_types:
            if name in source.types:
                continue
            rows = {key: values[none] for key, values in source.of_nodes(name).items()}
            data[name].update({"n_id": none, **rows, "num_sampled_nodes": [0] * (num_hops + 1)})
            data[name].num_nodes = 0


class _Nodes:
    """What a batch has of the nodes of a type."""

    def __init__(self, wanted: dict[str, Any], parts: dict[str, Any], tables: list[Table]) -> None:
        self._wanted, self.parts = wanted, parts
        self._tables = (Table * len(tables))(*tables)
        start = ctypes.addressof(self._tables) if tables else None
        self.arrays = TypeArrays(start, len(tables), parts["n_id"].data_ptr())

    def picked(self) -> dict[str, Any]:
        """What cannot be copied as it is."""
        missing_parts = (name for name in self._wanted if name not in self.parts)
        return {name: self._wanted[name][self.parts["n_id"]] for name in missing_parts}


class _Edges:
    """How many nodes and edges each hop of a batch has."""

    def __init__(
        self, source: TypedSource, blocks: Sequence[Block], num_hops: int, *, shared: bool
    ) -> None:
        self._hops, self._shared = num_hops, shared
        #: By relation and hop: of a batch whose hops share rows those of all hops so far.
        self._counts = [[0] * num_hops for _ in source.relations]
        #: By type and hop, those that there are after it.
        self._after = [[0] * num_hops for _ in source.types]
        for block in blocks:
            self._counts[block.relation][block.hop] = int(block.num_edges)
            after = self._after[block.src_type]
            after[block.hop] = max(after[block.hop], int(block.num_src))

    def added(self, relation: int) -> list[int]:
        """Edges that each hop added."""
        counts = self._counts[relation]
        return _steps(0, counts) if self._shared else counts

    def total(self, relation: int) -> int:
        """All edges of a relation."""
        return sum(self.added(relation))

    def nodes(self, kind: int, num_seeds: int) -> list[int]:
        """The seeds, and nodes that each hop added."""
        return [num_seeds, *_steps(num_seeds, self._after[kind])]


def _steps(first: int, counts: Sequence[int]) -> list[int]:
    """By how much each count is above all before; 0 says that nothing was added."""
    steps = []
    for count in counts:
        steps.append(max(0, count - first))
        first = max(first, count)
    return steps
