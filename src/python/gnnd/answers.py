"""What the head of a model of links answers: scores of pairs, and the nearest of nodes."""

from __future__ import annotations

import csv
import io
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gnnd import files, inferring
from gnnd.calls import public
from gnnd.dataset import Dataset
from gnnd.errors import Violation, wrong
from gnnd.inferring import Place
from gnnd.staging import put_array, put_text, require_shared, staging_folder
from gnnd.values import Unfit, masked_array

_NEAREST = "job.nearest()"


@dataclass(frozen=True, eq=False)
class Nearest:
    """The k nodes with which each of n nodes' links would have the highest scores."""

    #: [n] node ids, int64, in the order in which they were asked for.
    nodes: np.ndarray
    #: [n, k] node ids, int64, the best first; -1 where a node has fewer.
    nearest: np.ndarray
    #: [n, k] scores, float32; NaN where a node has fewer.
    scores: np.ndarray
    #: [n] texts that the dataset calls the nodes; None where it has none, or they were left out.
    ids: list[str] | None = None
    #: [n] lists of up to k such texts.
    nearest_ids: list[list[str]] | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        count, k = self.nearest.shape
        return f"<gnnd.Nearest of {count:,} nodes: {k} each>"

    def in_order_of(self, wanted: Any) -> Nearest:
        """Of `wanted` nodes, or their ids as texts, in their order; one may come twice."""
        at = files.rows_of(wanted, self.nodes, self.ids)
        ids, others = self.ids, self.nearest_ids
        return replace(
            self,
            nodes=self.nodes[at],
            nearest=self.nearest[at],
            scores=self.scores[at],
            ids=None if ids is None else [ids[row] for row in at],
            nearest_ids=None if others is None else [others[row] for row in at],
        )


class Answering:
    """The calls of a job that has learnt links: each is an inference of its own."""

    @abstractmethod
    def _inferred(
        self,
        asked: inferring.Question,
        dataset: str | Dataset | None,
        devices: int | None,
        staging: str | os.PathLike[str] | None,
        keep: bool,
    ) -> tuple[dict[str, bytes], Any]:
        """The files of an inference, and the order of the nodes' rows."""

    @public
    def score(
        self,
        pairs: Any,
        *,
        which: str = "best",
        dataset: str | Dataset | None = None,
        devices: int | None = None,
        staging: str | os.PathLike[str] | None = None,
        keep: bool = False,
    ) -> np.ndarray:
        """Scores [n] float32 of pairs, in their order; higher belong together rather.

        Args:
            pairs: [n, 2] or [2, n] numbers of nodes, source and destination ([2, 2] is read as
                the latter), or [n, 2] of the dataset's ids as texts.
            which: As the next ones: as of `predict`.
            dataset: Another dataset; by default that of the training.
            devices: Number of devices.
            staging: Where the pairs are written for the daemon.
            keep: Leaves the job and its files with the daemon.
        """
        asked = _Pairs("job.score()", pairs, which)
        found, _ = self._inferred(asked, dataset, devices, staging, keep)
        files.checked(found, "inference.json")
        return files.npy(found["scores.npy"])

    @public
    def nearest(
        self,
        nodes: Any = "all",
        k: int = 10,
        *,
        among: Any = None,
        with_known: bool = False,
        ids: bool | None = None,
        which: str = "best",
        dataset: str | Dataset | None = None,
        devices: int | None = None,
        staging: str | os.PathLike[str] | None = None,
        keep: bool = False,
    ) -> Nearest:
        """Of each node the `k` others with the highest scores, exactly; of equal ones the lower.

        Args:
            nodes: As of `predict`: `"all"`, or [n] numbers, ids as texts, or a mask.
            k: How many each, from 1 to fewer than there are nodes.
            among: The nodes that they are chosen from, likewise; by default all. In a graph of
                users and items these are the items.
            with_known: Whether nodes that a node is linked to already are among them.
            ids: Whether to have ids, where the dataset has them; by default where `nodes` are ids.
            which: As the next ones: as of `predict`.
            dataset: Another dataset; by default that of the training.
            devices: Number of devices.
            staging: Where nodes are written for the daemon.
            keep: Leaves the job and its files with the daemon.
        """
        asked = inferring.asked(
            _NEAREST, nodes, outputs={"NEAREST": True}, ids=ids or False, parameters=which
        )
        more = {"k": k, "with_known": with_known}
        chosen = None if among is None else inferring.listed_nodes(_NEAREST, among, "among")
        question = _Nodes(replace(asked, inference={**asked.inference, **more}), chosen)
        found, order = self._inferred(question, dataset, devices, staging, keep)
        nearest = nearest_of(found)
        return nearest if order is None else nearest.in_order_of(order)


