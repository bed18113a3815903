"""One job with a daemon of its own, here: what an engine that places jobs on hosts starts."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gnnd import trackers
from gnnd.embedded import LocalClient, local
from gnnd.errors import GnndError, NotFound, NotPossibleNow
from gnnd.history import Record
from gnnd.job import Job
from gnnd.spec import job_spec, plain
from gnnd.v1 import dataset_service_pb2, job_pb2, types_pb2

#: Seconds for which a state directory is waited for that another daemon still has.
HELD_SECONDS = 150.0


@dataclass(frozen=True)
class Result:
    """How a job ended, and where."""

    name: str
    #: SUCCEEDED, FAILED or CANCELLED; LOST where its host went away too often.
    state: str
    #: The stable word for programs (docs/api.md) and the sentence for people.
    reason: str = ""
    message: str = ""
    #: Metrics, the best epoch (from 0), `parameters_sha256`; empty unless SUCCEEDED.
    summary: dict[str, Any] = field(default_factory=dict)
    #: Its epochs, as `gnnd.Job.records` has them.
    records: list[Record] = field(default_factory=list)
    #: Folder of its checkpoints on `host`; gone with a state directory of its own.
    checkpoint: str = ""
    host: str = ""


def run(
    name: str,
    spec: Mapping[str, Any],
    *,
    source: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
    cpus: int | None = None,
    on_epoch: Callable[[Record], object] | None = None,
    **options: Any,
) -> Result:
    """Runs a job to its end, or goes on with it where `state_dir` has it from before.

    The daemon is this call's: it ends with it, with an image of a job that has not ended, as
    `gnnd run` does (docs/fleets.md).

    Args:
        name: Of the job; its folder below `state_dir`, too.
        spec: The nested mapping that `Client.submit_spec` takes.
        source: What `spec["dataset"]` is imported from, where the folder lacks it.
        state_dir: A folder for all jobs, best one that all hosts see; by default nothing is kept.
        cpus: Number of cores and CPU devices; they are claimed among the calls of this function on
            this host. By default all.
        on_epoch: Is told of each epoch; what it raises cancels the job and is raised here.
        options: Keys of the daemon's configuration, and `command` of `gnnd.local`.

    Raises:
        InvalidRequest: The spec is wrong; `violations` says where.
        AlreadyExists: `state_dir` has a job of that name from another spec.
    """
    folder = None if state_dir is None else Path(state_dir).expanduser().absolute() / name
    with _cores(cpus), _daemon(folder, cpu_devices=cpus, **options) as client:
        job = _job(client, name, spec, source)
        records: list[Record] = []

        def told(record: Record) -> None:
            records.append(record)
            if on_epoch is not None:
                on_epoch(record)

        try:
            trackers.follow(job, told)
        except BaseException as error:
            # A search that gives a job up is no interruption, after which it would go on.
            if isinstance(error, Exception) and not isinstance(error, GnndError):
                with contextlib.suppress(NotPossibleNow):
                    job.cancel().wait(check=False)
            raise
        return result_of(name, job, records)


def result_of(name: str, job: Job, records: list[Record]) -> Result:
    """The result of a job that has ended."""
    message = job.message
    return Result(
        name=name,
        state=job_pb2.JobState.Name(message.state).removeprefix("JOB_STATE_"),
        reason=types_pb2.Reason.Name(message.reason).removeprefix("REASON_"),
        message=message.message,
        summary=trackers.summary(job),
        records=records,
        checkpoint=message.result.checkpoint_dir,
        host=socket.gethostname(),
    )


def _job(client: LocalClient, name: str, spec: Mapping[str, Any], source: Any) -> Job:
    """The job that is there, or a new one with its dataset."""
    try:
        job = client.job(name)
    except NotFound:
        dataset = spec.get("dataset")
        if source is not None and dataset and not _is_ready(client, dataset):
            client.import_path(source, dataset)
        return client.submit_spec(spec, name=name)
    if plain(job.message.spec) != plain(job_spec(spec)):
        raise GnndError(
            f"{name} was created from another spec in {client.host.state_dir}: another name, or "
            "another state_dir, is another job",
            reason="JOB_EXISTS",
        )
    return job


def _is_ready(client: LocalClient, dataset: str) -> bool:
    """Whether it is there; what an interrupted import left is removed."""
    for known in client.datasets():
        if known.id == dataset:
            if known.message.state == dataset_service_pb2.DATASET_STATE_READY:
                return True
            known.delete()
    return False


@contextlib.contextmanager
def _daemon(folder: Path | None, **options: Any) -> Iterator[LocalClient]:
    """A daemon on a folder; one that still ends there, after its caller died, is waited for."""
    deadline = time.monotonic() + HELD_SECONDS
    while True:
        try:
            client = local(folder, **options)
            break
        except GnndError as error:
            if error.reason != "STATE_DIR" or folder is None or time.monotonic() > deadline:
                raise
            time.sleep(1)
    with client:
        yield client


@contextlib.contextmanager
def _cores(count: int | None) -> Iterator[None]:
    """Binds this thread and its children to so many cores that no other call on this host has.

    Engines that count cores bind nobody to them, and daemons that know nothing of each other would
    take the same ones. A lock lives as long as its process. Where too few are free nobody is bound.
    """
    before = os.sched_getaffinity(0)
    if count is None or count >= len(before):
        yield
        return
    folder = Path(tempfile.gettempdir(), f"gnnd-cores-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    with contextlib.ExitStack() as held:
        mine: set[int] = set()
        for core in sorted(before):
            if len(mine) == count:
                break
            file = held.enter_context(open(folder / str(core), "w"))
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                mine.add(core)
        if len(mine) == count:
            os.sched_setaffinity(0, mine)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)
