"""A client of one daemon: datasets in, jobs on their way, models out."""

from __future__ import annotations

import inspect
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from gnnd import saved, sources, staging, tables
from gnnd.connection import Connection, address_of, request_id
from gnnd.dataset import Dataset, Report, Task, dtype_number, import_source, task_number
from gnnd.errors import VersionMismatch, Violation
from gnnd.identity import Identity, PathLike
from gnnd.job import Job
from gnnd.models import Model, wrong_model
from gnnd.spec import job_spec, merged, wrong_sections
from gnnd.v1 import dataset_service_pb2, host_service_pb2, job_service_pb2
from gnnd.words import shown


def version() -> str:
    """This package's version, which is that of the gnnd it was made for."""
    return metadata.version("gnnd")


class Client:
    """Speaks to the daemon at one address. Make one with `gnnd.connect` or `gnnd.local`.

    A client may be used from several threads, and as a context manager that closes it.
    """

    def __init__(self, address: str | None = None, identity: Identity | None = None) -> None:
        self.connection = Connection(address_of(address), identity)
        try:
            self.host = self._get_host()
            check_versions(version(), self.host.version)
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        """Ends the connection. Jobs go on."""
        self.connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gnnd.Client of gnnd {self.host.version} at {self.connection.address}>"

    def _get_host(self) -> host_service_pb2.Host:
        method = self.connection.hosts.GetHost
        host: host_service_pb2.Host = self.connection.call(
            method, host_service_pb2.GetHostRequest(), seconds=10
        )
        return host

    # Datasets.

    def import_arrays(
        self,
        name: str,
        *,
        features: Any,
        labels: Any,
        train: Any,
        val: Any,
        test: Any = None,
        edge_index: Any = None,
        indptr: Any = None,
        indices: Any = None,
        edge_weights: Any = None,
        class_names: list[str] | None = None,
        node_names: list[str] | None = None,
        undirected: bool = False,
        task: Task | None = None,
        split: int | None = None,
        feature_dtype: str | None = None,
        link: bool = False,
        staging: PathLike | None = None,
        progress: Report | bool = False,
    ) -> Dataset:
        """Imports a graph of N nodes, E edges, F features a node and C classes.

        Arrays may be of numpy, torch (on the CPU) or anything that `numpy.asarray` takes, and are
        not sent: they are written to files that the daemon takes over, or, where they were opened
        by `numpy.load(..., mmap_mode="r")`, are such files already.

        Args:
            name: Lower-case letters, digits and hyphens; what jobs call it.
            features: [N, F], floats or integers; float16 stays so, others become float32.
            labels: [N], classes from 0 to C - 1, or -1 for none; [N, C] of 0 and 1, which labels a
                node has, -1 or NaN where that is not known; or [N], [N, C] of floats to regress
                on, NaN where they are not known.
            train: [n] node ids, or a mask [N] of bool; [N, K] for K splits. So are `val`, `test`.
            val: Nodes by which the best epoch is found.
            test: Nodes that are predicted at the end; none by default.
            edge_index: [2, E], sources above targets, as in torch_geometric. A target learns from
                its source; edges without direction must be there in both.
            indptr: [N + 1], in place of `edge_index`: where the row of each target starts.
            indices: [E], beside `indptr`: the sources, row after row.
            edge_weights: [E], 0 or more, in the order of the edges; for weighted sampling.
            class_names: C texts, for people.
            node_names: N texts, for people.
            undirected: Says that each edge is there in both directions; nothing is added.
            task: What is learnt of a node. By default what `labels` tell: fractions are targets,
                one whole number a node is its class, several of 0 and 1 are labels.
            split: Which column of masks [N, K], from 0.
            feature_dtype: `"float32"` or `"float16"`; rounds or widens features.
            link: Lets the dataset share the caller's own mapped files, on one disk, which must then
                never change. By default they are copied.
            staging: A folder for the files that the daemon sees under the same path; by default one
                beside its state directory. For daemons with `sources_dir`, or on other hosts.
            progress: True prints how far the import is; a function gets (share, message).

        Raises:
            InvalidRequest: An argument is of a type that no import takes.
            ImportFailed: The arrays do not fit together; `violations` names each problem's file.
            AlreadyExists: There is such a dataset.
        """
        arrays = {
            **{"features": features, "labels": labels, "train": train, "val": val, "test": test},
            **{"edge_index": edge_index, "indptr": indptr, "indices": indices},
            "edge_weights": edge_weights,
        }
        names = {"class_names": class_names, "node_names": node_names}
        graph = sources.from_arrays({**arrays, **names, "undirected": undirected})
        return self._import_graph(
            *(name, graph, feature_dtype, link, staging),
            progress=progress,
            task=task,
            split=split,
        )

    def import_pyg(self, data: Any, name: str, *, trust: bool = False, **options: Any) -> Dataset:
        """Imports a `torch_geometric.data.Data`: `x`, `y`, `edge_index` or `adj_t`, and masks.

        `data` may also be a dataset of one graph, a file of `torch.save` (`data.pt`) or a dataset's
        folder with `processed`: mapped, and no code of it runs unless you `trust` it. Needs
        `train_mask` and `val_mask` (or `train_idx` and so on); `options` are those of
        `import_arrays`, and stand above what `data` says.
        """
        if isinstance(data, str | os.PathLike):
            data = saved.torch_graph(data, trust=trust)
        return self._import_graph(name, sources.from_pyg(data, options), **_file_options(options))

    def import_scipy(self, adjacency: Any, name: str, **options: Any) -> Dataset:
        """Imports a SciPy sparse [N, N] with `adjacency[u, v]` for an edge u → v.

        Values other than 1 become edge weights. Features, labels and splits are `options` of
        `import_arrays`.
        """
        graph = sources.from_scipy(adjacency, options)
        return self._import_graph(name, graph, **_file_options(options))

    def import_networkx(self, graph: Any, name: str, **options: Any) -> Dataset:
        """Imports a networkx graph; nodes are numbered in its order, and keep their names.

        `features`, `labels` and `split` name attributes of nodes: a list of F numbers, a class
        (number or text), a target or a list of labels or targets, and one of `"train"`, `"val"`,
        `"test"`; or are arrays in that order.
        `weight` names an edge attribute. Graphs without direction are stored in both.
        """
        found = sources.from_networkx(graph, options)
        others = {key: value for key, value in options.items() if key != "split"}
        return self._import_graph(name, found, **_file_options(others))

    def import_dgl(self, graph: Any, name: str, **options: Any) -> Dataset:
        """Imports a homogeneous `dgl.DGLGraph` with `ndata` feat, label, train_mask, val_mask."""
        return self._import_graph(name, sources.from_dgl(graph, options), **_file_options(options))

    def import_ogb(self, dataset: Any, name: str, **options: Any) -> Dataset:
        """Imports an `ogb.nodeproppred.NodePropPredDataset` of one graph with one label a node.

        Where the dataset says that edges are stored once (`add_inverse_edge`) it has added them.
        """
        return self._import_graph(
            name, sources.from_ogb(dataset, options), **_file_options(options)
        )

    def import_frames(
        self,
        nodes: Any,
        edges: Any,
        name: str,
        *,
        directed: bool = False,
        task: Task | None = None,
        feature_dtype: str | None = None,
        progress: Report | bool = False,
        staging: PathLike | None = None,
    ) -> Dataset:
        """Imports two tables: frames of pandas or polars, pyarrow tables. Needs pyarrow.

        `nodes` has `id`, `label`, `split` and columns of numbers, or of lists of numbers, for
        features; `edges` has `source`, `target` and maybe `weight`, as docs/datasets.md says of
        tables. Edges are stored in both directions unless `directed`. Tables are written to Parquet
        files in pieces of 65,536 rows.
        """
        put = {"nodes": (tables.put_frame, nodes), "edges": (tables.put_frame, edges)}
        return self._import_tables(
            name,
            put,
            staging_parent=staging,
            progress=progress,
            feature_dtype=feature_dtype,
            directed=directed,
            task=task,
        )

    def import_parquet(
        self,
        nodes: PathLike,
        edges: PathLike,
        name: str,
        *,
        directed: bool = False,
        task: Task | None = None,
        feature_dtype: str | None = None,
        progress: Report | bool = False,
        staging: PathLike | None = None,
    ) -> Dataset:
        """Imports two Parquet files with the columns of `import_frames`, which are not copied."""
        put = {"nodes": (tables.put_file, nodes), "edges": (tables.put_file, edges)}
        return self._import_tables(
            name,
            put,
            staging_parent=staging,
            progress=progress,
            feature_dtype=feature_dtype,
            directed=directed,
            task=task,
        )

    def import_npz(self, path: PathLike, name: str, **options: Any) -> Dataset:
        """Imports an .npz file with a sparse adjacency (`adj_indptr`, …) and `attr_…` features.

        Such files have no splits: `train` and `val`, as of `import_arrays`, are needed. Edges are
        taken as they are. For .npz files with arrays of gnnd's names there is `import_path`.
        """
        graph = sources.from_sparse(saved.sparse_graph(path), options)
        return self._import_graph(name, graph, **_file_options(options))

    def import_path(
        self,
        path: PathLike,
        name: str,
        *,
        feature_dtype: str | None = None,
        directed: bool = False,
        task: Task | None = None,
        split: str | int | None = None,
        progress: Report | bool = False,
    ) -> Dataset:
        """Imports what lies on the daemon's host, in any format that `gnnctl` takes.

        That is a folder of .npy files, of CSV or Parquet tables, of OGB or of GraphBolt, or an
        .npz file. `split` is one of several: the column of masks, or the name of an OGB folder's.
        `progress=True` prints how far it is; a function gets it as (share, message).
        """
        request = dataset_service_pb2.ImportDatasetRequest(
            dataset_id=name,
            source=os.path.abspath(path) if self.is_same_host else os.fspath(path),
            feature_dtype=dtype_number(feature_dtype),
            directed=directed,
            task=task_number(task),
            split="" if split is None else str(split),
            request_id=request_id(),
        )
        return import_source(self.connection, request, progress)

    def dataset(self, name: str) -> Dataset:
        """One dataset. `NotFound`."""
        request = dataset_service_pb2.GetDatasetRequest(name=f"datasets/{name}")
        message = self.connection.call(self.connection.datasets.GetDataset, request)
        return Dataset(self.connection, message)

    def datasets(self) -> list[Dataset]:
        """All datasets by name."""
        request = dataset_service_pb2.ListDatasetsRequest(page_size=500)
        pages = self._pages(self.connection.datasets.ListDatasets, request)
        return [Dataset(self.connection, each) for page in pages for each in page.datasets]

    # Jobs.

    def submit(
        self,
        dataset: str | Dataset,
        model: Model,
        *,
        epochs: int,
        fanouts: Sequence[int] | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        random_seed: int | None = None,
        standardize: bool | None = None,
        patience: int | None = None,
        metric: str | None = None,
        devices: int | None = None,
        name: str = "",
        priority: int | None = None,
        **sections: Mapping[str, Any],
    ) -> Job:
        """Submits a training; answers as soon as the daemon has written it down.

        Args:
            dataset: Its id, or what an import gave.
            model: Such as `gnnd.GraphSAGE(hidden=256, layers=3)`.
            epochs: Times that every training node is a seed; at most, with `patience`.
            fanouts: Neighbours drawn for each node and hop, from the seeds outward; -1 takes all.
            batch_size: Seeds a batch.
            learning_rate: Of Adam, unless `training` names another optimizer.
            weight_decay: L2 penalty, added to gradients.
            random_seed: Key of all randomness: the same seed, spec and dataset train the same
                parameters, bit for bit.
            standardize: Whether every feature column gets mean 0 and variance 1.
            patience: Evaluations in a row without a better `metric` that end the job.
            metric: What decides which parameters are the best: of classes `"ACCURACY"` (the
                default), of several labels `"MICRO_F1"`, of numbers `"MAE"`; or `"MACRO_F1"`,
                `"ROC_AUC"`, `"AVERAGE_PRECISION"`, `"RMSE"`.
            devices: Number of devices.
            name: Of the job, lower-case letters, digits and hyphens; by default made up.
            priority: Higher first.
            sections: Any other field of docs/job-spec.md as nested mappings, such as
                `sampling={"algorithm": "LABOR"}`. They stand above the arguments before.

        Raises:
            InvalidRequest: `violations` has every wrong field with its path.
        """
        given = {
            "dataset": dataset.id if isinstance(dataset, Dataset) else dataset,
            "sampling": {"fanouts": fanouts},
            "features": {"standardize": standardize},
            "training": {
                "epochs": epochs,
                "batch_size": batch_size,
                "random_seed": random_seed,
                "optimizer": {"learning_rate": learning_rate, "weight_decay": weight_decay},
                "early_stop": {"patience_epochs": patience},
            },
            "evaluation": {"metric": metric},
            "resources": {"devices": devices},
            "priority": priority,
        }
        found = [*wrong_model(model), *wrong_sections(sections, _arguments())]
        wrong_names = {violation.field for violation in found}
        parts = [] if "model" in wrong_names else [model.spec()]
        others = {key: value for key, value in sections.items() if key not in wrong_names}
        return self._create(merged(*parts, given, others), name, found)

    def submit_spec(self, spec: Mapping[str, Any], *, name: str = "") -> Job:
        """Submits a whole spec, as the nested mapping that `gnnctl` reads below `spec:`.

        Raises:
            InvalidRequest: `violations` has every wrong field with its path.
        """
        return self._create(spec, name, [])

    def _create(self, spec: Mapping[str, Any], name: str, found: list[Violation]) -> Job:
        """With what was `found` to be wrong before."""
        if not isinstance(name, str):
            found = [*found, Violation("name", f"{shown(name)}: expected a text")]
        message = job_spec(spec, found)
        request = job_service_pb2.CreateJobRequest(
            job_id=name, spec=message, request_id=request_id()
        )
        message = self.connection.call(self.connection.jobs.CreateJob, request)
        return Job(self, message)

    def job(self, name: str) -> Job:
        """One job. `NotFound`."""
        request = job_service_pb2.GetJobRequest(name=f"jobs/{name.removeprefix('jobs/')}")
        return Job(self, self.connection.call(self.connection.jobs.GetJob, request))

    def jobs(self) -> list[Job]:
        """All jobs, newest first."""
        request = job_service_pb2.ListJobsRequest(page_size=500)
        pages = self._pages(self.connection.jobs.ListJobs, request)
        return [Job(self, message) for page in pages for message in page.jobs]

    # Below.

    @property
    def is_same_host(self) -> bool:
        """Whether the daemon sees this process's files."""
        return self.connection.is_local_socket or self.host.hostname == socket.gethostname()

    def _pages(self, method: Any, request: Any) -> Iterator[Any]:
        while True:
            page = self.connection.call(method, request)
            yield page
            if page.next_page_token == "":
                return
            request.page_token = page.next_page_token

    def _import_graph(
        self,
        name: str,
        graph: sources.Graph,
        feature_dtype: str | None = None,
        link: bool = False,
        staging_parent: PathLike | None = None,
        *,
        progress: Report | bool = False,
        task: Task | None = None,
        split: int | None = None,
    ) -> Dataset:
        staging.require_shared(self.is_same_host, staging_parent)
        dtype = dtype_number(feature_dtype)
        with staging.staging_folder(staging_parent, self.host.state_dir) as folder:
            is_callers = [staging.put_array(folder, *item) for item in graph.arrays.items()]
            for file, text in graph.texts().items():
                staging.put_text(folder, file, text)
            may_link = staging.may_link(folder, self.host.state_dir)
            request = dataset_service_pb2.ImportDatasetRequest(
                dataset_id=name,
                source=str(folder),
                format=dataset_service_pb2.IMPORT_FORMAT_NPY,
                feature_dtype=dtype,
                link=may_link and (link or not any(is_callers)),
                task=task_number(task),
                split="" if split is None else str(split),
                request_id=request_id(),
            )
            return import_source(self.connection, request, progress)

    def _import_tables(
        self,
        name: str,
        put: Mapping[str, tuple[Callable[[Path, str, Any], None], Any]],
        *,
        staging_parent: PathLike | None,
        progress: Report | bool,
        feature_dtype: str | None,
        directed: bool,
        task: Task | None,
    ) -> Dataset:
        staging.require_shared(self.is_same_host, staging_parent)
        dtype = dtype_number(feature_dtype)
        with staging.staging_folder(staging_parent, self.host.state_dir) as folder:
            for table, (write, source) in put.items():
                write(folder, table, source)
            request = dataset_service_pb2.ImportDatasetRequest(
                dataset_id=name,
                source=str(folder),
                feature_dtype=dtype,
                directed=directed,
                task=task_number(task),
                request_id=request_id(),
            )
            return import_source(self.connection, request, progress)


def _file_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """What of the options of an import is not part of the graph."""
    same = {name: name for name in ("feature_dtype", "link", "progress", "task", "split")}
    names = {**same, "staging": "staging_parent"}
    return {names[key]: value for key, value in options.items() if key in names}


def _arguments() -> list[str]:
    """Of `Client.submit`, by their names."""
    parameters = inspect.signature(Client.submit).parameters.values()
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]


def check_versions(ours: str, daemons: str) -> None:
    """Raises `VersionMismatch` unless both are of one release series: a.b before 1.0, a after."""
    if _series(ours) == _series(daemons):
        return
    raise VersionMismatch(
        f"this is gnnd {ours} for Python, and the daemon is gnnd {daemons}: install the package of "
        f"the daemon's version (pip install 'gnnd=={daemons}', or ./src/python of its clone), or "
        f"start a daemon of version {ours}"
    )


def _series(text: str) -> tuple[int, ...]:
    numbers = tuple(int(number) for number in re.findall(r"\d+", text)[:2])
    return numbers if numbers[:1] == (0,) else numbers[:1]