def nearest_of(found: Mapping[str, bytes]) -> Nearest:
    """The nearest of an inference's files."""
    files.checked(dict(found), "inference.json")
    nearest = files.npy(found["nearest.npy"])
    nodes = files.npy(found["nodes.npy"]) if "nodes.npy" in found else np.arange(len(nearest))
    ids = _ids_in(found["predictions.csv"]) if "predictions.csv" in found else None
    return Nearest(
        nodes=nodes,
        nearest=nearest,
        scores=files.npy(found["scores.npy"]),
        ids=None if ids is None else [ids.get(int(node), str(node)) for node in nodes],
        nearest_ids=None
        if ids is None
        else [[ids[int(node)] for node in row if node >= 0] for row in nearest],
    )


def _ids_in(table: bytes) -> dict[int, str] | None:
    """What the dataset calls the nodes of a table of nearest ones; None where it has no ids."""
    rows = csv.DictReader(io.TextIOWrapper(io.BytesIO(table), encoding="utf-8", newline=""))
    if "id" not in (rows.fieldnames or ()):
        return None
    ids: dict[int, str] = {}
    for row in rows:
        ids[int(row["node"])] = row["id"]
        ids[int(row["nearest"])] = row["nearest_id"]
    return ids


@dataclass(frozen=True)
class _Nodes:
    """Nodes whose nearest are asked for, and those that are chosen from."""

    nodes: inferring.Asked
    among: Any

    @property
    def inference(self) -> Mapping[str, Any]:
        return self.nodes.inference

    @contextmanager
    def listed(
        self, num_nodes: Callable[[], int], place: Place
    ) -> Iterator[tuple[dict[str, Any], Any]]:
        with ExitStack() as stack:
            more, order = stack.enter_context(self.nodes.listed(num_nodes, place))
            if self.among is not None:
                chosen = inferring.among_file(_NEAREST, self.among, num_nodes(), place)
                more = {**more, "among_file": stack.enter_context(chosen)}
            yield more, order


class _Pairs:
    """Pairs whose scores are asked for."""

    def __init__(self, call: str, pairs: Any, which: str) -> None:
        self._call = call
        self._pairs = _pairs_of(call, pairs)
        self.inference: Mapping[str, Any] = {
            "parameters": which,
            "outputs": ["SCORES"],
            "formats": ["NPY"],
        }

    @contextmanager
    def listed(
        self, num_nodes: Callable[[], int], place: Place
    ) -> Iterator[tuple[dict[str, Any], Any]]:
        pairs = self._pairs
        if pairs.dtype != object:
            _check_range(self._call, pairs, num_nodes())
        require_shared(place.is_same_host, place.staging)
        with staging_folder(place.staging, place.state_dir) as folder:
            if pairs.dtype == object:
                text = io.StringIO()
                csv.writer(text).writerows([("source", "target"), *pairs.tolist()])
                put_text(folder, "pairs.csv", text.getvalue())
                yield {"pairs_file": str(folder / "pairs.csv")}, None
            else:
                # Sources first, which no number of pairs makes ambiguous.
                put_array(folder, "pairs", np.ascontiguousarray(pairs.T.astype(np.int64)))
                yield {"pairs_file": str(folder / "pairs.npy")}, None


def _pairs_of(call: str, pairs: Any) -> np.ndarray:
    """[n, 2] numbers, or texts as objects."""

    def refuse(text: str) -> None:
        raise wrong(call, Violation("pairs", text))

    try:
        found = masked_array(list(pairs) if isinstance(pairs, (set, frozenset)) else pairs)
    except Unfit as error:
        raise wrong(call, Violation("pairs", str(error))) from None
    if found.size == 0:
        refuse("there are none")
    if found.ndim == 1 and found.dtype == object:
        found = np.array([list(row) for row in found.tolist()], dtype=object)
    if found.ndim != 2 or 2 not in found.shape:
        refuse(f"they have shape {found.shape}: expected [n, 2] or [2, n]")
    if isinstance(found, np.ma.MaskedArray) or (found.dtype == object and None in found):
        refuse("an end is missing: expected numbers, or ids as texts")
    if found.dtype == object:
        if found.shape[1] != 2:
            refuse(f"texts have shape {found.shape}: expected [n, 2]")
        return found
    if found.dtype.kind not in "iu":
        refuse(f"they are of type {found.dtype}: expected whole numbers, or ids as texts")
    return found.T if found.shape[0] == 2 else found


def _check_range(call: str, pairs: np.ndarray, num_nodes: int) -> None:
    outside = np.argwhere((pairs < 0) | (pairs >= num_nodes))
    if len(outside) > 0:
        pair, end = outside[0]
        more = "" if len(outside) == 1 else f" and {len(outside) - 1:,} more"
        text = f"{pairs[pair, end]} in pair {pair}{more}: expected 0 to {num_nodes - 1:,}"
        raise wrong(call, Violation("pairs", text))
