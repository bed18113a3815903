"""One job: watched, waited for, and what it leaves."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gnnd import files, geometric, history, inferring, onnx, watch
from gnnd.answers import Answering
from gnnd.calls import public
from gnnd.connection import Connection, request_id
from gnnd.dataset import Dataset
from gnnd.embeddings import Embeddings, embeddings_of
from gnnd.errors import GnndError, JobCancelled, JobFailed, Violation, missing, wrong
from gnnd.learnt import Learnt, learnt_of
from gnnd.report import Report, report_of
from gnnd.results import Result
from gnnd.spec import choices_of, plain
from gnnd.v1 import (
    checkpoint_service_pb2,
    host_service_pb2,
    job_pb2,
    job_plan_pb2,
    job_service_pb2,
    types_pb2,
)
from gnnd.words import one_of

_REPORTED = ("test", "val")
_WHICH = {
    "best": checkpoint_service_pb2.CHECKPOINT_KIND_BEST,
    "last": checkpoint_service_pb2.CHECKPOINT_KIND_LAST,
}
_EXPORTED = {
    None: checkpoint_service_pb2.PREDICTION_NODES_NONE,
    "all": checkpoint_service_pb2.PREDICTION_NODES_ALL,
    "val": checkpoint_service_pb2.PREDICTION_NODES_VAL,
    "test": checkpoint_service_pb2.PREDICTION_NODES_TEST,
}


class JobClient(Protocol):
    """The part of `gnnd.Client` that its jobs use: it knows jobs, so they cannot import it."""

    connection: Connection
    host: host_service_pb2.Host

    @property
    def is_same_host(self) -> bool:
        """Whether the daemon sees this process's files."""

    def dataset(self, name: str) -> Dataset:
        """One dataset by its id."""

    def submit_spec(self, spec: Mapping[str, Any]) -> Job:
        """Submits a whole spec."""


