"""What a loop gets of a batch: objects of PyTorch around its arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gnnd.buffers import Buffers
from gnnd.errors import missing
from gnnd.geometric import torch_of
from gnnd.items import LinkItems
from gnnd.reader import Batch, Hop, Reader, Table
from gnnd.supply import Source

#: Forms of a batch.
FORMS = ("pyg", "layers", "blocks", "tensors")
#: Forms with a matrix for each layer.
LAYERED = ("layers", "blocks")


class Shape:
    """Makes what a loop gets of a batch that is lent.

    `numbers`: whether edges have their numbers, and with them what the source has of edges.
    """

    def __init__(
        self,
        form: str,
        transform: Callable[[Any], Any] | None,
        *,
        pin_memory: bool,
        numbers: bool,
        links: LinkItems | None = None,
    ) -> None:
        self._form = form
        self._transform = transform
        self._numbers = numbers
        self._links = links
        self._torch = torch_of("gnnd.loader()")
        self._buffers = Buffers()
        self._pins = bool(pin_memory) and self._torch.cuda.is_available()

    def made(self, reader: Reader, batch: Batch, source: Any) -> Any:
        """The batch in its form, of a `Source`. Nothing of it is in the record's memory."""
        parts = self._copied(reader, batch, source)
        if self._form == "blocks":
            made = self._blocks(reader, batch, parts, source)
        else:
            if self._form == "layers":
                parts |= self._layers(reader, batch)
            made = {**parts, **_sizes(batch)}
            if self._links is not None:
                made = self._with_links(reader, batch, made)
            if self._form != "tensors":
                made = _data(batch, made)
        return made if self._transform is None else self._transform(made)

    def _copied(self, reader: Reader, batch: Batch, source: Source) -> dict[str, Any]:
        torch = self._torch
        parts = {"n_id": self._empty((batch.num_nodes,), torch.int64)}
        if self._form not in LAYERED:
            parts["edge_index"] = self._empty((2, batch.num_edges), torch.int64)
            if batch.weighted:
                parts["edge_weight"] = self._empty((batch.num_edges,), torch.float32)
            if self._numbers:
                parts["e_id"] = self._empty((batch.num_edges,), torch.int64)
        rows = source.rows
        wanted = {} if rows is None else {"x": rows}
        if rows is None and source.has_features:
            facts = reader.facts
            kind = torch.float32 if facts.feature_bytes == 4 else torch.float16
            parts["x"] = self._empty((batch.num_nodes, facts.num_features), kind)
        if self._form != "blocks":  # Blocks have but the seeds' labels.
            wanted |= source.of_nodes
        tables = []
        for name, values in wanted.items():
            if self._is_plain(values):
                parts[name] = self._empty((batch.num_nodes, *values.shape[1:]), values.dtype)
                tables.append(table_of(values, parts[name]))

        def address(name: str) -> int | None:
            return parts[name].data_ptr() if name in parts else None

        reader.copy(
            features=address("x") if rows is None else None,
            nodes=address("n_id"),
            edges=address("edge_index"),
            weights=address("edge_weight"),
            numbers=address("e_id"),
            graph=source.edge_table.address if "e_id" in parts else None,
            tables=tables,
        )
        parts |= {name: wanted[name][parts["n_id"]] for name in wanted if name not in parts}
        if "e_id" in parts:
            _add_edges(parts, source.of_edges(parts["e_id"]))
        return parts

    def _with_links(self, reader: Reader, batch: Batch, made: Mapping[str, Any]) -> dict[str, Any]:
        """A batch has links in place of seeds, and none of what `data` may have of them."""
        assert self._links is not None
        replaced = ("batch_size", "edge_label", "edge_label_index")
        kept = {name: value for name, value in made.items() if name not in replaced}
        return {**kept, **self._links.copied(reader, batch, self._empty)}

    def _is_plain(self, values: Any) -> bool:
        """Whether rows can be copied as they are."""
        return (
            isinstance(values, self._torch.Tensor)
            and values.layout == self._torch.strided
            and values.device.type == "cpu"
            and values.is_contiguous()
            and values.dim() > 0
            and values.numel() > 0
            and not values.requires_grad
        )

    def _empty(self, shape: tuple[int, ...], kind: Any) -> Any:
        if self._pins:
            return self._torch.empty(shape, dtype=kind, pin_memory=True)
        return self._buffers.empty(shape, kind)

    def _hop(self, reader: Reader, batch: Batch, hop: int, table: int | None) -> _Rows:
        sizes = batch.hops[hop]
        rows = _Rows(
            self._empty((sizes.num_dst + 1,), self._torch.int64),
            self._empty((sizes.num_edges,), self._torch.int64),
            self._empty((sizes.num_edges,), self._torch.float32) if batch.weighted else None,
            None if table is None else self._empty((sizes.num_edges,), self._torch.int64),
        )
        addresses = [None if each is None else each.data_ptr() for each in rows.all]
        indptr, src, weights, numbers = addresses
        assert indptr is not None and src is not None
        reader.copy_hop(hop, indptr=indptr, src=src, weights=weights, numbers=numbers, graph=table)
        return rows

    def _hops(self, reader: Reader, batch: Batch, table: int | None = None) -> list[_Rows]:
        """Rows of each hop, from the seeds outward."""
        last = len(batch.hops) - 1
        if not batch.shared:
            return [self._hop(reader, batch, hop, table) for hop in range(last + 1)]
        whole = self._hop(reader, batch, last, table)
        return [whole.first(sizes) for sizes in batch.hops]

    def _layers(self, reader: Reader, batch: Batch) -> dict[str, Any]:
        """A matrix for each layer, outermost first, which torch multiplies fastest."""
        torch = self._torch
        hops = self._hops(reader, batch)
        ones = torch.ones(max((len(rows.src) for rows in hops), default=0))
        adjs: list[Any] = []
        for sizes, rows in zip(batch.hops, hops, strict=True):
            shape = (sizes.num_dst, sizes.num_src)
            values = ones[: sizes.num_edges]
            adjs.insert(0, torch.sparse_csr_tensor(rows.indptr, rows.src, values, size=shape))
        weights = [rows.weights for rows in reversed(hops)]
        return {"adjs": adjs, **({"edge_weights": weights} if batch.weighted else {})}

    def _blocks(
        self, reader: Reader, batch: Batch, parts: Mapping[str, Any], source: Source
    ) -> Any:
        try:
            import dgl  # type: ignore[import-not-found]
        except ImportError:
            raise missing("dgl", "dgl", "gnnd.loader(form='blocks')") from None
        torch = self._torch
        nodes = parts["n_id"]
        blocks: list[Any] = []
        table = source.edge_table.address if self._numbers else None
        for sizes, rows in zip(batch.hops, self._hops(reader, batch, table), strict=True):
            edges = ("csc", (rows.indptr, rows.src, torch.empty(0, dtype=torch.int64)))
            block = dgl.create_block(
                edges, num_src_nodes=sizes.num_src, num_dst_nodes=sizes.num_dst
            )
            block.srcdata[dgl.NID] = nodes[: sizes.num_src]
            block.dstdata[dgl.NID] = nodes[: sizes.num_dst]
            if rows.weights is not None:
                block.edata["w"] = rows.weights
            if rows.numbers is not None:
                block.edata[dgl.EID] = rows.numbers
                for key, value in source.of_edges(rows.numbers).items():
                    block.edata[key] = value
            blocks.insert(0, block)
        if "x" in parts:
            blocks[0].srcdata["feat"] = parts["x"]
        seeds = nodes[: batch.num_seeds]
        for key, value in source.of_nodes.items():
            blocks[-1].dstdata["label" if key == "y" else key] = value[seeds]
        return nodes, seeds, blocks


