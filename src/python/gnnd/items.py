"""What a loader's batches are of: nodes, or links between them with nodes drawn beside each."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from gnnd.errors import Violation, wrong
from gnnd.geometric import torch_of
from gnnd.reader import Batch, Reader
from gnnd.words import one_of, shown

_MODES = ("binary", "triplet")
#: Nodes that a job draws beside a link, at most.
_MOST_NEGATIVES = 1024


class Items(Protocol):
    """What an epoch has in an order, of which a batch counts some."""

    def __len__(self) -> int:
        """How many there are."""

    def about(self) -> dict[str, Any]:
        """What batches depend on of them."""

    def saved(self, folder: Path) -> dict[str, Any]:
        """Fields of a spec's `load` that name them, by a file in this folder."""


class NodeItems:
    """Nodes by their ids; None: the training nodes of a dataset, `num_train`."""

    def __init__(self, nodes: np.ndarray | None, num_train: int) -> None:
        self._nodes, self._num_train = nodes, num_train

    def __len__(self) -> int:
        return self._num_train if self._nodes is None else len(self._nodes)

    def about(self) -> dict[str, Any]:
        """Their digest and number."""
        seeds = "the training nodes" if self._nodes is None else _digest(self._nodes)
        return {"seeds": seeds, "num_seeds": len(self)}

    def saved(self, folder: Path) -> dict[str, Any]:
        """Nothing for a dataset's own."""
        if self._nodes is None:
            return {}
        path = folder / "seeds.npy"
        np.save(path, self._nodes)
        return {"nodes_file": str(path), "nodes": len(self._nodes)}


class Negatives(NamedTuple):
    """What is drawn beside links: `amount` pairs (binary) or destinations (triplet) for each."""

    mode: str
    amount: float

    @property
    def per_link(self) -> int:
        """Nodes that a job draws for each link, a whole number."""
        return math.ceil(self.amount) * (2 if self.mode == "binary" else 1)


def negatives_of(given: Any, ratio: float | None) -> Negatives | None:
    """As torch_geometric's NegativeSampling is given: an object, a tuple, a mapping, a name."""
    if ratio:
        given = ("binary", ratio)
    if given is None:
        return None
    if isinstance(given, str):
        given = (given,)
    if isinstance(given, Mapping):
        fields = dict(given)
    elif isinstance(given, (tuple, list)):
        fields = dict(zip(("mode", "amount", "src_weight", "dst_weight"), given, strict=False))
    else:
        fields = dict(vars(given)) if hasattr(given, "mode") else {"mode": given}
    mode: Any = getattr(fields.get("mode"), "value", fields.get("mode"))
    amount = fields.get("amount", 1)
    found = _wrong_negatives(mode, amount)
    for name in ("src_weight", "dst_weight"):
        if fields.get(name) is not None:
            text = "a loader draws all nodes alike; expected None (docs/loader.md#links)"
            found.append(Violation(f"neg_sampling.{name}", text))
    if found:
        raise wrong("gnnd.link_loader()", *found)
    return Negatives(mode, amount)


def _wrong_negatives(mode: Any, amount: Any) -> list[Violation]:
    found = []
    if mode not in _MODES:
        found.append(Violation("neg_sampling.mode", one_of(mode, _MODES)))
    if not isinstance(amount, (int, float)) or amount <= 0:
        found.append(Violation("neg_sampling.amount", f"{shown(amount)}: expected more than 0"))
    elif mode == "triplet" and amount != math.ceil(amount):
        text = f"{shown(amount)}: expected a whole number for triplet"
        found.append(Violation("neg_sampling.amount", text))
    elif mode in _MODES and Negatives(mode, amount).per_link > _MOST_NEGATIVES:
        most = _MOST_NEGATIVES // (2 if mode == "binary" else 1)
        text = f"{shown(amount)}: expected at most {most} for {mode}"
        found.append(Violation("neg_sampling.amount", text))
    return found


class LinkItems:
    """Links, and what their batches have: named as LinkNeighborLoader names it."""

    def __init__(
        self, pairs: np.ndarray, labels: Any, negatives: Negatives | None, *, exclude: bool
    ) -> None:
        """Of pairs [2, links], sources and destinations, and labels [links, …] or None."""
        self._pairs = np.ascontiguousarray(pairs.T, np.uint32)
        self._negatives = negatives
        self._exclude = exclude
        self._torch = torch_of("gnnd.link_loader()")
        is_binary = negatives is not None and negatives.mode == "binary"
        if labels is not None:
            labels = self._torch.as_tensor(labels)
            if is_binary and labels.min() == 0:
                labels = labels + 1  # 0 tells a negative.
        self._labels = labels

    def __len__(self) -> int:
        return len(self._pairs)

    def about(self) -> dict[str, Any]:
        """Their digest and number, and what is drawn beside them."""
        negatives = None if self._negatives is None else list(self._negatives)
        return {
            **{"links": _digest(self._pairs), "num_links": len(self)},
            **{"neg_sampling": negatives, "exclude_links": self._exclude},
        }

    def saved(self, folder: Path) -> dict[str, Any]:
        """The pairs."""
        path = folder / "links.npy"
        np.save(path, self._pairs)
        return {
            **{"links_file": str(path), "links": len(self)},
            "negatives": 0 if self._negatives is None else self._negatives.per_link,
            "exclude_links": self._exclude,
        }

    def copied(
        self, reader: Reader, batch: Batch, empty: Callable[[tuple[int, ...], Any], Any]
    ) -> dict[str, Any]:
        """What a batch has of its links."""
        kind = self._torch.int64
        items = empty((batch.num_pairs,), kind)
        ends = empty((2, batch.num_pairs), kind)
        drawn = empty((batch.num_pairs, batch.num_negatives), kind)
        reader.copy_pairs(items.data_ptr(), ends.data_ptr(), drawn.data_ptr())
        parts = {"input_id": items}
        if self._negatives is not None and self._negatives.mode == "triplet":
            # One negative each is a list, as torch_geometric has it.
            parts |= {"src_index": ends[0], "dst_pos_index": ends[1]}
            return {**parts, "dst_neg_index": drawn.squeeze(-1)}
        labels = None if self._labels is None else self._labels[items]
        if self._negatives is not None:
            wanted = math.ceil(batch.num_pairs * self._negatives.amount)
            negative = drawn.view(-1, 2)[:wanted].t()
            ends = self._torch.cat([ends, negative], 1)
            if labels is None:
                labels = self._torch.ones(batch.num_pairs)
            labels = self._torch.cat([labels, labels.new_zeros((wanted, *labels.shape[1:]))])
        return {**parts, "edge_label_index": ends, "edge_label": labels}


def _digest(values: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(values, np.int64).tobytes()).hexdigest()
