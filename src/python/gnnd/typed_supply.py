"""Where a loader's batches of several types come from: a `HeteroData` of this process."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np

from gnnd.client import Client
from gnnd.edges import EdgeTable, pairs_of
from gnnd.errors import Violation, wrong
from gnnd.fanouts import OTHERS, fanouts_of
from gnnd.geometric import torch_of
from gnnd.supply import once, own_client
from gnnd.typed import TypedGraph
from gnnd.words import one_of, shown

Relation = tuple[str, str, str]
#: Parts of a type, or of a relation, that a batch makes anew.
_OWN_KEYS = ("adj_t", "edge_index", "n_id", "e_id", "num_nodes", "batch_size", "input_id")


def has_types(data: Any) -> bool:
    """Whether batches of it are `HeteroData`."""
    return hasattr(data, "node_types") and hasattr(data, "edge_types")


def refuse(*, form: str, drawn: Any, weight_attr: str | None) -> None:
    """Raises where several types lack what is asked for."""
    found = []
    if form != "pyg":
        text = f"{shown(form)}: not of several types yet; expected 'pyg'"
        found.append(Violation("form", text))
    if drawn != "KHOP_UNIFORM" and weight_attr is None:
        text = f"{shown(drawn)}: not of several types yet; expected KHOP_UNIFORM"
        found.append(Violation("sampling.algorithm", text))
    if weight_attr is not None:
        text = f"{shown(weight_attr)}: edges of several types have no weights yet; expected None"
        found.append(Violation("weight_attr", text))
    if found:
        raise wrong("gnnd.loader()", *found)


class TypedSource:
    """A `HeteroData`: the daemon gets its edges, and all else stays where it is.

    `input_nodes` of a loader: a type's name, or (name, mask or ids or None).
    """

    #: Of a loader that says no number; 0: all of the daemon's devices but one.
    default_samplers = 0
    #: Of its own there are none.
    num_train = 0

    def __init__(self, data: Any, client: Client | None, input_nodes: Any) -> None:
        if client is None:
            client = own_client()
            self.default_samplers = min(len(os.sched_getaffinity(0)), 8)
        self.data = data
        self.client = client
        #: The type that has the seeds, and which of its nodes they are.
        self.target, self.input_nodes = _asked(data, input_nodes)
        self._counts = _counts_of(data)
        self._import = once(_edges_of(data), client, lambda: _Import(data, self._counts, client))
        dataset = self._import.dataset
        self.dataset_id, self.digest = dataset.id, dataset.digest
        #: The job's relations, in its order of them.
        self.relations: list[Relation] = list(dataset.relations)
        ends = {end for source, _, target in self.relations for end in (source, target)}
        others = [name for name in dataset.node_types if name in ends and name != self.target]
        #: The job's types, in its order of them: that of the seeds first.
        self.types: list[str] = [self.target, *others]
        self._places: Any = None

    def spec_of(self, num_neighbors: Any) -> dict[str, Any]:
        """The parts of a spec that name relations and their numbers of neighbours."""
        wrongs: list[Violation] = []
        if isinstance(num_neighbors, Mapping):
            wrongs += self._wrong_relations(num_neighbors)
        else:
            num_neighbors = [int(number) for number in num_neighbors]
        parts = {} if wrongs else fanouts_of(num_neighbors, wrongs)
        if wrongs:
            named = (Violation("num_neighbors", each.description) for each in wrongs)
            raise wrong("gnnd.loader()", *named)
        relations = {**parts.get("relations", {}), "target": self.target}
        # Nobody runs the model: it tells that the dataset has several types.
        return {**parts, "relations": relations, "model": {"type": "RSAGE"}}

    def _wrong_relations(self, given: Mapping[Any, Any]) -> list[Violation]:
        names = {"__".join(relation) for relation in self.relations}
        asked = {key if isinstance(key, str) else "__".join(map(str, key)) for key in given}
        wrongs = [
            Violation("num_neighbors", one_of(name, sorted(names)))
            for name in sorted(asked - names - {OTHERS})
        ]
        left = sorted(names - asked)
        if left and OTHERS not in asked:
            text = f"has none of {', '.join(left)}: expected a list of each, or one of '*'"
            wrongs.append(Violation("num_neighbors", text))
        return wrongs

    def seeds_of(self, given: Any) -> np.ndarray:
        """Ids of the nodes that a mask or a list names; None: all of the type."""
        count = self._counts[self.target]
        if given is None:
            return np.arange(count, dtype=np.int64)
        values = np.asarray(given)
        if values.dtype == np.bool_:
            if values.shape != (count,):
                raise _wrong_seeds(given, f"a mask of {count:,} nodes")
            found = np.flatnonzero(values).astype(np.int64)
        else:
            if values.ndim != 1 or values.dtype.kind not in "iu":
                raise _wrong_seeds(given, "a mask, or ids of nodes")
            found = values.astype(np.int64)
        if len(found) == 0:
            raise _wrong_seeds(given, "one node or more")
        if found.min() < 0 or found.max() >= count:
            raise _wrong_seeds(given, f"ids from 0 to {count - 1:,}")
        return found

    def places_of(self, seeds: Any) -> Any:
        """Which of the input nodes these are, by their ids."""
        if self._places is None:
            torch = torch_of("gnnd.loader()")
            given = torch.from_numpy(self.seeds_of(self.input_nodes))
            self._places = torch.empty(self._counts[self.target], dtype=torch.int64)
            self._places[given] = torch.arange(len(given))
        return self._places[seeds]

    def of_nodes(self, kind: str) -> dict[str, Any]:
        """What there is of all nodes of a type, as it is now: users add and delete some."""
        store = self.data[kind]
        named = [key for key in store if key not in _OWN_KEYS and store.is_node_attr(key)]
        return {key: store[key] for key in named}

    @property
    def edge_names(self) -> list[str]:
        """Attributes of edges, of all relations."""
        found = (self._names(relation) for relation in self.data.edge_types)
        return sorted({key for names in found for key in names})

    def _names(self, relation: Relation) -> list[str]:
        store = self.data[relation]
        return [key for key in store if key not in _OWN_KEYS and store.is_edge_attr(key)]

    def of_edges(self, relation: Relation, numbers: Any) -> dict[str, Any]:
        """What there is of these edges of a relation, by its name."""
        store = self.data[relation]
        return {key: store[key][numbers] for key in self._names(relation)}

    def edge_table(self, relation: Relation) -> EdgeTable:
        """A relation's edges by their columns of `edge_index`."""
        tables: dict[Relation, EdgeTable] = self._import.tables
        if relation not in tables:
            sources, targets = pairs_of(self.data[relation])
            num_sources, num_targets = (self._counts[end] for end in (relation[0], relation[2]))
            tables[relation] = EdgeTable(sources, targets, num_targets, num_sources=num_sources)
        return tables[relation]

    def close(self) -> None:
        """Nothing is left to do."""