class _Rows:
    """A hop's compressed rows, each of a destination."""

    def __init__(self, indptr: Any, src: Any, weights: Any, numbers: Any) -> None:
        self.indptr, self.src, self.weights, self.numbers = indptr, src, weights, numbers

    @property
    def all(self) -> tuple[Any, Any, Any, Any]:
        """Its arrays."""
        return self.indptr, self.src, self.weights, self.numbers

    def first(self, sizes: Hop) -> _Rows:
        """The first rows, in the same memory."""
        cut = (None if each is None else each[: sizes.num_edges] for each in self.all[1:])
        return _Rows(self.indptr[: sizes.num_dst + 1], *cut)


def table_of(values: Any, out: Any) -> Table:
    """Rows of a tensor, and the tensor that the batch's are copied to."""
    num_rows = values.shape[0]
    row_bytes = values.numel() // num_rows * values.element_size()
    return Table(values.data_ptr(), num_rows, row_bytes, out.data_ptr())


def _data(batch: Batch, made: Mapping[str, Any]) -> Any:
    try:
        from torch_geometric.data import Data
    except ImportError:
        raise missing("torch_geometric", "pyg", "gnnd.loader(form='pyg')") from None
    data = Data(**made)
    data.num_nodes = batch.num_nodes
    return data


def _add_edges(parts: dict[str, Any], edges: Mapping[str, Any]) -> None:
    """Adds what edges have of their own, beside which a sampler's weights have another name."""
    if "edge_weight" in edges and "edge_weight" in parts:
        parts["sampler_weight"] = parts.pop("edge_weight")
    parts.update(edges)


def _sizes(batch: Batch) -> dict[str, Any]:
    """As NeighborLoader names them: nodes and edges that each hop added."""
    hops = batch.hops
    nodes = [batch.num_seeds] + [hop.num_src - hop.num_dst for hop in hops]
    before = 0
    edges = []
    for hop in hops:
        edges.append(hop.num_edges - (before if batch.shared else 0))
        before = hop.num_edges
    return {
        "batch_size": batch.num_seeds,
        "num_sampled_nodes": nodes,
        "num_sampled_edges": edges,
    }