class Job(Answering):
    """A job of the daemon. `message` is what was last heard of it, as `gnnd.v1.Job`."""

    def __init__(self, client: JobClient, message: job_pb2.Job) -> None:
        self._client = client
        self._connection = client.connection
        self.message = message

    @property
    def id(self) -> str:
        """Its name, without `jobs/`."""
        return self.message.name.removeprefix("jobs/")

    @property
    def state(self) -> str:
        """Now: PENDING, PREPARING, RUNNING, CANCELLING, SUCCEEDED, FAILED or CANCELLED."""
        return job_pb2.JobState.Name(self.refresh().message.state).removeprefix("JOB_STATE_")

    @property
    def spec(self) -> dict[str, Any]:
        """Its spec with every default filled in; `Client.submit_spec` takes it again."""
        return plain(self.message.effective_spec)

    @cached_property
    def task(self) -> Learnt:
        """What it learns, or has learnt: `Dataset.task` of its dataset, or `"LINKS"`."""
        return learnt_of(self.message.effective_spec, lambda name: self._client.dataset(name).task)

    @property
    def warnings(self) -> list[str]:
        """What the spec's author should know, a sentence each."""
        return list(self.message.warnings)

    @property
    def choices(self) -> dict[str, str]:
        """How what its spec leaves open came about, a sentence each by the field's name."""
        return choices_of(self.message)

    @property
    def result(self) -> Result:
        """Its `metrics`, accuracies (0 to 1), the best epoch (from 0), the parameters' SHA-256.

        Waits for the job's end.
        """
        return Result(self.wait().message.result)

    def refresh(self) -> Job:
        """Asks the daemon how the job is."""
        request = job_service_pb2.GetJobRequest(name=self.message.name)
        self.message = self._connection.call(self._connection.jobs.GetJob, request)
        return self

    def __repr__(self) -> str:
        state = job_pb2.JobState.Name(self.message.state).removeprefix("JOB_STATE_")
        return f"<gnnd.Job {self.id}: {state}>"

    # While it runs.

    def updates(self) -> Iterator[watch.Update]:
        """Its events until it has ended: each transition and each epoch once, and progress.

        Lost connections are made again; nothing is missed or told twice.
        """
        for update in watch.updates(self._connection, self.message.name):
            self.message = update.job
            yield update

    def watch(self, *, check: bool = True) -> Job:
        """Shows progress until the job has ended: a bar in a terminal and in a notebook.

        An interrupt ends the watch; the job goes on. With `check` raises `JobFailed` or
        `JobCancelled` where that is how it ended.
        """
        display = watch.Display()
        for update in self.updates():
            display.show(update)
        self.refresh()
        return self._checked() if check else self

    def wait(self, *, check: bool = True) -> Job:
        """The same without showing anything."""
        if not watch.is_terminal(self.message):
            for _ in self.updates():
                pass
            self.refresh()
        return self._checked() if check else self

    def cancel(self) -> Job:
        """Asks for its end. `wait(check=False)` waits until it is CANCELLED."""
        request = job_service_pb2.CancelJobRequest(name=self.message.name, request_id=request_id())
        self.message = self._connection.call(self._connection.jobs.CancelJob, request)
        return self

    def delete(self, *, force: bool = False) -> None:
        """Removes it with its logs and checkpoints; with `force` cancels it first."""
        request = job_service_pb2.DeleteJobRequest(
            name=self.message.name, force=force, request_id=request_id()
        )
        self._connection.call(self._connection.jobs.DeleteJob, request)

    def logs(self, *, tail: int = 0, follow: bool = False) -> Iterator[str]:
        """Lines that its executors logged, with the log's name before each.

        `tail` starts so many lines before the end of each log; `follow` goes on until the job ends.
        """
        request = job_service_pb2.StreamLogsRequest(
            name=self.message.name, tail_lines=tail, follow=follow
        )
        for chunk in self._connection.stream(self._connection.jobs.StreamLogs, request):
            for line in chunk.lines:
                yield f"{chunk.log}  {line}"

    def plan(self) -> job_plan_pb2.JobPlan:
        """Who samples and who trains, and why; `estimated` before the job's calibration."""
        request = job_service_pb2.GetJobPlanRequest(name=self.message.name)
        plan: job_plan_pb2.JobPlan = self._connection.call(
            self._connection.jobs.GetJobPlan, request
        )
        return plan

    # What it was like.

    def records(self) -> list[dict[str, Any]]:
        """One mapping for each epoch of the latest attempt, oldest first.

        `epoch` counts from 0; `loss` is the mean of items; `seconds` is wall time. Of
        classes there are accuracies from 0 to 1, `val_accuracy` NaN after an epoch that was not
        evaluated. Other metrics of an evaluation have their names: `val_macro_f1`, `val_mrr@1000`.
        """
        request = job_service_pb2.ListEpochsRequest(name=self.message.name, page_size=500)
        found: list[dict[str, Any]] = []
        while True:
            page = self._connection.call(self._connection.jobs.ListEpochs, request)
            found += [history.record_of(report, self.task) for report in page.epochs]
            if page.next_page_token == "":
                return found
            request.page_token = page.next_page_token

    def history(self) -> Any:
        """`records()` as a pandas frame where pandas is installed, else as they are."""
        try:
            import pandas as pd
        except ImportError:
            return self.records()
        return pd.DataFrame(self.records())

    def plot(self, *names: str) -> Any:
        """Curves of the history; `names` are its columns, by default the loss and what decides.

        Answers the matplotlib figure.
        """
        try:
            from matplotlib import pyplot as plt
        except ImportError:
            raise missing("matplotlib", "notebook", "job.plot()") from None
        records = self.records()
        unknown = set(names) - {key for record in records for key in record}
        if unknown:
            known = list(dict.fromkeys(key for record in records for key in record))
            raise wrong(
                "job.plot()",
                *(Violation(f"names[{names.index(n)}]", one_of(n, known)) for n in sorted(unknown)),
            )
        groups = [[name] for name in names] or history.curves(records)
        figure, axes = plt.subplots(1, len(groups), figsize=(5 * len(groups), 3.2), squeeze=False)
        epochs = [record["epoch"] + 1 for record in records]
        for axis, group in zip(axes[0], groups, strict=True):
            for name in group:
                values = [record.get(name, math.nan) for record in records]
                axis.plot(epochs, values, label=name, marker=".")
            axis.set_xlabel("epochs")
            axis.legend()
        figure.suptitle(self.id)
        figure.tight_layout()
        return figure

    def export_history(self, path: str | os.PathLike[str]) -> Path:
        """Writes `records()` to a `.csv` or `.jsonl` file, or as TensorBoard events to a folder.

        Answers the file's path.
        """
        return history.write(self.records(), path, self.id)

    # What it leaves.

    @public
    def checkpoint(
        self,
        folder: str | os.PathLike[str],
        *,
        which: str = "best",
        predictions: str | None = None,
    ) -> list[Path]:
        """Writes `model.safetensors` and `export.json` into a folder of this host.

        `which` is `"best"`, the epoch of the best validation accuracy, or `"last"`. `predictions`
        of `"all"`, `"val"` or `"test"` nodes adds `logits.npy` and `predictions.npy`
        (docs/formats/checkpoint.md). Answers the files' paths.
        """
        return files.to_folder(self._export(which, predictions), folder)

    def parameters(self, which: str = "best") -> dict[str, np.ndarray]:
        """Its parameters by torch_geometric's names, float32 arrays."""
        return files.safetensors(self._exported(which)["model.safetensors"])

    def state_dict(self, which: str = "best") -> dict[str, Any]:
        """The same as torch tensors, for `load_state_dict`. Needs torch."""
        return geometric.tensors(self.parameters(which))

    @public
    def to_pyg(self, which: str = "best") -> Any:
        """The `torch_geometric` module with its parameters, in evaluation mode.

        `module(x, edge_index)` of features [N, F] as they were imported and edges [2, E] gives
        logits [N, C]; those of whole neighbourhoods agree with gnnd's to 1e-4. Of a job of links it
        is a `gnnd.heads.LinkModel`: `module(x, edge_index, edge_label_index)` scores pairs [2, n],
        its `encoder(x, edge_index)` gives rows [N, D], its `head` scores pairs of them. Where the
        job standardised features the module does so first, and torch_geometric's is its `model`. Of
        a model over several types it is a `gnnd.relations.RelationModel`: `module(x_dict,
        edge_index_dict)` gives logits of the learnt type. Models that torch_geometric lacks raise
        `GnndError`.
        """
        return geometric.module(*self._trained(which))

    @public
    def to_torch(self, which: str = "best") -> Any:
        """A PyTorch module with its parameters, in evaluation mode.

        That of `to_pyg`; of SGC, SIGN and HOGA one of `gnnd.rows`, which gives logits [N, C] of
        rows [N, tokens, F] (SGC: of the last token, [N, F]) as they were propagated, before any
        standardising.
        """
        return geometric.any_module(*self._trained(which))

    @public
    def to_onnx(self, path: str | os.PathLike[str], which: str = "best") -> Path:
        """Writes the module of `to_torch` as an ONNX file, and answers its path.

        Inputs are `x` [nodes, F] float32 and `edge_index` [2, edges] int64, or of models over
        rows `rows`; the output is `logits` [nodes, C]. A job of links has `edge_label_index` [2,
        pairs] int64, too, and `scores` [pairs] of these. Nodes and edges may be any number. What
        PyTorch cannot export raises `GnndError`. Needs torch, onnx and onnxscript.
        """
        trained = self._trained(which)
        return onnx.write(geometric.any_module(*trained), trained[0], path)

    @public
    def report(self, nodes: str = "test", which: str = "best") -> Report:
        """How good the model is for each class, label or target, on `"test"` or `"val"` nodes."""
        if nodes not in _REPORTED:
            raise wrong("job.report()", Violation("nodes", one_of(nodes, _REPORTED)))
        return report_of(files.to_memory(self._export(which, nodes)))

    @public
    def predict(
        self,
        nodes: Any = "all",
        *,
        logits: bool = False,
        probabilities: bool = False,
        ids: bool | None = None,
        which: str = "best",
        dataset: str | Dataset | None = None,
        devices: int | None = None,
        staging: str | os.PathLike[str] | None = None,
        keep: bool = False,
    ) -> files.Predictions:
        """Predicts nodes, as a job of its own that is deleted once its arrays are here.

        Args:
            nodes: `"all"`, `"train"`, `"val"`, `"test"`, or [n] nodes in any order: their numbers,
                a mask [N] of bool or of 0 and 1, or, where the dataset has ids, these as texts.
            logits: Whether to have [n, C] logits, too.
            probabilities: Whether to have [n, C] probabilities, too.
            ids: Whether to have [n] ids, where the dataset has them. They come in a table that has
                every other column as text, so by default they are not there beside logits and
                probabilities, unless `nodes` are ids.
            which: Whose parameters, `"best"` or `"last"`.
            dataset: Another dataset; by default that of the training.
            devices: Number of devices.
            staging: Where numbers, and more than 1,000 ids, are written for the daemon, as
                `staging` of imports.
            keep: Leaves the job and its files with the daemon.

        Returns:
            In the order of `nodes`; of a split, in ascending numbers.
        """
        asked = inferring.asked(
            "job.predict()",
            nodes,
            outputs={"LOGITS": logits, "PROBABILITIES": probabilities},
            ids=ids,
            parameters=which,
        )
        found, order = self._inferred(asked, dataset, devices, staging, keep)
        predictions = files.predictions_of(found, "inference.json")
        return predictions if order is None else predictions.in_order_of(order)

    @public
    def embeddings(
        self,
        nodes: Any = "all",
        *,
        layer: int | None = None,
        ids: bool = False,
        which: str = "best",
        dataset: str | Dataset | None = None,
        devices: int | None = None,
        staging: str | os.PathLike[str] | None = None,
        keep: bool = False,
    ) -> Embeddings:
        """Rows [n, D] that a layer gives for nodes, as a job of its own like `predict`.

        Rows are those after normalisation and activation, without dropout; of the last layer they
        are the logits (docs/inference.md).

        Args:
            nodes: As of `predict`.
            layer: From 1, nearest the features, to the model's number of layers; by default the
                last hidden one, and of a job of links the last, whose rows its head reads.
            ids: Whether to have [n] ids, where the dataset has them, from a table of text that has
                the rows once more.
            which: Whose parameters, `"best"` or `"last"`.
            dataset: As the next ones: as of `predict`.
            devices: Number of devices.
            staging: Where nodes are written for the daemon.
            keep: Leaves the job and its files with the daemon.

        Returns:
            In the order of `nodes`; of a split, in ascending numbers.
        """
        asked = inferring.asked(
            "job.embeddings()",
            nodes,
            outputs={"EMBEDDINGS": True},
            ids=ids,
            parameters=which,
            layer=layer,
        )
        found, order = self._inferred(asked, dataset, devices, staging, keep)
        embeddings = embeddings_of(found)
        return embeddings if order is None else embeddings.in_order_of(order)

    def predictions(self) -> files.Predictions:
        """What an inference left. `NotPossibleNow` for a job that trains."""
        return files.predictions_of(self._predicted(), "inference.json")

    # Below.

    def _inferred(
        self,
        asked: inferring.Question,
        dataset: str | Dataset | None,
        devices: int | None,
        staging: str | os.PathLike[str] | None,
        keep: bool,
    ) -> tuple[dict[str, bytes], Any]:
        """The files of an inference that is made for them, and the order of the nodes' rows."""
        self.wait()
        other = dataset.id if isinstance(dataset, Dataset) else dataset
        about = other or self.message.effective_spec.dataset
        place = inferring.Place(self._client.is_same_host, self._client.host.state_dir, staging)
        target = self.message.effective_spec.relations.target

        def num_nodes() -> int:
            found = self._client.dataset(about)
            return found.node_types[target].num_nodes if target else found.num_nodes

        with asked.listed(num_nodes, place) as (more, order):
            spec = {
                "kind": "INFERENCE",
                "inference": {"job": self.id, **asked.inference, **more},
                "dataset": other,
                "resources": {"devices": devices},
            }
            job = self._client.submit_spec(spec)
            try:
                return job.wait()._predicted(), order
            finally:
                if not keep:
                    job.delete(force=True)

    def _predicted(self) -> dict[str, bytes]:
        request = checkpoint_service_pb2.ExportPredictionsRequest(name=self.message.name)
        parts = self._connection.stream(self._connection.checkpoints.ExportPredictions, request)
        return files.to_memory(parts)

    def _export(self, which: str, predictions: str | None = None) -> Iterator[Any]:
        if which not in _WHICH:
            raise wrong("a checkpoint", Violation("which", one_of(which, _WHICH)))
        if predictions not in _EXPORTED:
            known = [name for name in _EXPORTED if name is not None]
            raise wrong("a checkpoint", Violation("predictions", one_of(predictions, known)))
        self.wait()
        request = checkpoint_service_pb2.ExportCheckpointRequest(
            name=self.message.name, kind=_WHICH[which], predictions=_EXPORTED[predictions]
        )
        return self._connection.stream(self._connection.checkpoints.ExportCheckpoint, request)

    def _trained(self, which: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, np.ndarray]]:
        """Its export.json, its spec and its parameters."""
        exported = self._exported(which)
        facts = files.checked(exported, "export.json")
        return facts, self.spec, files.safetensors(exported["model.safetensors"])

    def _exported(self, which: str) -> dict[str, bytes]:
        return files.to_memory(self._export(which))

    def _checked(self) -> Job:
        message = self.message
        if message.state == job_pb2.JOB_STATE_SUCCEEDED:
            return self
        kinds: dict[int, type[GnndError]] = {
            job_pb2.JOB_STATE_FAILED: JobFailed,
            job_pb2.JOB_STATE_CANCELLED: JobCancelled,
        }
        if message.state not in kinds:
            raise GnndError(f"job {self.id} was deleted before its end")
        reason = types_pb2.Reason.Name(message.reason).removeprefix("REASON_")
        text = f"job {self.id} ended {reason}: {message.message}"
        raise kinds[message.state](text, reason=reason)
