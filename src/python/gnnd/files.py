"""Files that the daemon streams, and the two formats that they have: safetensors and .npy."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gnnd.errors import GnndError


def received(
    parts: Iterator[Any], opened: Callable[[str], BinaryIO]
) -> Iterator[tuple[str, BinaryIO]]:
    """Each file of a stream of `file` and `data` parts, written to what `opened` gives for it."""
    name, file, left = "", None, 0
    for part in parts:
        kind = part.WhichOneof("part")
        if kind == "file":
            name, left, file = part.file.name, part.file.bytes, opened(part.file.name)
        elif kind == "data":
            if file is None or len(part.data) > left:
                raise GnndError(f"the export of {name} is longer than was said")
            file.write(part.data)
            left -= len(part.data)
        if file is not None and left == 0:
            yield name, file
            file = None
    if file is not None:
        raise GnndError(f"the export broke off within {name}")


def to_memory(parts: Iterator[Any]) -> dict[str, bytes]:
    """All files of a stream by name."""
    return {
        name: file.getvalue()
        for name, file in received(parts, lambda _: io.BytesIO())
        if isinstance(file, io.BytesIO)
    }


def to_folder(parts: Iterator[Any], folder: str | os.PathLike[str]) -> list[Path]:
    """All files of a stream below `folder`, each whole or absent."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []

    def opened(name: str) -> BinaryIO:
        if name != Path(name).name:
            raise GnndError(f"{name!r} is no name of a file")
        return open(target / f"{name}.part", "wb")

    for name, file in received(parts, opened):
        file.close()
        made.append((target / f"{name}.part").rename(target / name))
    return made


def safetensors(data: bytes) -> dict[str, np.ndarray]:
    """Tensors by name, float32 as in the file."""
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], dtype="<f4")
        tensors[name] = values.reshape(entry["shape"]).copy()
    return tensors


def checked(files: dict[str, bytes], summary: str) -> dict[str, Any]:
    """The JSON of `summary`, once every other file has the SHA-256 that stands in it."""
    facts: dict[str, Any] = json.loads(files[summary])
    for name, about in facts["files"].items():
        if hashlib.sha256(files[name]).hexdigest() != about["sha256"]:
            raise GnndError(f"{name} is damaged: its SHA-256 is not that of {summary}")
    return facts


def npy(data: bytes) -> np.ndarray:
    """The array of a .npy file."""
    array: np.ndarray = np.load(io.BytesIO(data), allow_pickle=False)
    return array


@dataclass(frozen=True)
class Predictions:
    """What a model says of n nodes, in the order in which they were asked for."""

    #: [n] node ids, int64.
    nodes: np.ndarray
    #: [n] classes, int64: of the largest logit, the lowest of equals. Of several labels a node
    #: [n, C] of 0 and 1, of regression [n, C] float32: the numbers.
    classes: np.ndarray
    #: [n, C] float32; None unless asked for.
    logits: np.ndarray | None = None
    #: [n, C] float32, rows add up to 1, but of several labels; None unless asked for.
    probabilities: np.ndarray | None = None
    #: [n] texts that the dataset calls the nodes; None where it has none, or they were left out.
    ids: list[str] | None = None
    #: What the dataset calls its classes, labels or targets; None where they have no names.
    class_names: list[str] | None = None

    @property
    def names(self) -> list[str] | list[list[str]] | None:
        """[n] names of `classes`, a list of those that it has for each node of several labels;
        None where classes have none, and of numbers."""
        known = self.class_names
        if known is None or self.classes.dtype.kind == "f":
            return None
        if self.classes.ndim == 1:
            return [known[label] for label in self.classes]
        return [[known[label] for label in np.flatnonzero(row)] for row in self.classes]

    def __len__(self) -> int:
        return len(self.nodes)

    def in_order_of(self, wanted: Any) -> Predictions:
        """Of `wanted` nodes, or their ids as texts, in their order; one may come twice."""
        rows = rows_of(wanted, self.nodes, self.ids)
        return Predictions(
            nodes=self.nodes[rows],
            ids=None if self.ids is None else [self.ids[row] for row in rows],
            classes=self.classes[rows],
            logits=None if self.logits is None else self.logits[rows],
            probabilities=None if self.probabilities is None else self.probabilities[rows],
            class_names=self.class_names,
        )


def rows_of(wanted: Any, nodes: np.ndarray, ids: list[str] | None) -> np.ndarray:
    """Where each of `wanted` nodes, or ids as texts, stands among `nodes` with these `ids`."""
    if np.asarray(wanted).dtype.kind not in "UO":
        order = np.argsort(nodes, kind="stable")
        return order[np.searchsorted(nodes, np.asarray(wanted, np.int64), sorter=order)]
    # A text that is no id was a node's number.
    numbers = {str(node): row for row, node in enumerate(nodes)}
    row_of = {**numbers, **{name: row for row, name in enumerate(ids or [])}}
    return np.array([row_of[str(name).strip()] for name in wanted], np.int64)


def predictions_of(files: dict[str, bytes], summary: str) -> Predictions:
    """The arrays of an inference or of an export with predictions."""
    facts = checked(files, summary)
    arrays = {name: npy(data) for name, data in files.items() if name.endswith(".npy")}
    if "predictions.npy" not in arrays:
        raise GnndError("nothing is predicted there: it has embeddings alone")
    classes = arrays["predictions.npy"]
    nodes = arrays.get("nodes.npy")
    return Predictions(
        nodes=np.arange(len(classes)) if nodes is None else nodes,
        classes=classes,
        logits=arrays.get("logits.npy"),
        probabilities=arrays.get("probabilities.npy"),
        ids=ids_of(files["predictions.csv"]) if "predictions.csv" in files else None,
        class_names=facts.get("class_names"),
    )


def ids_of(table: bytes) -> list[str] | None:
    """The column `id` of a predictions.csv; None where the dataset has no ids."""
    rows = csv.reader(io.TextIOWrapper(io.BytesIO(table), encoding="utf-8", newline=""))
    header = next(rows)
    if "id" not in header:
        return None
    at = header.index("id")
    return [row[at] for row in rows]
