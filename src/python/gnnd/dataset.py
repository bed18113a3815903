"""Datasets: graphs with features, labels and splits, immutable once they are imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

from google.protobuf.message import Message

from gnnd.connection import Connection, request_id
from gnnd.errors import GnndError, ImportFailed, Violation
from gnnd.v1 import dataset_service_pb2 as pb
from gnnd.v1 import types_pb2 as types

#: What is learnt of a node.
Task = Literal["CLASSIFICATION", "MULTI_LABEL", "REGRESSION"]
NOUNS: dict[Task, str] = {
    "CLASSIFICATION": "classes",
    "MULTI_LABEL": "labels",
    "REGRESSION": "targets",
}
TASKS: dict[int, Task] = {types.DatasetTask.Value(f"DATASET_TASK_{task}"): task for task in NOUNS}
#: How much of an import is done, of 1, and what it is doing.
Report = Callable[[float, str], None]
#: Milliseconds that one look at an import waits for its end.
WAIT_MS = 500


class Dataset:
    """A dataset of the daemon, as it was when this was made."""

    def __init__(
        self, connection: Connection, message: pb.Dataset, notices: Sequence[str] = ()
    ) -> None:
        self._connection = connection
        #: What this package noticed of the objects that it was made of.
        self._noticed = list(notices)
        #: What the daemon says, as `gnnd.v1.Dataset`.
        self.message = message

    @property
    def id(self) -> str:
        """The name it was imported under."""
        return self.message.name.removeprefix("datasets/")

    @property
    def num_nodes(self) -> int:
        """Nodes, of all types."""
        return self.message.num_nodes

    @property
    def num_edges(self) -> int:
        """Entries of all rows, of all relations; an edge without direction counts twice."""
        return self.message.num_edges

    @property
    def num_features(self) -> int:
        """Feature columns; 0 where there are several types, see `node_types`."""
        return self.message.num_features

    @property
    def num_classes(self) -> int:
        """Classes; labels that a node may have; targets that it has. 0: no node has a label."""
        return self.message.num_classes

    @property
    def task(self) -> Task:
        """What is learnt of a node: its class, which of several labels it has, or numbers."""
        return task_of(self.message.task)

    @property
    def node_types(self) -> dict[str, pb.NodeType]:
        """What the nodes of each type have, by name; empty: all are of one, which has no name."""
        return {found.name: found for found in self.message.node_types}

    @property
    def relations(self) -> dict[tuple[str, str, str], pb.Relation]:
        """What relations there are, by (source type, name, destination type); empty: one."""
        return {
            (found.source, found.name, found.destination): found for found in self.message.relations
        }

    @property
    def split(self) -> dict[str, int]:
        """How many training, validation and test nodes there are."""
        message = self.message
        return {"train": message.num_train, "val": message.num_val, "test": message.num_test}

    @property
    def digest(self) -> str:
        """SHA-256 of its `dataset.json`: the same for the same graph, whatever it came from."""
        return self.message.digest

    @property
    def path(self) -> str:
        """Its folder on the daemon's host."""
        return self.message.path

    @property
    def notices(self) -> list[str]:
        """What the import wants its user to know, a sentence each.

        Of objects in memory the import's own answer says more than `Client.dataset` later.
        """
        return self._noticed + [line for line in self.message.message.split("\n") if line]

    def delete(self) -> None:
        """Removes it with its files. `NotPossibleNow` while a job uses it."""
        request = pb.DeleteDatasetRequest(name=self.message.name, request_id=request_id())
        self._connection.call(self._connection.datasets.DeleteDataset, request)

    def __repr__(self) -> str:
        message = self.message
        if message.node_types:
            return (
                f"<gnnd.Dataset {self.id}: {message.num_nodes:,} nodes of "
                f"{len(message.node_types)} types, {message.num_edges:,} edges of "
                f"{len(message.relations)} relations>"
            )
        return (
            f"<gnnd.Dataset {self.id}: {message.num_nodes:,} nodes, {message.num_edges:,} edges, "
            f"{message.num_features:,} features, {message.num_classes:,} {NOUNS[self.task]}, "
            f"{message.num_train:,}/{message.num_val:,}/{message.num_test:,} train/val/test>"
        )


def task_of(number: int) -> Task:
    """The task that a message names; one without a task means classes."""
    return TASKS[max(number, types.DATASET_TASK_CLASSIFICATION)]


def import_source(
    connection: Connection,
    request: pb.ImportDatasetRequest,
    progress: Report | bool = False,
    notices: Sequence[str] = (),
) -> Dataset:
    """Imports a file or folder of the daemon's host and waits for it.

    `progress` is told where the import is twice a second; True prints it. An interrupt cancels the
    import. Raises `ImportFailed` with every problem.
    """
    report = progress if callable(progress) else _print if progress else None
    operation = connection.call(connection.datasets.ImportDataset, request)
    try:
        while not operation.done:
            wait = pb.WaitOperationRequest(name=operation.name, timeout_ms=WAIT_MS)
            operation = connection.call(connection.datasets.WaitOperation, wait)
            if report is not None and operation.message != "" and not operation.done:
                report(operation.progress, operation.message)
    except KeyboardInterrupt:
        cancel = pb.CancelOperationRequest(name=operation.name)
        connection.call(connection.datasets.CancelOperation, cancel)
        raise
    if operation.HasField("error"):
        raise _failure(operation.error)
    return Dataset(connection, _unpacked(operation.response), notices)


def _print(share: float, message: str) -> None:
    print(f"{100 * share:3.0f} %  {message}", file=sys.stderr)


def _failure(error: Any) -> GnndError:
    problems = [Violation(problem.path, problem.description) for problem in error.problems]
    return ImportFailed(error.message, reason=error.reason, violations=problems)


def _unpacked(response: Any) -> pb.Dataset:
    dataset: Message = pb.Dataset()
    response.Unpack(dataset)
    assert isinstance(dataset, pb.Dataset)
    return dataset
