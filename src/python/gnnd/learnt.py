"""What a job learns, by its spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from gnnd.dataset import Task, task_of
from gnnd.errors import NotFound
from gnnd.v1 import evaluation_pb2, inference_pb2, links_pb2

#: What is learnt of nodes, or links.
Learnt = Literal[Task, "LINKS"]

#: What decides tells the task, unless several have the metric.
_TASKS: dict[int, Task] = {
    evaluation_pb2.DECIDING_METRIC_ACCURACY: "CLASSIFICATION",
    evaluation_pb2.DECIDING_METRIC_MAE: "REGRESSION",
    evaluation_pb2.DECIDING_METRIC_RMSE: "REGRESSION",
}


def learnt_of(spec: Any, task_of_dataset: Callable[[str], Task]) -> Learnt:
    """Of an effective spec. `task_of_dataset` raises `NotFound` where the dataset is gone."""
    if spec.kind == inference_pb2.JOB_KIND_INFERENCE:
        return task_of(spec.inference.task)
    if spec.task == links_pb2.JOB_TASK_LINKS:
        return "LINKS"
    if spec.task == links_pb2.JOB_TASK_LINK_LABELS:
        return task_of(spec.links.labels)
    if spec.evaluation.metric in _TASKS:
        return _TASKS[spec.evaluation.metric]
    try:
        return task_of_dataset(spec.dataset)
    except NotFound:  # Several labels' usual metric; specs once had none.
        of_labels = spec.evaluation.metric == evaluation_pb2.DECIDING_METRIC_MICRO_F1
        return "MULTI_LABEL" if of_labels else "CLASSIFICATION"
