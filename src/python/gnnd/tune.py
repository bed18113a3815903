"""Searches over specs, which stop jobs that promise little early, by what each epoch tells.

`with_optuna` runs its jobs on one daemon, `with_ray` on the hosts of a Ray cluster.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from gnnd import runs, trackers
from gnnd.client import Client
from gnnd.errors import GnndError, JobCancelled, JobFailed, missing
from gnnd.history import Record, is_minimised, numbers
from gnnd.job import Job
from gnnd.spec import merged

__all__ = ["with_optuna", "with_ray"]


def with_optuna(
    client: Client,
    spec: Mapping[str, Any],
    space: Callable[[Any], Mapping[str, Any]],
    *,
    trials: int,
    metric: str = "val_accuracy",
    study: Any = None,
    parallel: int = 1,
    keep: bool = False,
) -> Any:
    """Searches with Optuna; each trial is a job of the client's daemon.

    After each epoch that has the metric the study's pruner is asked; a job that it gives up is
    cancelled. A trial's value is the metric's best; a job that failed fails its trial, and the
    search goes on.

    Args:
        client: Of the daemon, whose scheduler gives devices to `parallel` jobs at once.
        spec: What all trials have in common.
        space: Takes an `optuna.Trial`, answers what it tries as a nested mapping over `spec`:
            `{"training": {"optimizer": {"learning_rate": trial.suggest_float(...)}}}`.
        trials: How many.
        metric: A key of `Job.records`, such as `val_roc_auc`. Losses and errors (`val_mae`,
            `val_rmse`) are minimised, everything else is maximised.
        study: An `optuna.Study` with a sampler and a pruner; by default one with the median pruner
            and the metric's direction.
        parallel: Trials at once.
        keep: Leaves the jobs with the daemon, named `job.id` in the trial's user attributes; by
            default only the best one stays.

    Returns:
        The study.
    """
    try:
        import optuna
    except ImportError:
        raise missing("optuna", "tune", "gnnd.tune.with_optuna()") from None
    if study is None:
        study = optuna.create_study(direction="minimize" if is_minimised(metric) else "maximize")
    is_better = _comparison(study.direction == optuna.study.StudyDirection.MINIMIZE)

    def objective(trial: Any) -> float:
        job = client.submit_spec(merged(spec, space(trial)))
        trial.set_user_attr("job", job.id)
        best = math.nan
        seen: set[str] = set()

        def told(record: Record) -> None:
            nonlocal best
            seen.update(numbers(record))
            value = record.get(metric, math.nan)
            if math.isnan(value):
                return
            if math.isnan(best) or is_better(value, best):
                best = value
            trial.report(value, record["epoch"])
            if trial.should_prune():
                raise optuna.TrialPruned

        try:
            trackers.follow(job, told).wait()
        except BaseException as error:
            # An interrupt, too: nobody waits for its job any more.
            if not isinstance(error, (JobFailed, JobCancelled)):
                _give_up(job)
            raise
        if math.isnan(best):
            raise _no_metric(metric, seen)
        return best

    def tidy(study: Any, _: Any) -> None:
        _delete_but_best(client, study)

    callbacks = [] if keep else [tidy]
    study.optimize(
        objective, n_trials=trials, n_jobs=parallel, catch=(JobFailed,), callbacks=callbacks
    )
    return study


def with_ray(
    spec: Mapping[str, Any],
    space: Mapping[str, Any],
    *,
    trials: int,
    source: str | os.PathLike[str],
    state_dir: str | os.PathLike[str] | None = None,
    metric: str = "val_accuracy",
    cpus: int = 1,
    gpus: float = 0,
    scheduler: Any = None,
    search: Any = None,
    storage: str | None = None,
    **options: Any,
) -> Any:
    """Searches with Ray Tune; each trial is a job with a daemon of its own on one of its hosts.

    Args:
        spec: What all trials have in common.
        space: What they try: a nested mapping over `spec` with Ray's distributions in it,
            `{"training": {"optimizer": {"learning_rate": tune.loguniform(1e-4, 1e-1)}}}`.
        trials: How many.
        source: What the dataset is imported from: a path that every host sees.
        state_dir: As of `gnnd.ray.run`; a trial's folder is its id.
        metric: As of `with_optuna`.
        cpus: Cores of a trial.
        gpus: GPUs of a trial.
        scheduler: One of `ray.tune.schedulers`, by default ASHA over epochs: trials that are behind
            at an epoch are stopped, and their jobs with them.
        search: One of `ray.tune.search`, such as `OptunaSearch()`; by default chance.
        storage: `ray.tune.RunConfig.storage_path`.
        options: Keys of the daemon's configuration, and `command` of `gnnd.local`.

    Returns:
        Ray's `ResultGrid`; `grid.get_best_result().config` is what the best trial tried.
    """
    try:
        from ray import tune
        from ray.tune.schedulers import ASHAScheduler
    except ImportError:
        raise missing("ray", "tune", "gnnd.tune.with_ray()") from None
    given = {"source": os.fspath(source), "cpus": cpus, **options}
    if state_dir is not None:
        given["state_dir"] = os.fspath(state_dir)
    if gpus == 0:
        given["cuda_devices"] = "none"
    common = dict(spec)

    def trial(config: dict[str, Any]) -> None:
        seen: set[str] = set()

        def told(record: Record) -> None:
            found = numbers(record)
            seen.update(found)
            if metric in found:
                tune.report({**found, "epoch": record["epoch"] + 1})

        name = str(tune.get_context().get_trial_id()).replace("_", "-")
        result = runs.run(f"trial-{name}", merged(common, config), on_epoch=told, **given)
        if result.state != "SUCCEEDED":
            raise RuntimeError(f"{result.state} {result.reason}: {result.message}")
        if metric not in seen:
            raise _no_metric(metric, seen)

    epochs = int(merged(common.get("training", {})).get("epochs", 100))
    tuner = tune.Tuner(
        tune.with_resources(trial, {"cpu": cpus, "gpu": gpus}),
        param_space=dict(space),
        tune_config=tune.TuneConfig(
            metric=metric,
            mode="min" if is_minimised(metric) else "max",
            num_samples=trials,
            scheduler=scheduler or ASHAScheduler(time_attr="epoch", max_t=epochs),
            search_alg=search,
        ),
        run_config=tune.RunConfig(storage_path=storage, verbose=0),
    )
    return tuner.fit()


def _comparison(minimises: bool) -> Callable[[float, float], bool]:
    return (lambda a, b: a < b) if minimises else (lambda a, b: a > b)


def _no_metric(metric: str, seen: set[str]) -> GnndError:
    names = ", ".join(sorted(seen))
    return GnndError(f"no epoch has metric={metric!r}; of this dataset's task there are {names}")


def _give_up(job: Job) -> None:
    """A job that ended in the same moment needs no end."""
    with contextlib.suppress(GnndError):
        job.cancel().wait(check=False)


def _delete_but_best(client: Client, study: Any) -> None:
    """Jobs of trials that have ended and are not the best one so far."""
    completed = [trial for trial in study.trials if trial.value is not None]
    best = study.best_trial.number if any(t.state.name == "COMPLETE" for t in completed) else None
    for trial in study.trials:
        job = trial.user_attrs.get("job")
        if job is not None and trial.state.is_finished() and trial.number != best:
            with contextlib.suppress(GnndError):
                client.job(job).delete()
