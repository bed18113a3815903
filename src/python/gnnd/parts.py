"""Parts of a graph, features and labels and so on, from what a caller has: checked by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from gnnd.errors import Violation
from gnnd.values import (
    UNKNOWN,
    Place,
    Unfit,
    as_array,
    beyond_float32,
    first_of,
    is_sparse,
    lossy_float32,
    masked_array,
)
from gnnd.words import one_of, shown

SPLITS = ("train", "val", "test")


@dataclass
class Parts:
    """What is being made of a graph: its arrays, and all that is to be said of them."""

    #: What an option is called where it came from, such as `train_mask`.
    called: Mapping[str, str] = field(default_factory=dict)
    task: str | None = None
    num_nodes: int | None = None
    arrays: dict[str, Any] = field(default_factory=dict)
    class_names: list[str] | None = None
    node_names: list[str] | None = None
    feature_names: list[str] | None = None
    wrongs: list[Violation] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def refuse(self, key: str, text: str) -> None:
        """Notes a problem, of which there may be several."""
        self.wrongs.append(Violation(key, text))

    def node(self, at: int) -> str:
        """A node as its person calls it."""
        if self.node_names is not None and at < len(self.node_names):
            return f"node {shown(self.node_names[at])}"
        return f"node {at}"

    def put(self, key: str, values: Any) -> None:
        """Takes one array, or notes why it does not."""
        takes = {
            "features": self._features,
            "labels": self._labels,
            "edge_index": self._ends,
            "edge_weights": self._weights,
            **dict.fromkeys(SPLITS, self._split),
        }
        try:
            self.arrays[key] = takes.get(key, self._plain)(key, values)
        except Unfit as error:
            self.refuse(key, str(error))

    def _place(self, key: str) -> Place:
        of_nodes = key in ("features", "labels")
        return self.node if of_nodes else lambda at: f"index {at}"

    def _numbers(self, key: str, values: Any) -> np.ndarray:
        found = as_array(values, self._place(key))
        if found.dtype == object:
            at = next((at for at, text in enumerate(found) if text is not None), 0)
            raise Unfit(f"{self._place(key)(at)} has {shown(found[at])}: expected numbers")
        return found

    def _plain(self, key: str, values: Any) -> np.ndarray:
        return self._numbers(key, values)

    def _features(self, key: str, values: Any) -> np.ndarray:
        found = self._numbers(key, values)
        if found.ndim == 2:
            self._check_feature_names(found.shape[1])
            self._check_finite(found)
            self._fits_float32(key, found, lambda at: self._cell(found, at))
        return found

    def _check_feature_names(self, columns: int) -> None:
        names = self.feature_names
        if names is None:
            return
        twice = [name for name, count in Counter(names).items() if count > 1]
        if len(names) != columns:
            text = f"has {len(names):,} names: expected one for each of {columns:,} columns"
            self.refuse("feature_names", text)
        elif twice:
            self.refuse("feature_names", f"has {shown(twice[0])} twice: expected each once")

    def _check_finite(self, found: np.ndarray) -> None:
        """Of features whose rows or columns have names; others the daemon finds by numbers."""
        if found.dtype.kind != "f" or (self.node_names is None and self.feature_names is None):
            return
        wrong = first_of(found, lambda piece: ~np.isfinite(piece))
        if wrong is not None:
            count, at = wrong
            more = f" and {count - 1:,} more" if count > 1 else ""
            value = found.reshape(-1)[at].item()
            raise Unfit(f"{self._cell(found, at)} has {value}{more}: expected finite numbers")

    def _cell(self, array: np.ndarray, at: int) -> str:
        row, column = divmod(at, array.shape[1]) if array.ndim == 2 else (at, 0)
        where = f", column {column}" if array.ndim == 2 and array.shape[1] > 1 else ""
        names = self.feature_names if array.ndim == 2 else None
        if names is not None and len(names) == array.shape[1]:
            where = f", column {shown(names[column])}"
        return f"{self.node(row)}{where}"

    def _fits_float32(self, key: str, array: np.ndarray, place: Place) -> None:
        """Refuses what becomes infinite when it is stored, and tells what is rounded."""
        flat = array.reshape(-1)
        if (infinite := beyond_float32(array)) is not None:
            count, at = infinite
            more = f" and {count - 1:,} more" if count > 1 else ""
            largest = "beyond 3.4e+38, the largest number of float32"
            raise Unfit(f"{place(at)} has {flat[at].item()}{more}, {largest}")
        if (rounded := lossy_float32(array)) is not None:
            count, at = rounded
            number, stored = flat[at].item(), int(np.float32(flat[at]))
            self.notices.append(
                f"{key}: {count:,} whole numbers beyond 16,777,216 are rounded to float32: "
                f"{number} of {place(at)} becomes {stored}"
            )

    def _weights(self, key: str, values: Any) -> np.ndarray:
        found = self._numbers(key, values)
        flat = found.reshape(-1)
        self._fits_float32(key, found, self._edge)
        if flat.dtype.kind != "f":
            found = found.astype(np.float32)
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(~(np.isfinite(flat) & (flat >= 0)))
        if wrong.size > 0:
            more = f" and {wrong.size - 1:,} more" if wrong.size > 1 else ""
            what = f"{flat[wrong[0]].item()}{more}"
            raise Unfit(f"{self._edge(int(wrong[0]))} has {what}: expected a number of 0 or more")
        return found

    def _edge(self, at: int) -> str:
        """An edge as its person has it, before it was sorted by its target."""
        ends = self.arrays.get("edge_index")
        if ends is None or ends.ndim != 2 or at >= ends.shape[1]:
            return f"the edge at index {at}"
        source, target = (self.node(int(end)).removeprefix("node ") for end in ends[:, at])
        return f"the edge at index {at}, from {source} to {target},"

    def _ends(self, key: str, values: Any) -> np.ndarray:
        if is_sparse(values):
            raise Unfit("is a sparse matrix: expected [2, edges]; import_scipy takes such a one")
        found = self._numbers(key, values)
        if found.ndim == 2 and found.shape[1] == 2 and found.shape[0] != 2:
            raise Unfit(f"has shape {found.shape}, expected [2, edges]: give its .T")
        found = _whole(found, "ids of nodes")
        nodes = self.num_nodes
        if nodes is None or found.ndim != 2 or found.shape[0] != 2 or found.size == 0:
            return found
        if int(found.min()) >= 0 and int(found.max()) < nodes:
            return found
        row, at = np.argwhere((found < 0) | (found >= nodes))[0].tolist()
        ends = f"the edge at index {at}, from {found[0, at]} to {found[1, at]},"
        which = "source" if row == 0 else "target"
        raise Unfit(f"{ends} has a {which} that no node is: expected 0 to {nodes - 1:,}")

    # Labels.

    def _labels(self, key: str, values: Any) -> np.ndarray:
        found = masked_array(values, self.node)
        if found.dtype == object:
            return self._classes(key, found)
        if isinstance(found, np.ma.MaskedArray):
            # A number that is not known is -1 among classes, and NaN among targets.
            if self.task == "REGRESSION" or found.ndim > 1:
                found = as_array(found)
            else:
                found = np.where(np.ma.getmaskarray(found), -1, np.ma.getdata(found))
        if found.ndim > 2:
            raise Unfit(f"has shape {found.shape}, expected [nodes] or [nodes, labels]")
        found = self._without_unknown_names(found)
        self._fits_float32(key, found, lambda at: self._cell(found, at))
        if self.task == "CLASSIFICATION" and found.ndim == 1 and found.dtype.kind == "f":
            wrong = np.flatnonzero(np.isfinite(found) & (found != np.floor(found)))
            if wrong.size > 0:
                at, more = int(wrong[0]), f" and {wrong.size - 1:,} more" if wrong.size > 1 else ""
                what = f"{self.node(at)} has {found[at].item()}{more}"
                raise Unfit(f"{what}: expected whole numbers, or task='REGRESSION'")
        return found

    def _classes(self, key: str, texts: np.ndarray) -> np.ndarray:
        """Texts as numbers, by `class_names` where there are any, else in their order."""
        if self.task == "REGRESSION":
            at = next(at for at, text in enumerate(texts) if text is not None)
            raise Unfit(f"{self.node(at)} has {shown(texts[at])}: expected numbers to regress on")
        there = {text for text in texts if text is not None}
        unknown = sorted(text for text in there if text.strip() in UNKNOWN)
        if unknown:
            count = sum(text in unknown for text in texts)
            listed = ", ".join(map(repr, unknown))
            self._tell_unknown(f"{count:,} labels that are {listed}")
        names = [name for name in self.class_names or [] if name not in UNKNOWN]
        known = there - set(unknown)
        if self.class_names is None:
            names = sorted(known, key=_order)
        elif known - set(names):
            other = min(known - set(names))
            raise Unfit(f"{one_of(other, names)} (class_names)")
        self.class_names = names
        number = {name: at for at, name in enumerate(names)}
        return np.array([number.get(text, -1) for text in texts], np.int64)

    def _without_unknown_names(self, found: np.ndarray) -> np.ndarray:
        """Labels whose class is called nan or the like are not known; later classes move up."""
        names = self.class_names
        if names is None or found.ndim != 1 or not _are_whole(found):
            return found  # Several have a name each, and so have targets.
        is_unknown = [name.strip() in UNKNOWN for name in names]
        whole = found if found.dtype.kind in "biu" else found[np.isfinite(found)]
        if whole.size > 0 and int(whole.max()) >= len(names) and self.task != "REGRESSION":
            at = int(np.flatnonzero(found == whole.max())[0])
            text = f"{self.node(at)} has class {whole.max().item()}"
            raise Unfit(f"{text}, and class_names has {len(names)}: expected a name a class")
        if not any(is_unknown):
            return found
        new = np.cumsum(np.logical_not(is_unknown)) - 1
        new[is_unknown] = -1
        is_named = np.isfinite(found) & (found >= 0)
        numbers = np.full(len(found), -1, np.int64)
        numbers[is_named] = new[found[is_named].astype(np.int64)]
        listed = ", ".join(repr(name) for name in names if name.strip() in UNKNOWN)
        self._tell_unknown(f"labels of a class that is called {listed}")
        self.class_names = [name for name in names if name.strip() not in UNKNOWN]
        return numbers

    def _tell_unknown(self, what: str) -> None:
        self.notices.append(f"{what} are taken as not known")

    # Splits.

    def _split(self, key: str, values: Any) -> np.ndarray:
        if is_sparse(values):
            raise Unfit("is sparse: expected ids of nodes, or a mask")
        found = masked_array(values)
        if isinstance(found, np.ma.MaskedArray) or found.dtype == object:
            what = "values that are missing" if found.dtype != object else "texts"
            raise Unfit(f"has {what}: expected ids of nodes, or a mask")
        name = self.called.get(key, key)
        is_called = name.endswith("_mask")
        nodes = self.num_nodes
        if found.dtype == bool or is_called or is_mask(found, nodes):
            return self._mask(name, found)
        ids = _whole(found, "ids of nodes, or a mask").reshape(-1)
        if nodes is None or ids.size == 0:
            return ids
        outside = np.flatnonzero((ids < 0) | (ids >= nodes))
        if outside.size > 0:
            raise Unfit(f"has {ids[outside[0]]} at index {outside[0]}: expected 0 to {nodes - 1:,}")
        order = np.argsort(ids, kind="stable")
        again = np.flatnonzero(ids[order][1:] == ids[order][:-1])
        if again.size > 0:
            first, second = order[again[0]], order[again[0] + 1]
            is_like_mask = ids.size > 2 and set(np.unique(ids).tolist()) <= {0, 1}
            if is_like_mask:
                raise Unfit(f"is a mask with {len(ids):,} values: expected {nodes:,}, one a node")
            who = self.node(int(ids[first]))
            raise Unfit(f"has {who} twice, at index {first} and {second}: expected each once")
        return ids

    def _mask(self, name: str, found: np.ndarray) -> np.ndarray:
        nodes = self.num_nodes
        wrong = np.flatnonzero((found != 0) & (found != 1))
        if wrong.size > 0:
            value = found.reshape(-1)[wrong[0]]
            is_id = f"; ids of nodes go in as {name.removesuffix('_mask')}="
            raise Unfit(f"is a mask, and has {value}: expected 0 and 1{is_id}")
        if found.ndim not in (1, 2) or (nodes is not None and len(found) != nodes):
            length = (
                f"a mask of shape {found.shape}" if found.ndim > 1 else f"{len(found):,} values"
            )
            expected = "one for each node" if nodes is None else f"one for each of {nodes:,} nodes"
            raise Unfit(f"is a mask with {length}: expected {expected}")
        return found.astype(bool)

    # What holds between them.

    def check(self) -> None:
        """Notes nodes of two splits, and those without a label, by their names."""
        self._check_shared()
        labels = self.arrays.get("labels")
        if labels is None or labels.ndim == 0 or len(labels) != self.num_nodes:
            return
        is_known = ~np.isnan(labels) if labels.dtype.kind == "f" else np.ones(labels.shape, bool)
        if labels.dtype.kind in "iu" and self.task != "REGRESSION":
            is_byte = labels.dtype == np.uint8 and labels.ndim > 1
            is_known &= (labels >= 0) & (labels != 255 if is_byte else True)
        elif self.task != "REGRESSION" and _are_whole(labels):
            is_known &= labels != -1
        if is_known.ndim > 1:
            is_known = is_known.any(axis=1)
        for key in SPLITS:
            split = self.arrays.get(key)
            if split is None or split.ndim != 1:
                continue
            ids = _ids(split)
            lacking = ids[~is_known[ids]]
            if lacking.size > 0:
                more = f" and {lacking.size - 1:,} more" if lacking.size > 1 else ""
                who = f"{self.node(int(lacking[0]))}{more}"
                self.refuse(key, f"has {who}, whose label is not known")

    def _check_shared(self) -> None:
        splits = {key: self.arrays[key] for key in SPLITS if key in self.arrays}
        ids = {key: _ids(split) for key, split in splits.items() if split.ndim == 1}
        for first, second in combinations(ids, 2):
            shared = np.intersect1d(ids[first], ids[second])
            if shared.size > 0:
                more = f" and {shared.size - 1:,} more" if shared.size > 1 else ""
                text = f"shares {self.node(int(shared[0]))}{more} with {first}"
                self.refuse(second, f"{text}: expected no node in both")


def _ids(split: np.ndarray) -> np.ndarray:
    return np.flatnonzero(split) if split.dtype == bool else split


def _order(text: str) -> tuple[int, int, str]:
    """Of texts by themselves, and of texts that are whole numbers by these."""
    is_whole = text.isascii() and text.isdigit() and len(text) <= 18
    return (0, int(text), text) if is_whole else (1, 0, text)


def _are_whole(found: np.ndarray) -> bool:
    """Whether numbers, but for NaN, have no fractions."""
    return found.dtype.kind in "biu" or not bool(np.any(np.floor(found) < found))


def _whole(found: np.ndarray, expected: str) -> np.ndarray:
    """Ids: floats where each is one."""
    if found.dtype.kind in "iu":
        return found
    if found.dtype.kind == "f" and bool(np.all(found == np.floor(found))):
        return found.astype(np.int64)
    raise Unfit(f"they are of type {found.dtype}: expected {expected}")


def is_mask(found: np.ndarray, num_nodes: int | None) -> bool:
    """Whether whole numbers, as many as nodes, are 0 and 1 and cannot be ids: one is repeated."""
    if found.ndim not in (1, 2) or len(found) != num_nodes or found.dtype.kind not in "biuf":
        return False
    if not bool(np.all((found == 0) | (found == 1))):
        return False
    return found.ndim == 2 or np.unique(found).size < found.size


def text_names(values: Any, what: str) -> list[str]:
    """Texts of what calls nodes or classes something: of numbers, bytes, or by their number."""
    if isinstance(values, Mapping):
        keys = list(values)
        if sorted(keys) != list(range(len(keys))):
            raise Unfit(f"is a mapping: expected a list, or the names of 0 to {len(keys) - 1}")
        values = [values[at] for at in range(len(keys))]
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise Unfit(f"{shown(values)}: expected a list of {what}")
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    return [
        each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each) for each in listed
    ]


def wrong_names(names: list[str], num_nodes: int | None) -> list[Violation]:
    """What keeps texts from being names of nodes: lines of a file, each its own."""
    found: list[Violation] = []
    first: dict[str, int] = {}
    for at, name in enumerate(names):
        text = ""
        if "\n" in name or "\r" in name:
            text = "expected a text without line breaks"
        elif any("\ud800" <= letter <= "\udfff" for letter in name):
            text = "expected a text that UTF-8 has"
        elif first.setdefault(name, at) != at:
            text = f"is the name of node {first[name]}, too: expected another one for each node"
        if text:
            found.append(Violation(f"node_names[{at}]", f"{shown(name)}: {text}"))
    if num_nodes is not None and len(names) != num_nodes:
        count = f"has {len(names):,} names: expected one for each of {num_nodes:,} nodes"
        found.append(Violation("node_names", count))
    return found[:20]
