"""What a job learns, as values to hand to `Client.submit`.

Whatever is None has the default of docs/job-spec.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gnnd.errors import Violation
from gnnd.keywords import Keywords
from gnnd.words import shown

__all__ = ["LinkLabels", "Links"]


@dataclass(frozen=True, kw_only=True)
class Links(Keywords):
    """Which pairs of nodes belong together (docs/links.md).

    Items of an epoch are links; the model's outputs are embeddings of `hidden` columns, and a head
    makes a score of two of them.
    """

    #: How the graph's edges are split: `{"validation": 0.05, "test": 0.1, "random_seed": 0}`.
    split: Mapping[str, Any] | None = None
    #: How two rows become a score: `"DOT"`, `"COSINE"`, `"DISTMULT"`, `"BILINEAR"` or `"MLP"`.
    head: str | None = None
    #: `"BCE"`, `"BCE_BALANCED"`, `"BPR"` or `"SOFTMAX"`.
    loss: str | None = None
    #: How many negatives a link has in training, or `{"method": "UNIFORM", "count": 1}`.
    negatives: int | Mapping[str, Any] | None = None
    #: Whether neighbours are drawn along a batch's own links: not with `"BATCH"`.
    exclude: str | None = None
    #: Edges that messages come along at the test: `"TRAIN"` or `"TRAIN_VAL"`.
    messages_at_test: str | None = None
    #: Divides scores before the softmax of that loss.
    temperature: float | None = None
    #: How many negatives a link is ranked among, or `{"negatives": "ALL"}`.
    evaluation: int | Mapping[str, Any] | None = None
    #: `"DATASET"`: its own links; `"EDGES"`: edges of its graph, by `split`.
    targets: str | None = None
    #: What is learnt from: `"LINKS"`, or `"WALKS"`, nodes that random walks visit together.
    positives: str | None = None
    #: Those walks: `{"length": 5, "window": 2, "per_node": 2, "random_seed": 0}`.
    walks: Mapping[str, Any] | None = None
    #: Whether links count as the dataset weighs them: `"DATASET"`, where it does, or `"NONE"`.
    weights: str | None = None
    #: Whether the dataset's own test links may be edges of its graph.
    allow_overlap: bool | None = None

    def spec(self) -> dict[str, Any]:
        """The parts of a job spec that follow, as nested mappings."""
        links = {
            **vars(self),
            "negatives": _counted(self.negatives),
            "evaluation": _counted(self.evaluation),
        }
        return {"task": "LINKS", "links": links}


@dataclass(frozen=True, kw_only=True)
class LinkLabels(Keywords):
    """What the dataset knows of its own links: classes, labels or numbers (docs/links.md).

    Items of an epoch are links; a perceptron over the rows of both ends gives the classes' logits,
    or the numbers. Losses and metrics are those of nodes.
    """

    #: `"MLP"`; of one number a link also `"DOT"` and the others of `Links`.
    head: str | None = None
    #: Whether neighbours are drawn along a batch's own links: with `"NONE"`, unless asked.
    exclude: str | None = None

    def spec(self) -> dict[str, Any]:
        """The parts of a job spec that follow, as nested mappings."""
        return {"task": "LINK_LABELS", "links": dict(vars(self))}


def _counted(given: Any) -> Any:
    """A number stands for a mapping with that count."""
    return given if given is None or isinstance(given, Mapping) else {"count": given}


def wrong_task(task: Any) -> list[Violation]:
    """What is wrong with the argument `task` of `Client.submit`."""
    if task is None or isinstance(task, (Links, LinkLabels)):
        return []
    text = (
        f"{shown(task)}: expected gnnd.Links(), gnnd.LinkLabels(), or nothing: what is learnt of "
        "nodes follows from the dataset, which imports take task='REGRESSION' or 'MULTI_LABEL' "
        "for (docs/datasets.md)"
    )
    return [Violation("task", text)]
