"""Rows of a model's layer for nodes, as arrays, tensors and files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gnnd import files
from gnnd.errors import Violation, missing, wrong

_ENDINGS = (".npy", ".parquet")


@dataclass(frozen=True, eq=False)
class Embeddings:
    """What a layer gives for n nodes, in the order in which they were asked for."""

    #: [n] node ids, int64.
    nodes: np.ndarray
    #: [n, D] float32.
    rows: np.ndarray
    #: The layer, from 1; the model's last one gives the logits.
    layer: int
    #: [n] texts that the dataset calls the nodes; None where it has none, or they were left out.
    ids: list[str] | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The rows, where numpy wants an array."""
        rows = np.asarray(self.rows, dtype)
        return rows.copy() if copy and rows is self.rows else rows

    def __repr__(self) -> str:
        count, width = self.rows.shape
        return f"<gnnd.Embeddings of {count:,} nodes: {width} numbers each, layer {self.layer}>"

    def tensor(self) -> Any:
        """The rows as a torch tensor [n, D] float32, which shares their memory. Needs torch."""
        try:
            import torch
        except ImportError:
            raise missing("torch", "pyg", "embeddings.tensor()") from None
        return torch.from_numpy(self.rows)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a `.npy` or `.parquet` file, and answers its path.

        The first has the rows alone, [n, D] in the order of `nodes`; the second has columns `node`,
        `id` where there are ids, and `embedding`, a list of D floats. It needs pyarrow.
        """
        target = Path(path)
        if target.suffix not in _ENDINGS:
            text = f"{target.name!r} ends with {target.suffix!r}: expected .npy or .parquet"
            raise wrong("embeddings.save()", Violation("path", text))
        if target.suffix == ".npy":
            with open(target, "wb") as file:
                np.save(file, self.rows)
            return target
        try:
            import pyarrow as pa
            import pyarrow.parquet
        except ImportError:
            raise missing("pyarrow", "pandas", "embeddings.save() of .parquet") from None
        width = self.rows.shape[1]
        flat = pa.array(np.ascontiguousarray(self.rows).reshape(-1))
        columns = {
            "node": pa.array(self.nodes),
            **({} if self.ids is None else {"id": pa.array(self.ids)}),
            "embedding": pa.FixedSizeListArray.from_arrays(flat, width),
        }
        pyarrow.parquet.write_table(pa.table(columns), target)
        return target

    def in_order_of(self, wanted: Any) -> Embeddings:
        """Of `wanted` nodes, or their ids as texts, in their order; one may come twice."""
        at = files.rows_of(wanted, self.nodes, self.ids)
        ids = None if self.ids is None else [self.ids[row] for row in at]
        return replace(self, nodes=self.nodes[at], rows=self.rows[at], ids=ids)


def embeddings_of(found: Mapping[str, bytes]) -> Embeddings:
    """The rows of an inference's files."""
    facts = files.checked(dict(found), "inference.json")
    rows = files.npy(found["embeddings.npy"])
    nodes = files.npy(found["nodes.npy"]) if "nodes.npy" in found else np.arange(len(rows))
    ids = files.ids_of(found["predictions.csv"]) if "predictions.csv" in found else None
    return Embeddings(nodes=nodes, rows=rows, layer=facts["layer"], ids=ids)
