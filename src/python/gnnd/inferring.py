"""Inferences that calls of a job make for themselves: of which nodes, and how these are told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gnnd.errors import Violation, wrong
from gnnd.parts import is_mask
from gnnd.staging import put_array, put_text, require_shared, staging_folder
from gnnd.values import Unfit, masked_array
from gnnd.words import one_of, shown

#: Ids that a spec may list; more go by a file.
_LISTED_MAX = 1000
_SETS = {"all": "ALL", "train": "TRAINING", "val": "VALIDATION", "test": "TEST"}


@dataclass(frozen=True)
class Place:
    """Where files for the daemon may be written."""

    is_same_host: bool
    state_dir: str
    staging: str | os.PathLike[str] | None


class Question(Protocol):
    """What an inference is asked for, before what it is of is listed."""

    @property
    def inference(self) -> Mapping[str, Any]:
        """Members of `spec.inference`."""

    def listed(
        self, num_nodes: Callable[[], int], place: Place
    ) -> AbstractContextManager[tuple[dict[str, Any], Any]]:
        """More of them, and the order in which rows are wanted; None: theirs."""


@dataclass(frozen=True)
class Asked:
    """What an inference is asked for, before its nodes are listed."""

    #: The call that asks, for messages.
    call: str
    #: Members of `spec.inference`.
    inference: Mapping[str, Any]
    #: [n] numbers, ids as texts, or a mask; None: a set that the spec names.
    nodes: Any

    @contextmanager
    def listed(
        self, num_nodes: Callable[[], int], place: Place
    ) -> Iterator[tuple[dict[str, Any], Any]]:
        """More members of `spec.inference`, and the order in which rows are wanted; None: theirs.

        `num_nodes` is of the dataset. A file that they name is there until the end.
        """
        if self.nodes is None:
            yield {}, None
            return
        by_ids = self.nodes.dtype == object
        wanted = self.nodes if by_ids else _numbered(self.call, self.nodes, num_nodes())
        # Numbers go by a file: a spec's texts would be ids where ids are numbers.
        if by_ids and len(wanted) <= _LISTED_MAX:
            yield {"node_ids": wanted.tolist()}, wanted
            return
        require_shared(place.is_same_host, place.staging)
        with staging_folder(place.staging, place.state_dir) as folder:
            if by_ids:
                put_text(folder, "nodes.txt", "".join(f"{name}\n" for name in wanted))
                yield {"nodes_file": str(folder / "nodes.txt")}, wanted
            else:
                put_array(folder, "nodes", np.unique(wanted).astype(np.int64))
                yield {"nodes_file": str(folder / "nodes.npy")}, wanted


def asked(
    call: str,
    nodes: Any,
    *,
    outputs: Mapping[str, bool],
    ids: bool | None,
    parameters: str,
    layer: int | None = None,
) -> Asked:
    """An inference of `nodes`; `ids` of None: where nothing else is wanted beside predictions."""
    wanted = None if isinstance(nodes, str) else listed_nodes(call, nodes)
    if wanted is None and nodes not in _SETS:
        text = f"{one_of(nodes, _SETS)}; of one node, [{shown(nodes)}]"
        raise wrong(call, Violation("nodes", text))
    by_ids = wanted is not None and wanted.dtype == object
    has_ids = by_ids or (not any(outputs.values()) if ids is None else ids)
    inference = {
        "parameters": parameters,
        "nodes": "LISTED" if wanted is not None else _SETS[nodes],
        "outputs": [name for name, is_wanted in outputs.items() if is_wanted],
        "formats": ["NPY", "CSV"] if has_ids else ["NPY"],
        **({} if layer is None else {"layer": layer}),
    }
    return Asked(call, inference, wanted)


def listed_nodes(call: str, nodes: Any, field: str = "nodes") -> Any:
    """[n] numbers, texts as objects, or a mask, of those in any form that names nodes."""
    if isinstance(nodes, (range, set, frozenset)):
        nodes = sorted(nodes)
    try:
        found = masked_array(nodes)
        if isinstance(found, np.ma.MaskedArray) or found.dtype == object:
            is_text = found.dtype == object
            lacking = [text is None for text in found] if is_text else np.ma.getmaskarray(found)
            if np.any(lacking):
                at = int(np.flatnonzero(lacking)[0])
                raise Unfit(f"there is none at index {at}: expected numbers, or ids as texts")
    except Unfit as error:
        raise wrong(call, Violation(field, str(error))) from None
    if found.dtype == bool or found.size == 0:
        return found.astype(bool if found.size > 0 else np.int64)
    if found.dtype != object and found.dtype.kind not in "iu":
        text = f"they are of type {found.dtype}: expected whole numbers, ids as texts, or a mask"
        raise wrong(call, Violation(field, text))
    return found if found.ndim == 1 else found.reshape(len(found), -1)


@contextmanager
def among_file(call: str, among: Any, num_nodes: int, place: Place) -> Iterator[str]:
    """Path of a file of nodes that others are chosen from, which is there until the end."""
    require_shared(place.is_same_host, place.staging)
    with staging_folder(place.staging, place.state_dir) as folder:
        if among.dtype == object:
            put_text(folder, "among.txt", "".join(f"{name}\n" for name in among))
            yield str(folder / "among.txt")
        else:
            numbers = _numbered(call, among, num_nodes, "among")
            put_array(folder, "among", np.unique(numbers).astype(np.int64))
            yield str(folder / "among.npy")


def _numbered(call: str, found: Any, num_nodes: int, field: str = "nodes") -> Any:
    """[n] numbers of nodes of those, or of a mask."""

    def refuse(text: str) -> None:
        raise wrong(call, Violation(field, text))

    if found.ndim == 2 and 1 in found.shape:
        found = found.reshape(-1)
    if found.ndim != 1:
        refuse(f"they have shape {found.shape}: expected [n]")
    if found.dtype == bool:
        if len(found) != num_nodes:
            refuse(f"a mask of {len(found):,}: expected one of each of {num_nodes:,} nodes")
        return np.flatnonzero(found)
    if is_mask(found, num_nodes):
        return np.flatnonzero(found)
    outside = np.flatnonzero((found < 0) | (found >= num_nodes))
    if outside.size > 0:
        refuse(f"{found[outside[0]]} at index {outside[0]}: expected 0 to {num_nodes - 1:,}")
    return found.astype(np.int64)
