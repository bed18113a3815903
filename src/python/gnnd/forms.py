"""What a loader reads from and what it gives: objects of PyTorch around a batch's arrays."""

from __future__ import annotations

import os
import uuid
import warnings
import weakref
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any

import numpy as np

from gnnd.client import Client
from gnnd.dataset import Dataset
from gnnd.embedded import local
from gnnd.errors import Violation, missing, wrong
from gnnd.geometric import torch_of
from gnnd.reader import Batch, Reader
from gnnd.words import shown

#: Parts of a `Data` that a batch makes anew.
_OWN_KEYS = ("x", "adj_t", "edge_index", "n_id")
#: Forms of a batch.
FORMS = ("pyg", "blocks", "tensors")


class Source:
    """A graph of the daemon, and where rows and labels of its nodes are."""

    #: The object that it was made of; None: a dataset of the daemon.
    data: Any = None
    #: Of a loader that says no number; 0: all of the daemon's devices but one.
    default_samplers = 0

    def __init__(self, client: Client, dataset: Dataset) -> None:
        self.client = client
        self.dataset_id = dataset.id
        self._dataset = dataset
        self.num_nodes = dataset.num_nodes
        self.num_train = dataset.split["train"]

    @property
    def rows(self) -> Any:
        """A tensor of feature rows; None: those of the dataset are read from its file."""
        return None

    @property
    def has_features(self) -> bool:
        """Whether batches have `x`."""
        return True

    def of_nodes(self, nodes: Any) -> dict[str, Any]:
        """What else there is of these nodes, by its name."""
        return {"y": self._labels[nodes]} if self._dataset.num_classes > 0 else {}

    @cached_property
    def _labels(self) -> Any:
        path = os.path.join(self._dataset.path, "labels.npy")
        labels = torch_of("gnnd.loader()").from_numpy(np.load(path))
        return labels.long() if self._dataset.task == "CLASSIFICATION" else labels

    def seeds_of(self, given: Any) -> np.ndarray | None:
        """Ids of the nodes that a mask or a list names; None: the dataset's training nodes."""
        if given is None:
            return None
        values = np.asarray(given)
        if values.dtype == np.bool_:
            if values.shape != (self.num_nodes,):
                raise _wrong_seeds(given, f"a mask of {self.num_nodes:,} nodes")
            return np.flatnonzero(values).astype(np.int64)
        if values.ndim != 1 or values.dtype.kind not in "iu" or len(values) == 0:
            raise _wrong_seeds(given, "a mask, or ids of nodes")
        if values.min() < 0 or values.max() >= self.num_nodes:
            raise _wrong_seeds(given, f"ids from 0 to {self.num_nodes - 1:,}")
        return values.astype(np.int64)

    def close(self) -> None:
        """Nothing is left to do."""


class DataSource(Source):
    """A `Data` of this process: the daemon gets its edges, and all else stays where it is."""

    def __init__(self, data: Any, client: Client | None) -> None:
        if client is None:
            client = _own_client()
            self.default_samplers = min(len(os.sched_getaffinity(0)), 8)
        super().__init__(client, _imported(data, client))
        self.data = data

    @property
    def rows(self) -> Any:
        """Its `x`, where it has one."""
        return getattr(self.data, "x", None)

    @property
    def has_features(self) -> bool:
        """Whether it has `x`."""
        return self.rows is not None

    def of_nodes(self, nodes: Any) -> dict[str, Any]:
        """Its other attributes of nodes, as they are now: users add and delete some."""
        data = self.data
        others = [key for key in data.keys() if key not in _OWN_KEYS and data.is_node_attr(key)]
        return {key: data[key][nodes] for key in others}

    def seeds_of(self, given: Any) -> np.ndarray | None:
        """The same; None: all nodes."""
        found = super().seeds_of(given)
        return np.arange(self.num_nodes, dtype=np.int64) if found is None else found


