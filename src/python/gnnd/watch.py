"""A job's events over as many connections as it takes, and how a person sees them."""

from __future__ import annotations

import html
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

import grpc

from gnnd import errors
from gnnd.connection import Connection
from gnnd.v1 import epoch_report_pb2, job_pb2, job_service_pb2

#: Seconds for which a daemon that went away is looked for.
LOST_SECONDS = 120.0
TERMINAL = {
    job_pb2.JOB_STATE_SUCCEEDED,
    job_pb2.JOB_STATE_FAILED,
    job_pb2.JOB_STATE_CANCELLED,
}
BAR_COLUMNS = 24


@dataclass
class Update:
    """One event of a job."""

    #: The job now; without its epochs.
    job: job_pb2.Job
    #: Epochs that ended since the update before, each once.
    epochs: list[epoch_report_pb2.EpochReport] = field(default_factory=list)
    #: Attempt of these epochs, from 1.
    attempt: int = 0


def is_terminal(job: job_pb2.Job) -> bool:
    """Whether the job has ended."""
    return job.state in TERMINAL


def updates(connection: Connection, name: str) -> Iterator[Update]:
    """Events of `jobs/{id}` until it has ended or was deleted, resumed where a connection broke."""
    known = _Known()
    revision, lost_since, wait = 0, 0.0, 0.25
    while True:
        request = job_service_pb2.WatchJobRequest(
            name=name, start_revision=revision, until_terminal=True
        )
        call = connection.jobs.WatchJob(request, metadata=connection.metadata)
        failure: errors.Failure | None = None
        try:
            for response in call:
                lost_since, wait = 0.0, 0.25
                revision = max(revision, response.revision)
                update = known.after(response)
                if update is not None:
                    yield update
                if response.type == job_service_pb2.WATCH_TYPE_DELETED:
                    return
                if known.job is not None and is_terminal(known.job):
                    return
        except grpc.RpcError as error:
            failure = errors.failure_of(error)
        finally:
            call.cancel()
        if failure is not None and failure.error.code == "OUT_OF_RANGE" and revision != 0:
            revision = 0  # The past was compacted, or it is another store.
            continue
        if failure is not None and not _is_passing(failure.error, known.job is not None):
            raise failure.error
        lost_since = lost_since or time.monotonic()
        if failure is not None and time.monotonic() - lost_since > LOST_SECONDS:
            raise failure.error
        time.sleep(wait)
        wait = min(2 * wait, 4.0)


def _is_passing(error: errors.GnndError, was_reached: bool) -> bool:
    """A daemon that dies in mid-stream ends it with any of these; one that lives has a reason."""
    broken = error.code in {"CANCELLED", "INTERNAL", "UNKNOWN"} and error.reason == ""
    return (error.code == "UNAVAILABLE" or broken) and (was_reached or error.reason != "")


class _Known:
    """What responses told so far, so that no epoch is told twice."""

    def __init__(self) -> None:
        self.job: job_pb2.Job | None = None
        self._attempt = 0
        self._last_epoch = -1

    def after(self, response: job_service_pb2.WatchJobResponse) -> Update | None:
        if response.HasField("job"):
            self.job = response.job
        if self.job is None or response.type == job_service_pb2.WATCH_TYPE_BOOKMARK:
            return None
        newest = self.job.attempts[-1].number if self.job.attempts else 0
        attempt = response.attempt or newest
        if attempt != self._attempt:
            went_on = self.job.attempts[-1].resumed.epochs if attempt == newest != 0 else 0
            self._last_epoch = min(self._last_epoch, went_on - 1)
            self._attempt = attempt
        fresh = [report for report in response.epochs if report.epoch > self._last_epoch]
        if fresh:
            self._last_epoch = fresh[-1].epoch
        return Update(self.job, fresh, attempt)


