"""How good a model is for each class, label or target, from what it predicts of known nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gnnd import files
from gnnd.dataset import Task

#: Wider matrices of confusion are not printed; the pairs that are mixed up most are.
_PRINTED_MAX = 12
_MIXED_UP = 10


@dataclass(frozen=True, eq=False)
class Report:
    """Arrays with an element for each of `names`, and how they print."""

    #: What is learnt of a node.
    task: Task
    #: Of classes, labels or targets: the dataset's, else their numbers.
    names: list[str]
    #: [C] int64: nodes of the class, with the label, or whose target is known.
    support: np.ndarray
    #: [C] float64: share of those said to be of the class that are; 0 where none is said to be.
    precision: np.ndarray | None = None
    #: [C] float64: share of the class's nodes that are said to be; 0 where it has none.
    recall: np.ndarray | None = None
    #: [C] float64: harmonic mean of both.
    f1: np.ndarray | None = None
    #: [C, C] int64: nodes by their class and by the predicted one; None but of classes.
    confusion: np.ndarray | None = None
    #: Share of nodes whose class is predicted; None but of classes.
    accuracy: float | None = None
    #: [C] float64: means of absolute errors; None but of numbers.
    mae: np.ndarray | None = None
    #: [C] float64: roots of means of squared errors; None but of numbers.
    rmse: np.ndarray | None = None

    def __str__(self) -> str:
        shares = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        errors = {"mae": self.mae, "rmse": self.rmse}
        shown = {key: values for key, values in {**shares, **errors}.items() if values is not None}
        rows = [["", *shown, "nodes"]]
        for at, name in enumerate(self.names):
            numbers = [f"{values[at]:.4f}" for values in shown.values()]
            rows.append([name, *numbers, f"{self.support[at]:,}"])
        total = self.support.sum()
        if self.precision is not None:
            for name, weights in (("mean", None), ("by nodes", self.support)):
                usable = weights if weights is None or total > 0 else None
                means = [np.average(values, weights=usable) for values in shown.values()]
                rows.append([name, *(f"{mean:.4f}" for mean in means), f"{total:,}"])
        parts = [_table(rows)]
        if self.accuracy is not None:
            parts.append(f"accuracy {self.accuracy:.4f}")
        if self.confusion is not None:
            parts.append(self._confusion())
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return str(self)

    def _confusion(self) -> str:
        assert self.confusion is not None
        if len(self.names) <= _PRINTED_MAX:
            rows = [["class \\ predicted", *self.names]]
            for name, counts in zip(self.names, self.confusion, strict=True):
                rows.append([name, *(f"{count:,}" for count in counts)])
            return _table(rows)
        others = self.confusion.copy()
        np.fill_diagonal(others, 0)
        rows = [["most mixed up", "predicted", "nodes"]]
        for at in np.argsort(-others, axis=None, kind="stable")[:_MIXED_UP]:
            known, predicted = np.unravel_index(at, others.shape)
            if others[known, predicted] > 0:
                count = f"{others[known, predicted]:,}"
                rows.append([self.names[known], self.names[predicted], count])
        return _table(rows)


def report_of(exported: Mapping[str, bytes]) -> Report:
    """The report of an export's predictions beside its labels; unknown labels count nowhere."""
    facts = files.checked(dict(exported), "export.json")
    predictions, labels = (files.npy(exported[f"{name}.npy"]) for name in ("predictions", "labels"))
    width = facts["model"]["out_dim"]
    names = facts["predictions"]["class_names"] or [str(at) for at in range(width)]
    return compared(facts["task"], predictions, labels, names)


def compared(task: Task, predictions: np.ndarray, labels: np.ndarray, names: list[str]) -> Report:
    """The report of arrays as exports have them."""
    if task == "CLASSIFICATION":
        return _of_classes(predictions, labels, names)
    if task == "REGRESSION":
        is_known = ~np.isnan(labels)
        errors = np.where(is_known, predictions.astype(np.float64) - labels, 0)
        support = is_known.sum(axis=0)
        return Report(
            task=task,
            names=names,
            support=support,
            mae=_shares(np.abs(errors).sum(axis=0), support),
            rmse=np.sqrt(_shares((errors**2).sum(axis=0), support)),
        )
    is_known = labels <= 1
    has, said = is_known & (labels == 1), is_known & (predictions == 1)
    counts = [np.count_nonzero(each, axis=0) for each in (has & said, said, has)]
    return Report(task=task, names=names, **_scores(*counts))


def _of_classes(predictions: np.ndarray, labels: np.ndarray, names: list[str]) -> Report:
    is_known = labels >= 0
    known, said = labels[is_known].astype(np.int64), predictions[is_known]
    width = len(names)
    confusion = np.bincount(known * width + said, minlength=width * width).reshape(width, width)
    right = np.diagonal(confusion)
    return Report(
        task="CLASSIFICATION",
        names=names,
        confusion=confusion,
        accuracy=float(right.sum() / max(len(known), 1)),
        **_scores(right, confusion.sum(axis=0), confusion.sum(axis=1)),
    )


def _scores(right: np.ndarray, said: np.ndarray, support: np.ndarray) -> dict[str, Any]:
    return {
        "support": support,
        "precision": _shares(right, said),
        "recall": _shares(right, support),
        "f1": _shares(2 * right, said + support),
    }


def _shares(parts: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    """Quotients; 0 where the whole is nothing."""
    quotients: np.ndarray = parts / np.maximum(wholes, 1)
    return quotients


def _table(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)
