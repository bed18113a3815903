"""Clients of a job's watch: a function of yours, Weights & Biases, MLflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gnnd.errors import missing
from gnnd.history import Record, numbers, record_of
from gnnd.v1 import job_pb2, types_pb2

if TYPE_CHECKING:
    from gnnd.job import Job

#: What MLflow calls the ends of jobs.
_STATUSES = {job_pb2.JOB_STATE_SUCCEEDED: "FINISHED", job_pb2.JOB_STATE_FAILED: "FAILED"}


def follow(job: Job, log: Callable[[Record], object]) -> Job:
    """Calls `log` with the record of each epoch (`Job.records`), once and in order, until the end.

    Epochs that ended before are told first, also more than a watch remembers. An attempt that
    begins anew after a failure begins at epoch 0 again.
    """
    told, attempt = -1, 0
    for update in job.updates():
        if update.attempt != attempt:
            resumed = update.job.attempts[-1].resumed.epochs if update.job.attempts else 0
            told, attempt = min(told, resumed - 1), update.attempt
        fresh = [record_of(report, job.task) for report in update.epochs]
        if fresh and fresh[0]["epoch"] > told + 1:
            earlier = job.records()
            fresh = [r for r in earlier if told < r["epoch"] < fresh[0]["epoch"]] + fresh
        for record in fresh:
            log(record)
            told = record["epoch"]
    return job.refresh()


def to_wandb(job: Job, **options: Any) -> Any:
    """Logs a job to a run of Weights & Biases until it has ended; `options` are `wandb.init`'s.

    Keys of their `config` stand beside those of the spec. A step is an epoch, from 0; of an epoch
    that a later attempt repeats W&B keeps the first. The run is failed unless the job SUCCEEDED.

    Returns the finished run.
    """
    try:
        import wandb
    except ImportError:
        raise missing("wandb", "", "trackers.to_wandb()") from None
    config = {**job.spec, **(options.pop("config", None) or {})}
    run = wandb.init(**{"name": job.id, **options, "config": config})
    exit_code = 1
    try:
        follow(job, lambda record: run.log(numbers(record), step=record["epoch"]))
        run.summary.update(_outcome(job))
        exit_code = 0 if job.message.state == job_pb2.JOB_STATE_SUCCEEDED else 1
    finally:
        run.finish(exit_code=exit_code)
    return run


def to_mlflow(job: Job, **options: Any) -> Any:
    """Logs a job to a run of MLflow until it has ended; `options` are `mlflow.start_run`'s.

    A step is an epoch, from 0. The run is FINISHED where the job SUCCEEDED, else FAILED, or KILLED
    where the job or this call was.

    Returns the run as MLflow has it in the end.
    """
    try:
        import mlflow
    except ImportError:
        raise missing("mlflow", "", "trackers.to_mlflow()") from None
    run = mlflow.start_run(**{"run_name": job.id, **options})
    status = "FAILED"
    try:
        mlflow.log_params(flat(job.spec))
        follow(job, lambda record: mlflow.log_metrics(numbers(record), step=record["epoch"]))
        for name, value in _outcome(job).items():
            kind = mlflow.set_tag if isinstance(value, str) else mlflow.log_metric
            kind(name, value)
        status = _STATUSES.get(job.message.state, "KILLED")
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        mlflow.end_run(status)
    return mlflow.get_run(run.info.run_id)


def summary(job: Job) -> dict[str, Any]:
    """What a job that SUCCEEDED came to; empty of others."""
    result = job.message.result
    if result.parameters_sha256 == "":
        return {}
    accuracies = {
        "test_accuracy_best": result.test_accuracy_best,
        "test_accuracy_last": result.test_accuracy_last,
        "best_val_accuracy": result.best_val_accuracy,
    }
    return {
        **(accuracies if job.task == "CLASSIFICATION" else {}),
        "best_epoch": result.best_epoch,
        **{f"test_{each.name}_best": each.value for each in result.test_metrics_best},
        **{f"test_{each.name}_last": each.value for each in result.test_metrics_last},
        **{f"best_val_{each.name}": each.value for each in result.best_val_metrics},
        "parameters_sha256": result.parameters_sha256,
    }


def _outcome(job: Job) -> dict[str, Any]:
    """How a job ended: what it came to, or why it did not."""
    message = job.message
    reason = types_pb2.Reason.Name(message.reason).removeprefix("REASON_")
    return summary(job) or {"reason": reason, "message": message.message}


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"model": {"type": "GCN"}}` as `{"model.type": "GCN"}`."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found