def source_of(data: Any, client: Client | None) -> Source:
    """The source of a loader's batches: a `Data`, or a dataset by its name."""
    if isinstance(data, (str, Dataset)):
        if client is None:
            text = "a dataset is of a daemon: expected client=gnnd.connect() beside it"
            raise wrong("gnnd.loader()", Violation("client", text))
        return Source(client, data if isinstance(data, Dataset) else client.dataset(data))
    is_graph = hasattr(data, "is_node_attr") and ("edge_index" in data or "adj_t" in data)
    if not is_graph:
        text = f"{shown(data)}: expected a torch_geometric Data with edge_index, or a dataset's id"
        raise wrong("gnnd.loader()", Violation("data", text))
    left_out = [name for name in data.keys() if name != "edge_index" and data.is_edge_attr(name)]
    if left_out:
        text = f"attributes of edges are left out of batches: {', '.join(left_out)}"
        warnings.warn(f"gnnd.loader(): {text}", stacklevel=3)
    return DataSource(data, client)


def _wrong_seeds(given: Any, expected: str) -> Exception:
    return wrong("gnnd.loader()", Violation("input_nodes", f"{shown(given)}: expected {expected}"))


#: Devices of a daemon of this process alone, one for each Sampler and one to lend.
_OWN_DEVICES = 65


@cache
def _own_client() -> Client:
    """A daemon of this process alone, which all of its loaders share."""
    # Devices cost nothing until a loader asks for them.
    return local(cpu_devices=_OWN_DEVICES, share_cores=True)


#: Datasets of edges that were imported, by the edges' object.
_imports: dict[tuple[int, int], tuple[weakref.ref[Any], int, Dataset]] = {}


def _imported(data: Any, client: Client) -> Dataset:
    """The edges as a dataset; its one column of features is read by nobody."""
    edges = data.edge_index if "edge_index" in data else data.adj_t
    key = (id(edges), id(client))
    known = _imports.get(key)
    version = getattr(edges, "_version", 0)
    if known is not None and known[0]() is edges and known[1] == version:
        return known[2]
    if "edge_index" in data:
        pairs = edges.cpu().numpy()
    elif hasattr(edges, "coo"):  # A SparseTensor, whose rows are destinations.
        row, column, _ = edges.coo()
        pairs = np.stack([column.cpu().numpy(), row.cpu().numpy()])
    else:
        pairs = edges.to_sparse_coo().coalesce().indices().flip(0).cpu().numpy()
    dataset = client.import_arrays(
        f"loader-{uuid.uuid4().hex[:12]}",
        features=np.zeros((data.num_nodes, 1), np.float16),
        edge_index=pairs,
    )
    _imports[key] = (weakref.ref(edges), version, dataset)
    return dataset


