"""Where a loader's batches come from: a `Data` of this process, or a dataset of the daemon."""

from __future__ import annotations

import os
import uuid
import weakref
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from gnnd.client import Client
from gnnd.dataset import Dataset
from gnnd.edges import EdgeTable, pairs_of
from gnnd.embedded import local
from gnnd.errors import Violation, wrong
from gnnd.geometric import torch_of
from gnnd.words import shown

#: Parts of a `Data` that a batch makes anew.
_OWN_KEYS = ("x", "adj_t", "edge_index", "n_id", "e_id")


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
        #: SHA-256: the same for the same graph, and of a dataset for its training nodes, too.
        self.digest = dataset.digest
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

    @property
    def of_nodes(self) -> dict[str, Any]:
        """What else there is of all nodes, by its name."""
        return {"y": self._labels} if self._dataset.num_classes > 0 else {}

    @property
    def edge_names(self) -> list[str]:
        """Attributes of its edges."""
        return []

    def of_edges(self, numbers: Any) -> dict[str, Any]:
        """What there is of these edges, by its name."""
        del numbers
        return {}

    @cached_property
    def edge_table(self) -> EdgeTable:
        """Its edges by their numbers: positions in `indices.npy`."""
        indptr, indices = (
            np.load(os.path.join(self._dataset.path, f"{name}.npy"), mmap_mode="r")
            for name in ("indptr", "indices")
        )
        targets = np.repeat(np.arange(self.num_nodes), np.diff(indptr))
        return EdgeTable(indices, targets, self.num_nodes)

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

    def __init__(self, data: Any, client: Client | None, weight_attr: str | None) -> None:
        if client is None:
            client = own_client()
            self.default_samplers = min(len(os.sched_getaffinity(0)), 8)
        self._import = _imported(data, client, weight_attr)
        super().__init__(client, self._import.dataset)
        self.data = data

    @property
    def rows(self) -> Any:
        """Its `x`, where it has one."""
        return getattr(self.data, "x", None)

    @property
    def has_features(self) -> bool:
        """Whether it has `x`."""
        return self.rows is not None

    @property
    def of_nodes(self) -> dict[str, Any]:
        """Its other attributes of nodes, as they are now: users add and delete some."""
        data = self.data
        others = [key for key in data.keys() if key not in _OWN_KEYS and data.is_node_attr(key)]
        return {key: data[key] for key in others}

    @property
    def edge_names(self) -> list[str]:
        """Those that torch_geometric takes for such, as they are now."""
        return [key for key in self.data.keys() if key not in _OWN_KEYS and self._is_of_edges(key)]

    def of_edges(self, numbers: Any) -> dict[str, Any]:
        """Its attributes of edges."""
        data = self.data
        return {
            key: data[key].index_select(data.__cat_dim__(key, data[key]), numbers)
            for key in self.edge_names
        }

    @property
    def edge_table(self) -> EdgeTable:
        """Its edges by their columns of `edge_index`, or entries of `adj_t`, row after row."""
        return self._import.table_of(self.data)

    def _is_of_edges(self, key: str) -> bool:
        return isinstance(self.data[key], torch_of("gnnd.loader()").Tensor) and bool(
            self.data.is_edge_attr(key)
        )

    def seeds_of(self, given: Any) -> np.ndarray | None:
        """The same; None: all nodes."""
        found = super().seeds_of(given)
        return np.arange(self.num_nodes, dtype=np.int64) if found is None else found


def source_of(data: Any, client: Client | None, weight_attr: str | None) -> Source:
    """The source of a loader's batches: a `Data`, or a dataset by its name."""
    if isinstance(data, (str, Dataset)):
        if client is None:
            text = "a dataset is of a daemon: expected client=gnnd.connect() beside it"
            raise wrong("gnnd.loader()", Violation("client", text))
        if weight_attr is not None:
            text = f"{shown(weight_attr)}: a dataset has its own weights; expected None"
            raise wrong("gnnd.loader()", Violation("weight_attr", text))
        dataset = data if isinstance(data, Dataset) else client.dataset(data)
        if dataset.node_types:
            text = f"{dataset.id} has several types: expected the HeteroData that it came from"
            raise wrong("gnnd.loader()", Violation("data", text))
        return Source(client, dataset)
    is_graph = hasattr(data, "is_node_attr") and ("edge_index" in data or "adj_t" in data)
    if not is_graph:
        text = f"{shown(data)}: expected a torch_geometric Data with edge_index, or a dataset's id"
        raise wrong("gnnd.loader()", Violation("data", text))
    if weight_attr is not None and weight_attr not in data:
        text = f"{shown(weight_attr)}: the data has no such attribute"
        raise wrong("gnnd.loader()", Violation("weight_attr", text))
    return DataSource(data, client, weight_attr)


def _wrong_seeds(given: Any, expected: str) -> Exception:
    return wrong("gnnd.loader()", Violation("input_nodes", f"{shown(given)}: expected {expected}"))


#: Devices of a daemon of this process alone, one for each Sampler and one to lend.
_OWN_DEVICES = 65


@cache
def own_client() -> Client:
    """A daemon of this process alone, which all of its loaders share."""
    # Devices cost nothing until a loader asks for them.
    return local(cpu_devices=_OWN_DEVICES, share_cores=True)


class _Import:
    """Edges of a `Data` as a dataset, whose one column of features is read by nobody."""

    def __init__(self, data: Any, client: Client, weights: Any) -> None:
        self._num_nodes = int(data.num_nodes)
        #: Edges that may be drawn; None: all.
        self._kept = None if weights is None else np.flatnonzero(weights.detach().cpu() > 0)
        self._table: EdgeTable | None = None
        self.dataset = client.import_arrays(
            f"loader-{uuid.uuid4().hex[:12]}",
            features=np.zeros((self._num_nodes, 1), np.float16),
            # A copy of many edges is as large as they are.
            edge_index=(
                data.edge_index.cpu().numpy() if "edge_index" in data else np.stack(pairs_of(data))
            ),
            **({} if weights is None else {"edge_weights": weights.detach().cpu().flatten()}),
        )

    def table_of(self, data: Any) -> EdgeTable:
        """The edges by their numbers; `data` has them still."""
        if self._table is None:
            self._table = EdgeTable(*pairs_of(data), self._num_nodes, self._kept)
        return self._table


#: What was imported, by the objects of edges and weights, and their versions then.
_imports: dict[tuple[int, ...], tuple[list[weakref.ref[Any]], list[int], Any]] = {}


def _imported(data: Any, client: Client, weight_attr: str | None) -> _Import:
    weights = None if weight_attr is None else data[weight_attr]
    edges = data.edge_index if "edge_index" in data else data.adj_t
    parts = [edges] if weights is None else [edges, weights]
    found: _Import = once(parts, client, lambda: _Import(data, client, weights))
    return found


def once(parts: Sequence[Any], client: Client, make: Callable[[], Any]) -> Any:
    """What `make` gave for these objects, as long as all live and none has changed."""
    key = (*(id(part) for part in parts), id(client))
    versions = [getattr(part, "_version", 0) for part in parts]
    known = _imports.get(key)
    if known is not None and known[1] == versions:
        return known[2]
    made = make()

    def forget(_: Any) -> None:
        # Another object may get the number of one that is gone.
        _imports.pop(key, None)

    _imports[key] = ([weakref.ref(part, forget) for part in parts], versions, made)
    return made
