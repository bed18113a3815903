"""What a job came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnnd.v1 import job_pb2


class Result:
    """A job's result: every field of `gnnd.v1.JobResult`, and its metrics by their names."""

    def __init__(self, message: job_pb2.JobResult) -> None:
        self.message = message

    @property
    def metrics(self) -> dict[str, float]:
        """Of the test, with the parameters that were best on the validation: `{"accuracy": 0.8}`.

        What decided which ones those are is first. Names are those of `Job.records`, without
        `val_`: of links `mrr@1000` and `hits@10@1000` are ranks among 1,000 negatives. Empty where
        nothing was tested.
        """
        return {metric.name: metric.value for metric in self.message.test_metrics_best}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "message":
            raise AttributeError(name)
        return getattr(self.message, name)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value:.4f}" for name, value in self.metrics.items())
        return f"<gnnd.Result: {shown or 'nothing was tested'}>"
