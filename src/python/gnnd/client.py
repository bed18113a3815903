"""A client of one daemon: datasets in, jobs on their way, models out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

from gnnd.calls import public
from gnnd.connection import Connection, address_of, request_id
from gnnd.dataset import Dataset
from gnnd.errors import VersionMismatch, Violation
from gnnd.fanouts import fanouts_of
from gnnd.identity import Identity
from gnnd.imports import Imports
from gnnd.job import Job
from gnnd.models import Model, wrong_model
from gnnd.spec import job_spec, merged, wrong_sections
from gnnd.tasks import LinkLabels, Links, wrong_task
from gnnd.v1 import dataset_service_pb2, host_service_pb2, job_service_pb2
from gnnd.words import shown


def version() -> str:
    """This package's version, which is that of the gnnd it was made for."""
    return metadata.version("gnnd")


class Client(Imports):
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

    @public
    def submit(
        self,
        dataset: str | Dataset,
        model: Model,
        *,
        task: Links | LinkLabels | None = None,
        epochs: int | None = None,
        fanouts: Sequence[int] | Mapping[Any, Sequence[int]] | None = None,
        target: str | None = None,
        reverse: bool | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        random_seed: int | None = None,
        standardize: str | None = None,
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
            task: `gnnd.Links()` learns which nodes belong together, `gnnd.LinkLabels()` what the
                dataset knows of its own links; by default what
                the dataset knows of nodes is learnt.
            epochs: Times that every training node is a seed, or that every link is learnt; at most,
                with `patience`. Left open, 10, and more where an epoch has few batches;
                `Job.choices` tells why.
            fanouts: Neighbours drawn for each node and hop, from the seeds outward; -1 takes all.
                Over several types maybe a list for each relation,
                `{("package", "depends", "package"): [10, 5]}`; 0 draws none, and relations that
                are left out have `"*"`, else the largest.
            target: Of a dataset of several types, the one whose labels are learnt; by default the
                only one that has some.
            reverse: False leaves relations out that the import made by turning others around.
            batch_size: Seeds, or links, of a batch.
            learning_rate: Of Adam, unless `training` names another optimizer. Left open, it goes
                by the number of batches of an epoch.
            weight_decay: L2 penalty, added to gradients.
            random_seed: Key of all randomness: the same seed, spec and dataset train the same
                parameters, bit for bit.
            standardize: Whether every feature column gets mean 0 and variance 1: `"ON"`,
                `"OFF"`, or `"AUTO"` (the default): as the columns and the number of training nodes
                have it; `Job.choices` tells why.
            patience: Evaluations in a row without a better `metric` that end the job.
            metric: What decides which parameters are the best: of classes `"ACCURACY"` (the
                default), of several labels `"MICRO_F1"`, of numbers `"MAE"`; or `"MACRO_F1"`,
                `"ROC_AUC"`, `"AVERAGE_PRECISION"`, `"RMSE"`; of links `"MRR"` (the default),
                `"HITS_10"`.
            devices: Number of devices.
            name: Of the job, lower-case letters, digits and hyphens; by default made up.
            priority: Higher first.
            sections: Any other field of docs/job-spec.md as nested mappings, such as
                `sampling={"algorithm": "LABOR"}`. They stand above the arguments before.

        Raises:
            InvalidRequest: `violations` has every wrong field with its path.
        """
        found = [
            *wrong_model(model),
            *wrong_task(task),
            *wrong_sections(sections, _arguments()),
        ]
        given = {
            "dataset": dataset.id if isinstance(dataset, Dataset) else dataset,
            **fanouts_of(fanouts, found),
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
        relations = {"relations": {"target": target, "reverse": reverse}}
        wrong_names = {violation.field for violation in found}
        values = {"model": model, "task": task}
        parts = [
            value.spec()
            for name, value in values.items()
            if value is not None and name not in wrong_names
        ]
        others = {key: value for key, value in sections.items() if key not in wrong_names}
        return self._create(merged(*parts, given, relations, others), name, found)

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

    def _pages(self, method: Any, request: Any) -> Iterator[Any]:
        while True:
            page = self.connection.call(method, request)
            yield page
            if page.next_page_token == "":
                return
            request.page_token = page.next_page_token


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
