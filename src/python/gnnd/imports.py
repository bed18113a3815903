"""Datasets in: each of a client's imports, from the objects that people have to the daemon."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gnnd_formats
from gnnd import networks, saved, sources, staging, tables, typed
from gnnd.calls import public
from gnnd.choices import request_of
from gnnd.connection import Connection
from gnnd.dataset import Dataset, Report, Task, import_source
from gnnd.identity import PathLike
from gnnd.v1 import dataset_service_pb2, host_service_pb2

#: Shares of the labelled nodes for validation and test, and maybe a seed.
RandomSplit = tuple[float, float] | tuple[float, float, int]


class Imports:
    """The part of a client that imports. `connection` and `host` are the client's."""

    connection: Connection
    host: host_service_pb2.Host

    @property
    def is_same_host(self) -> bool:
        """Whether the daemon sees this process's files."""
        return self.connection.is_local_socket or self.host.hostname == socket.gethostname()

    @public
    def import_arrays(
        self,
        name: str,
        *,
        features: Any = None,
        labels: Any = None,
        train: Any = None,
        val: Any = None,
        test: Any = None,
        edge_index: Any = None,
        indptr: Any = None,
        indices: Any = None,
        edge_weights: Any = None,
        links: Mapping[str, Any] | None = None,
        class_names: Sequence[str] | None = None,
        node_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        undirected: bool = False,
        task: Task | None = None,
        split: int | None = None,
        feature_dtype: str | None = None,
        made_features: str | None = None,
        random_split: RandomSplit | None = None,
        link: bool = False,
        staging: PathLike | None = None,
        progress: Report | bool = False,
    ) -> Dataset:
        """Imports a graph of N nodes, E edges, F features a node and C classes.

        Arrays may be of numpy, torch, pandas, polars, pyarrow or sparse ones of scipy and torch
        (which are written in full), or lists, and are not sent: they are written to files that the
        daemon takes over, or, where they were opened by `numpy.load(..., mmap_mode="r")`, are such
        files already. Numbers keep their types: what float32 has not is told or refused.

        Args:
            name: Lower-case letters, digits and hyphens; what jobs call it.
            features: [N, F], floats or integers; float16 stays so, others become float32. Without
                them the daemon makes some, as `made_features` says.
            labels: [N], classes from 0 to C - 1, or -1 for none; [N] texts, which become classes,
                and "", "nan", "NA", "None" none; [N, C] of 0 and 1, which labels a node has, -1 or
                NaN where that is not known; or [N], [N, C] of floats to regress on, NaN where they
                are not known.
            train: [n] node ids, or a mask [N] of bool or of 0 and 1; [N, K] for K splits. So are
                `val`, `test`.
            val: Nodes by which the best epoch is found.
            test: Nodes that are predicted at the end; none by default.
            edge_index: [2, E], sources above targets, as in torch_geometric. A target learns from
                its source; edges without direction must be there in both.
            indptr: [N + 1], in place of `edge_index`: where the row of each target starts.
            indices: [E], beside `indptr`: the sources, row after row.
            edge_weights: [E], 0 or more, in the order of the edges; for weighted sampling.
            links: `{"train": …, "val": …, "test": …}`, pairs [2, L] or [L, 2] of nodes that jobs
                of links learn and are judged by, or `(pairs, labels)` with what is known of each,
                [L] or [L, K]; and maybe `val_negatives` and `test_negatives` [L, k]: targets that
                are no links of each pair's source; or `val_negative_pairs` and
                `test_negative_pairs`, pairs that are no links, one pool for all.
            class_names: C texts, for people.
            node_names: N texts, for people.
            feature_names: F texts, by which a model knows its columns in another dataset; of a
                frame those of its columns.
            undirected: Says that each edge is there in both directions; nothing is added.
            task: What is learnt of a node. By default what `labels` tell: fractions are targets,
                one whole number a node is its class, several of 0 and 1 are labels.
            split: Which column of masks [N, K], from 0.
            feature_dtype: `"float32"` or `"float16"`; rounds or widens features.
            made_features: `"degree"` or `"identity"`, of a graph without features.
            random_split: Shares of the labelled nodes for validation and test, and maybe a seed, in
                place of `train`, `val` and `test`: `(0.2, 0.2)`, `(0.2, 0.2, 7)`.
            link: Lets the dataset share the caller's own mapped files, on one disk, which must then
                never change. By default they are copied.
            staging: A folder for the files that the daemon sees under the same path; by default one
                beside its state directory. For daemons with `sources_dir`, or on other hosts.
            progress: True prints how far the import is; a function gets (share, message).

        Raises:
            InvalidRequest: An argument is of a type, or has a value, that no import takes.
            ImportFailed: The arrays do not fit together; `violations` names each problem's file.
            AlreadyExists: There is such a dataset.
        """
        arrays = {
            **{"features": features, "labels": labels, "train": train, "val": val, "test": test},
            **{"edge_index": edge_index, "indptr": indptr, "indices": indices},
            **{"edge_weights": edge_weights, "links": links},
        }
        names = {"class_names": class_names, "node_names": node_names}
        names["feature_names"] = feature_names
        choices = {
            **{"task": task, "split": split, "feature_dtype": feature_dtype, "link": link},
            **{"made_features": made_features, "random_split": random_split},
            **{"staging": staging, "progress": progress},
        }
        graph = sources.from_arrays({**arrays, **names, **choices, "undirected": undirected})
        return self._import_graph(name, graph, choices)

    @public
    def import_pyg(self, data: Any, name: str, *, trust: bool = False, **options: Any) -> Dataset:
        """Imports a `torch_geometric.data.Data`: `x`, `y`, `edge_index` or `adj_t`, and masks.

        `data` may also be a `HeteroData`, a dataset of one graph, a file of `torch.save`
        (`data.pt`) or a dataset's folder with `processed`: no code of it runs unless you `trust`
        it. `train_mask` and `val_mask` may be of 0 and 1, or ids in `train_idx` and so on;
        `options` are those of `import_arrays`, and stand above what `data` says. Of links it takes
        what `RandomLinkSplit` returns, `(train, val, test)`: the edges of the first are those of
        messages. A `HeteroData` of several types becomes a dataset of several types; `options` are
        then `feature_dtype`, `task`, `random_split`, `reverse` (False: no relation is stored in the
        other direction, too, as `rev_NAME`), `staging` and `progress`.
        """
        if isinstance(data, (str, os.PathLike)):
            data = saved.torch_graph(data, trust=trust)
        if isinstance(data, gnnd_formats.Graph):
            return self._import_graph(name, sources.from_file(data, options), options)
        if isinstance(data, gnnd_formats.TypedGraph):
            return self.import_typed(name, typed.from_file(data, options), options)
        several = typed.graph_in(data)
        if several is not None:
            return self.import_typed(name, typed.from_hetero(several, options), options)
        return self._import_graph(name, sources.from_pyg(data, options), options)

    @public
    def import_scipy(self, adjacency: Any, name: str, **options: Any) -> Dataset:
        """Imports a SciPy sparse [N, N] with `adjacency[u, v]` for an edge u → v.

        Values other than 1 become edge weights; a cell that comes twice is two edges. Features,
        labels and splits are `options` of `import_arrays`. `adjacency` may be the path of a .npz or
        .mtx file.
        """
        if isinstance(adjacency, (str, os.PathLike)):
            adjacency = saved.scipy_matrix(adjacency)
        return self._import_graph(name, sources.from_scipy(adjacency, options), options)

    @public
    def import_networkx(self, graph: Any, name: str, **options: Any) -> Dataset:
        """Imports a networkx graph; nodes are numbered in its order, and keep their names.

        `features`, `labels` and `split` name attributes of nodes: a number or a list of F numbers
        (or several attributes, `features=["age", "height"]`), a class (number or text), a target or
        a list of labels or targets, and one of `"train"`, `"val"`, `"test"`; or are arrays in that
        order, or mappings by nodes. A node without a label has none.
        `weight` names an edge attribute. Graphs without direction are stored in both; parallel
        edges and loops are kept. `graph` may be the path of a GML, GraphML, GEXF or node-link file.
        """
        if isinstance(graph, (str, os.PathLike)):
            graph = saved.networkx_graph(graph)
        found = networks.from_networkx(graph, options)
        others = {key: value for key, value in options.items() if key != "split"}
        return self._import_graph(name, found, others)

    @public
    def import_dgl(self, graph: Any, name: str, **options: Any) -> Dataset:
        """Imports a homogeneous `dgl.DGLGraph` with `ndata` feat, label, train_mask, val_mask.

        Or what `dgl.load_graphs(path)` gave, of one graph, or the path itself, for which DGL is not
        needed. Of links: a dataset with `train_edges`, `val_edges` and `test_edges`, as
        `AsLinkPredDataset` makes them.
        """
        if isinstance(graph, (str, os.PathLike)):
            found = sources.from_file(saved.graph_in("DGL", graph), options)
        else:
            found = sources.from_dgl(graph, options)
        return self._import_graph(name, found, options)

    @public
    def import_ogb(self, dataset: Any, name: str, **options: Any) -> Dataset:
        """Imports an OGB dataset of one graph: `NodePropPredDataset` or `LinkPropPredDataset`.

        Nodes have one label each; links are split as the dataset splits them, and ranked among its
        own negatives where each link has some (`target_node_neg`), or found in its pool of them
        (`edge_neg`), as OGB's evaluator does. Where the dataset says that edges are stored once
        (`add_inverse_edge`) it has added them.
        """
        return self._import_graph(name, sources.from_ogb(dataset, options), options)

    @public
    def import_frames(
        self,
        nodes: Any,
        edges: Any,
        name: str,
        *,
        directed: bool = False,
        task: Task | None = None,
        feature_dtype: str | None = None,
        ignored_columns: Sequence[str] | None = None,
        made_features: str | None = None,
        random_split: RandomSplit | None = None,
        progress: Report | bool = False,
        staging: PathLike | None = None,
    ) -> Dataset:
        """Imports two tables: frames of pandas or polars, pyarrow tables. Needs pyarrow.

        `nodes` has `id`, `label`, `split` and columns of numbers, or of lists of numbers, for
        features; `edges` has `source`, `target` and maybe `weight`, as docs/datasets.md says of
        tables. Columns that are called by numbers are so by their texts. Edges are stored in both
        directions unless `directed`. `ignored_columns` are no features. Tables are written to
        Parquet files in pieces of 65,536 rows.
        """
        put = {"nodes": (tables.put_frame, nodes), "edges": (tables.put_frame, edges)}
        choices = {
            **{"directed": directed, "task": task, "feature_dtype": feature_dtype},
            **{"ignored_columns": ignored_columns, "made_features": made_features},
            **{"random_split": random_split, "progress": progress, "staging": staging},
        }
        return self._import_tables(name, put, choices)

    @public
    def import_parquet(
        self,
        nodes: PathLike,
        edges: PathLike,
        name: str,
        *,
        directed: bool = False,
        task: Task | None = None,
        feature_dtype: str | None = None,
        ignored_columns: Sequence[str] | None = None,
        made_features: str | None = None,
        random_split: RandomSplit | None = None,
        progress: Report | bool = False,
        staging: PathLike | None = None,
    ) -> Dataset:
        """Imports two Parquet files with the columns of `import_frames`, which are not copied."""
        put = {"nodes": (tables.put_file, nodes), "edges": (tables.put_file, edges)}
        choices = {
            **{"directed": directed, "task": task, "feature_dtype": feature_dtype},
            **{"ignored_columns": ignored_columns, "made_features": made_features},
            **{"random_split": random_split, "progress": progress, "staging": staging},
        }
        return self._import_tables(name, put, choices)

    @public
    def import_npz(
        self, path: PathLike, name: str, *, directed: bool = False, **options: Any
    ) -> Dataset:
        """Imports an .npz file with a sparse adjacency (`adj_indptr`, …) and `attr_…` features.

        Such files have no splits: `train` and `val`, as of `import_arrays`, or `random_split` are
        needed. Edges are stored in both directions, as torch_geometric reads these files, unless
        `directed`. For .npz files with arrays of gnnd's names there is `import_path`.
        """
        found = saved.graph_in("BENCHMARK_NPZ", path, directed)
        return self._import_graph(name, sources.from_file(found, options), options)

    @public
    def import_path(
        self,
        path: PathLike,
        name: str,
        *,
        feature_dtype: str | None = None,
        directed: bool = False,
        task: Task | None = None,
        split: str | int | None = None,
        ignored_columns: Sequence[str] | None = None,
        made_features: str | None = None,
        random_split: RandomSplit | None = None,
        reverse: bool | None = None,
        progress: Report | bool = False,
    ) -> Dataset:
        """Imports what lies on the daemon's host, in any format that `gnnctl` takes.

        That is a folder of .npy files, of CSV or Parquet tables, of OGB or of GraphBolt, or an
        .npz file. `split` is one of several: the column of masks, or the name of an OGB folder's.
        `ignored_columns` of tables are no features; a source without features gets those of
        `made_features`, and one without splits a `random_split`, as `import_arrays` says. Of
        several types (docs/datasets.md) each relation is stored in the other direction, too, as
        `rev_NAME`, unless `reverse` is False.
        `progress=True` prints how far it is; a function gets it as (share, message).
        """
        choices = {
            **{"feature_dtype": feature_dtype, "directed": directed, "task": task, "split": split},
            **{"ignored_columns": ignored_columns, "made_features": made_features},
            **{"random_split": random_split, "reverse": reverse},
        }
        source = os.path.abspath(path) if self.is_same_host else os.fspath(path)
        return import_source(self.connection, request_of(name, source, choices), progress)

    # Below.

    def _import_graph(self, name: str, graph: sources.Graph, choices: Mapping[str, Any]) -> Dataset:
        """Of arrays; `choices` may have options that are parts of the graph, too."""
        parent, link = choices.get("staging"), bool(choices.get("link"))
        staging.require_shared(self.is_same_host, parent)
        chosen = {key: choices.get(key) for key in sources.FILE_OPTIONS - {"link"}}
        request = request_of(name, "", chosen)
        with staging.staging_folder(parent, self.host.state_dir) as folder:
            is_callers = [staging.put_array(folder, *item) for item in graph.arrays.items()]
            staging.put_links(folder, graph.links)
            for file, text in graph.texts().items():
                staging.put_text(folder, file, text)
            may_link = staging.may_link(folder, self.host.state_dir)
            request.source = str(folder)
            request.format = dataset_service_pb2.IMPORT_FORMAT_NPY
            request.link = may_link and (link or not any(is_callers))
            progress = choices.get("progress") or False
            return import_source(self.connection, request, progress, graph.notices)

    def import_typed(
        self, name: str, graph: typed.TypedGraph, choices: Mapping[str, Any]
    ) -> Dataset:
        """Imports a graph of several types; `choices` are options of `import_pyg`."""
        parent = choices.get("staging")
        staging.require_shared(self.is_same_host, parent)
        asked = {key: choices.get(key) for key in ("feature_dtype", "task", "random_split")}
        request = request_of(name, "", {**asked, "reverse": choices.get("reverse")})
        with staging.staging_folder(parent, self.host.state_dir) as folder:
            graph.put(folder)
            request.source = str(folder)
            request.format = dataset_service_pb2.IMPORT_FORMAT_TYPED_NPY
            progress = choices.get("progress") or False
            return import_source(self.connection, request, progress, graph.notices)

    def _import_tables(
        self,
        name: str,
        put: Mapping[str, tuple[Callable[[Path, str, Any], list[str]], Any]],
        choices: Mapping[str, Any],
    ) -> Dataset:
        parent = choices.get("staging")
        staging.require_shared(self.is_same_host, parent)
        request = request_of(name, "", choices)
        with staging.staging_folder(parent, self.host.state_dir) as folder:
            notices: list[str] = []
            for table, (write, source) in put.items():
                notices += write(folder, table, source)
            request.source = str(folder)
            progress = choices.get("progress") or False
            return import_source(self.connection, request, progress, notices)
