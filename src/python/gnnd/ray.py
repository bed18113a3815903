"""Jobs on the hosts of a Ray cluster: `gnnd.ray.run`. Needs ray: pip install 'gnnd[ray]'."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnnd import runs
from gnnd.errors import GnndError, missing
from gnnd.runs import Result

__all__ = ["Result", "run"]


def run(
    jobs: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]],
    *,
    source: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
    cpus: int = 1,
    gpus: float = 0,
    resources: Mapping[str, float] | None = None,
    retries: int = 3,
    on_result: Callable[[Result], object] | None = None,
    **options: Any,
) -> list[Result]:
    """Runs jobs on a Ray cluster, each with a daemon of its own, and waits for all of them.

    Ray places them where their resources are free. A job whose host or worker is lost is placed
    again; with a `state_dir` that hosts share it goes on from its newest image, and ends with the
    parameters of an undisturbed one, bit for bit; without one it begins anew.

    Args:
        jobs: Specs by name, or in a row (then called `job-0`, `job-1`, …): nested mappings as
            `Client.submit_spec` takes them.
        source: What datasets are imported from: a path that every host sees.
        state_dir: A folder that every host sees; without it only the result of a job is kept.
        cpus: Cores of each job, its CPU devices.
        gpus: GPUs of each job, those that Ray makes visible to it; whole ones from 1 on.
        resources: Others of Ray's resources that each job takes, such as `{"graph-host": 1}`.
        retries: Times that a job is placed again after its host or worker was lost.
        on_result: Is told of each job as it ends.
        options: Keys of the daemon's configuration, and `command` of `gnnd.local`.

    Returns:
        In the order of `jobs`. A job that failed has state FAILED, and one that was lost more than
        `retries` times LOST; they stop no other. What no job can be made of (a wrong spec, no gnnd
        on a host) has state FAILED as well, with the error as its message.
    """
    engine = _ray()
    named = dict(jobs) if isinstance(jobs, Mapping) else dict(_named(jobs))
    place = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": retries}
    task = engine.remote(**place, resources=dict(resources or {}))(_task)
    given = {"source": _text(source), "state_dir": _text(state_dir), "cpus": cpus}
    if gpus == 0:
        given["cuda_devices"] = "none"
    waiting = {
        task.remote(name, dict(spec), {**given, **options}): name for name, spec in named.items()
    }
    ended: dict[str, Result] = {}
    while waiting:
        ready, _ = engine.wait(list(waiting), num_returns=1)
        name = waiting.pop(ready[0])
        try:
            ended[name] = engine.get(ready[0])
        except engine.exceptions.RayError as error:
            ended[name] = Result(name, "LOST", type(error).__name__, str(error).strip())
        if on_result is not None:
            on_result(ended[name])
    return [ended[name] for name in named]


def _task(name: str, spec: Mapping[str, Any], given: Mapping[str, Any]) -> Result:
    """On a host of the cluster. What gnnd refuses would be refused again: it is an answer."""
    try:
        return runs.run(name, spec, **given)
    except GnndError as error:
        return Result(name, "FAILED", error.reason or error.code, str(error))


def _named(specs: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(f"job-{index}", spec) for index, spec in enumerate(specs)]


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise missing("ray", "ray", "gnnd.ray.run()") from None
    return ray