class _Import:
    """Edges of a `HeteroData` as a dataset, whose types have nothing else."""

    def __init__(self, data: Any, counts: dict[str, int], client: Client) -> None:
        edges = {
            "__".join(relation): {"pairs": np.stack(pairs_of(data[relation]))}
            for relation in data.edge_types
        }
        graph = TypedGraph(counts, {}, edges)
        name = f"loader-{uuid.uuid4().hex[:12]}"
        self.dataset = client.import_typed(name, graph, {"reverse": False})
        #: Of edges with numbers, as far as somebody wants them.
        self.tables: dict[Relation, EdgeTable] = {}


def _edges_of(data: Any) -> list[Any]:
    stores = [data[relation] for relation in data.edge_types]
    return [store.edge_index if "edge_index" in store else store.adj_t for store in stores]


def _counts_of(data: Any) -> dict[str, int]:
    counts = {name: data[name].num_nodes for name in data.node_types}
    unknown = [name for name, count in counts.items() if count is None]
    found = [
        Violation(name, "nobody knows how many nodes it has: set num_nodes") for name in unknown
    ]
    for relation in data.edge_types:
        if "edge_index" not in data[relation] and "adj_t" not in data[relation]:
            found.append(Violation("__".join(relation), "has no edge_index"))
    if not data.edge_types:
        found.append(Violation("data", "has no relation"))
    if found:
        raise wrong("gnnd.loader()", *found)
    return {name: int(count) for name, count in counts.items()}


def _asked(data: Any, given: Any) -> tuple[str, Any]:
    """The type of the seeds, and which of its nodes they are; None: all."""
    is_pair = isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[0], str)
    name, nodes = (given[0], given[1]) if is_pair else (given, None)
    if not isinstance(name, str):
        what = f"{shown(given)}: expected (type, mask or ids), or a type of several"
        raise wrong("gnnd.loader()", Violation("input_nodes", what))
    if name not in data.node_types:
        raise wrong("gnnd.loader()", Violation("input_nodes", one_of(name, data.node_types)))
    return name, nodes


def _wrong_seeds(given: Any, expected: str) -> Exception:
    return wrong("gnnd.loader()", Violation("input_nodes", f"{shown(given)}: expected {expected}"))