class Shape:
    """Makes what a loop gets of a batch that is lent."""

    def __init__(self, form: str, transform: Callable[[Any], Any] | None, pin_memory: bool) -> None:
        self._form = form
        self._transform = transform
        self._torch = torch_of("gnnd.loader()")
        self._pins = bool(pin_memory) and self._torch.cuda.is_available()

    def made(self, reader: Reader, batch: Batch, source: Source) -> Any:
        """The batch in its form. Nothing of it is in the record's memory."""
        parts = self._copied(reader, batch, source)
        if self._form == "pyg":
            made = self._pyg(batch, parts, source)
        elif self._form == "blocks":
            made = self._blocks(reader, batch, parts, source)
        else:
            made = {**parts, **source.of_nodes(parts["n_id"]), **_sizes(batch)}
        return made if self._transform is None else self._transform(made)

    def _copied(self, reader: Reader, batch: Batch, source: Source) -> dict[str, Any]:
        torch = self._torch
        parts = {"n_id": self._empty((batch.num_nodes,), torch.int64)}
        if self._form != "blocks":
            parts["edge_index"] = self._empty((2, batch.num_edges), torch.int64)
            if batch.weighted:
                parts["edge_weight"] = self._empty((batch.num_edges,), torch.float32)
        rows, given = source.rows, None
        if source.has_features:
            given = self._own_rows(rows)
            if rows is None:
                facts = reader.facts
                kind = torch.float32 if facts.feature_bytes == 4 else torch.float16
                parts["x"] = self._empty((batch.num_nodes, facts.num_features), kind)
            elif given is not None:
                parts["x"] = self._empty((batch.num_nodes, *rows.shape[1:]), rows.dtype)

        def address(name: str) -> int | None:
            return parts[name].data_ptr() if name in parts else None

        reader.copy(
            features=address("x"),
            nodes=address("n_id"),
            edges=address("edge_index"),
            weights=address("edge_weight"),
            rows=given,
        )
        if source.has_features and "x" not in parts:
            parts["x"] = rows[parts["n_id"]]
        return parts

    def _own_rows(self, rows: Any) -> tuple[int, int, int] | None:
        """Address, number and bytes of rows that can be copied as they are."""
        is_plain = (
            rows is not None
            and isinstance(rows, self._torch.Tensor)
            and rows.layout == self._torch.strided
            and rows.device.type == "cpu"
            and rows.is_contiguous()
            and rows.dim() > 0
            and not rows.requires_grad
        )
        if not is_plain or rows.shape[0] == 0:
            return None
        row_bytes = rows.numel() // rows.shape[0] * rows.element_size()
        return None if row_bytes % 2 else (rows.data_ptr(), rows.shape[0], row_bytes)

    def _empty(self, shape: tuple[int, ...], kind: Any) -> Any:
        return self._torch.empty(shape, dtype=kind, pin_memory=self._pins)

    def _pyg(self, batch: Batch, parts: Mapping[str, Any], source: Source) -> Any:
        try:
            from torch_geometric.data import Data
        except ImportError:
            raise missing("torch_geometric", "pyg", "gnnd.loader(form='pyg')") from None
        made = Data(**parts, **source.of_nodes(parts["n_id"]))
        made.num_nodes = batch.num_nodes
        for key, value in _sizes(batch).items():
            made[key] = value
        return made

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
        for hop, sizes in enumerate(batch.hops):
            indptr = self._empty((sizes.num_dst + 1,), torch.int64)
            src = self._empty((sizes.num_edges,), torch.int64)
            weights = self._empty((sizes.num_edges,), torch.float32) if batch.weighted else None
            reader.copy_hop(
                hop,
                indptr=indptr.data_ptr(),
                src=src.data_ptr(),
                weights=None if weights is None else weights.data_ptr(),
            )
            edges = ("csc", (indptr, src, torch.empty(0, dtype=torch.int64)))
            block = dgl.create_block(
                edges, num_src_nodes=sizes.num_src, num_dst_nodes=sizes.num_dst
            )
            block.srcdata[dgl.NID] = nodes[: sizes.num_src]
            block.dstdata[dgl.NID] = nodes[: sizes.num_dst]
            if weights is not None:
                block.edata["w"] = weights
            blocks.insert(0, block)
        if "x" in parts:
            blocks[0].srcdata["feat"] = parts["x"]
        seeds = nodes[: batch.num_seeds]
        for key, value in source.of_nodes(seeds).items():
            blocks[-1].dstdata["label" if key == "y" else key] = value
        return nodes, seeds, blocks


def _sizes(batch: Batch) -> dict[str, Any]:
    """As NeighborLoader names them: nodes and edges that each hop added."""
    hops = batch.hops
    nodes = [batch.num_seeds] + [hop.num_src - hop.num_dst for hop in hops]
    before = 0
    edges = []
    for hop in hops:
        is_added = len(hops) > 1 and batch.num_edges == hops[-1].num_edges
        edges.append(hop.num_edges - (before if is_added else 0))
        before = hop.num_edges
    return {
        "batch_size": batch.num_seeds,
        "num_sampled_nodes": nodes,
        "num_sampled_edges": edges,
    }