class Display:
    """Shows updates: a bar that moves in a terminal and a notebook, else a line an epoch."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file or sys.stderr
        self._handle: Any = None
        self._in_notebook = file is None and _is_notebook()
        self._is_terminal = not self._in_notebook and self._file.isatty()
        self._last: epoch_report_pb2.EpochReport | None = None
        self._said = ""

    def show(self, update: Update) -> None:
        """Replaces what was shown before."""
        self._last = update.epochs[-1] if update.epochs else self._last
        line = line_of(update.job, self._last)
        if self._in_notebook:
            self._show_html(update.job, line)
        elif self._is_terminal:
            end = "\n" if is_terminal(update.job) else ""
            columns = shutil.get_terminal_size().columns
            self._file.write(f"\r\x1b[K{line[: columns - 1]}{end}")
        else:
            self._show_lines(update)
        self._file.flush()

    def _show_lines(self, update: Update) -> None:
        for report in update.epochs:
            self._file.write(f"{_id(update.job)}  {_epoch_text(report, update.job)}\n")
        state = f"{_id(update.job)}  {_state(update.job)}"
        if state != self._said:
            self._said = state
            self._file.write(f"{state}\n")

    def _show_html(self, job: job_pb2.Job, line: str) -> None:
        from IPython.display import HTML, display

        share = 100 * _share(job)
        text = html.escape(line.replace(_bar(job), "").strip())
        bar = f'<progress value="{share:.1f}" max="100" style="width:16em"></progress>'
        shown = HTML(f"<div>{bar} <code>{text}</code></div>")
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)


def line_of(job: job_pb2.Job, last: epoch_report_pb2.EpochReport | None) -> str:
    """Where a job is, in one line."""
    parts = [_id(job), _bar(job)]
    if last is not None:
        parts.append(_epoch_text(last, job))
    if is_terminal(job) or last is None:
        parts.append(_state(job))
    elif job.progress.remaining_ms > 0:
        parts.append(f"{job.progress.remaining_ms / 1000:.0f} s left")
    return "  ".join(part for part in parts if part)


def _id(job: job_pb2.Job) -> str:
    return job.name.removeprefix("jobs/")


def _share(job: job_pb2.Job) -> float:
    """Of the planned work that is done, 0 to 1."""
    progress = job.progress
    if job.state == job_pb2.JOB_STATE_SUCCEEDED:
        return 1.0
    if progress.epochs > 0:
        part = progress.batches_committed / max(1, progress.batches_per_epoch)
        return min(1.0, (progress.epoch + min(1.0, part)) / progress.epochs)
    rows = progress.evaluation
    return rows.rows_done / rows.rows_total if rows.rows_total > 0 else 0.0


def _bar(job: job_pb2.Job) -> str:
    full = round(BAR_COLUMNS * _share(job))
    return "█" * full + "░" * (BAR_COLUMNS - full)


def _epoch_text(report: epoch_report_pb2.EpochReport, job: job_pb2.Job) -> str:
    planned = job.effective_spec.training.epochs or job.progress.epochs
    text = f"epoch {report.epoch + 1}/{planned}  loss {report.loss:.4f}"
    if report.val_metrics:
        text += f"  val {_metric_text(report.val_metrics[0])}"
    return text


def _metric_text(metric: epoch_report_pb2.Metric) -> str:
    if metric.name == "accuracy":
        return f"accuracy {100 * metric.value:.1f} %"
    return f"{metric.name.replace('_', ' ')} {metric.value:.4g}"


def _state(job: job_pb2.Job) -> str:
    state = job_pb2.JobState.Name(job.state).removeprefix("JOB_STATE_")
    if job.state == job_pb2.JOB_STATE_SUCCEEDED and not job.result.HasField("predictions"):
        best = job.result.test_metrics_best
        return f"{state}  test {_metric_text(best[0])}" if best else state
    if job.message and job.state != job_pb2.JOB_STATE_RUNNING:
        return f"{state}, {job.message}"
    phase = job_pb2.JobPhase.Name(job.phase).removeprefix("JOB_PHASE_").lower().replace("_", " ")
    return state if phase == "unspecified" else f"{state}, {phase}"


def _is_notebook() -> bool:
    """Whether IPython runs here with a front end that shows more than text."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
