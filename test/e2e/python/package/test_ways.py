"""One random graph through every way into gnnd has one digest.

usage: test_ways.py with GNND_ADDRESS; GNND_SEED repeats a graph. Needs torch, torch_geometric,
networkx, scipy, pandas and pyarrow.
"""

import os
import pathlib
import random
import tempfile
import unittest
from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import gnnd

SPLITS = ("train", "val", "test")
#: How many random graphs a test draws.
CASES = int(os.environ.get("GNND_CASES", "1"))


def labels_of(rng, n, kind):
    """Labels of every kind, some of them not known, and which nodes have one."""
    known = rng.random(n) < 0.8
    if kind == "classes":
        labels = rng.integers(0, 4, n)
        labels[:4] = range(4)
        known[:4] = True
        return np.where(known, labels, -1), known
    if kind == "labels":
        labels = rng.integers(0, 2, (n, 3)).astype(np.float32)
        labels[~known] = np.nan
        return labels, known
    # Halves, which are the same in every type of floats.
    targets = (rng.integers(-20, 20, n) + 0.5).astype(np.float32)
    return np.where(known, targets, np.nan).astype(np.float32), known


class Drawn:
    """A random graph: N nodes with F features, labels of a kind, splits, and edges of a kind."""

    def __init__(self, seed, kind, wild):
        rng = np.random.default_rng(seed)
        self.n = int(rng.integers(12, 40))
        self.x = rng.integers(-8, 8, (self.n, 3)).astype(np.float32) / 4
        self.y, known = labels_of(rng, self.n, kind)
        part = rng.integers(0, 4, self.n)
        part[:3] = (0, 1, 2)
        self.masks = {name: known & (part == at) for at, name in enumerate(SPLITS)}
        edges = rng.integers(0, self.n - 2, (2, 3 * self.n))
        if wild:
            self.edges = edges
            self.weights = rng.integers(1, 9, edges.shape[1]).astype(np.float32) / 8
        else:
            half = np.unique(np.sort(edges, axis=0), axis=1)
            half = half[:, half[0] != half[1]]
            self.half, weights = half, rng.integers(1, 9, half.shape[1]).astype(np.float32) / 8
            self.half_weights = weights
            self.edges = np.concatenate([half, half[::-1]], axis=1)
            self.weights = np.concatenate([weights, weights])
        order = np.lexsort((self.edges[0], self.edges[1]))
        self.edges = np.ascontiguousarray(self.edges[:, order])
        self.weights = self.weights[order]

    def arrays(self):
        """Arguments of `import_arrays`."""
        return {
            "features": self.x,
            "labels": self.y,
            "edge_index": self.edges,
            "edge_weights": self.weights,
            **self.masks,
        }

    def split(self):
        """Words of each node."""
        return [next((s for s in SPLITS if self.masks[s][v]), None) for v in range(self.n)]

    def nodes_frame(self, ids):
        """The table of nodes."""
        frame = pd.DataFrame({"id": ids, "split": self.split()})
        if self.y.ndim == 2:
            for at in range(self.y.shape[1]):
                frame[f"label_{at}"] = self.y[:, at]
        elif self.y.dtype == np.float32:
            frame["label"] = self.y
        else:
            frame["label"] = pd.array([None if y < 0 else int(y) for y in self.y], "Int64")
        for at in range(self.x.shape[1]):
            frame[f"f{at}"] = self.x[:, at]
        return frame

    def edges_frame(self, ids):
        """The table of edges without direction, each once, in any order and either direction."""
        order = np.random.default_rng(0).permutation(self.half.shape[1])
        ends = self.half[:, order]
        flip = np.arange(len(order)) % 2 == 0
        ends = np.where(flip, ends[::-1], ends)
        named = [[ids[end] for end in row] for row in ends]
        weights = self.half_weights[order]
        return pd.DataFrame({"source": named[0], "target": named[1], "weight": weights})


class Ways(unittest.TestCase):
    """What stands in the files of a dataset does not depend on where it came from."""

    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(gnnd.connect())
        cls.count = 0

    def each(self, wild, check):
        """Checks random graphs with labels of every kind, told by their seeds when they fail."""
        given = os.environ.get("GNND_SEED")
        first = int(given) if given else random.randrange(2**31)
        for seed in range(first, first + (1 if given else CASES)):
            for kind in ("classes", "labels", "targets"):
                with self.subTest(GNND_SEED=seed, kind=kind), tempfile.TemporaryDirectory() as name:
                    check(Drawn(seed, kind, wild), pathlib.Path(name))

    def digest(self, call, *args, **options):
        """Of what an import makes."""
        type(self).count += 1
        name = f"way-{os.getpid()}-{self.count}"
        made = getattr(self.client, call)(*args, name=name, **options)
        digest = made.message.digest
        made.delete()
        return digest

    def same(self, reference, ways):
        """Every way has the digest of the reference."""
        found = {name: way() for name, way in ways.items()}
        self.assertEqual(found, dict.fromkeys(ways, reference))

    def test_wild_graphs(self):
        """Directed, with loops, repeats, isolated nodes and weights: what arrays can hold."""
        self.each(True, self.wild)

    def wild(self, drawn, folder):
        """All ways of one of them."""
        arrays = drawn.arrays()
        tensors = {key: torch.from_numpy(np.asarray(value)) for key, value in arrays.items()}
        data = Data(
            x=tensors["features"],
            y=tensors["labels"],
            edge_index=tensors["edge_index"],
            edge_weight=tensors["edge_weights"],
            **{f"{name}_mask": tensors[name] for name in SPLITS},
        )
        torch.save(data, folder / "data.pt")
        saved = folder / "arrays"
        saved.mkdir()
        for key, value in arrays.items():
            np.save(saved / f"{key}.npy", value)
        (saved / "meta.json").write_text("{}")
        np.savez(folder / "graph.npz", **arrays)
        mapped = {key: np.load(saved / f"{key}.npy", mmap_mode="r") for key in arrays}
        bytes_ = {name: drawn.masks[name].astype(np.uint8) for name in SPLITS}
        wide = {
            key: arrays[key].astype(np.float64) for key in ("features", "labels", "edge_weights")
        }
        self.same(
            self.digest("import_arrays", **drawn.arrays()),
            {
                "mapped files": partial(self.digest, "import_arrays", **mapped),
                "masks of bytes": partial(self.digest, "import_arrays", **{**arrays, **bytes_}),
                "wider types": partial(self.digest, "import_arrays", **{**arrays, **wide}),
                "a folder of .npy": partial(self.digest, "import_path", saved),
                ".npz": partial(self.digest, "import_path", folder / "graph.npz"),
                "data.pt here": partial(self.digest, "import_pyg", folder / "data.pt"),
                "data.pt there": partial(self.digest, "import_path", folder / "data.pt"),
            },
        )

    def test_plain_graphs(self):
        """Without direction, each edge once, weighted: what tables and networkx hold, too."""
        self.each(False, self.plain)

    def plain(self, drawn, folder):
        """All ways of one of them."""
        ids = [f"node {at}" for at in range(drawn.n)]
        nodes, edges = drawn.nodes_frame(ids), drawn.edges_frame(ids)
        graph = nx.Graph()
        for at, (name, word) in enumerate(zip(ids, drawn.split(), strict=True)):
            label = drawn.y[at]
            unknown = drawn.y.dtype.kind == "i" and label < 0
            row = list(label) if drawn.y.ndim == 2 else label
            graph.add_node(name, x=drawn.x[at], y=None if unknown else row, split=word)
        ends = [[ids[end] for end in row] for row in drawn.half]
        graph.add_weighted_edges_from(zip(*ends, drawn.half_weights, strict=True))
        matrix = sp.coo_matrix((drawn.weights, drawn.edges), (drawn.n, drawn.n))
        rest = {key: value for key, value in drawn.arrays().items() if "edge" not in key}
        columns = {"features": "x", "labels": "y", "split": "split", "weight": "weight"}
        self.same(
            self.digest("import_arrays", **drawn.arrays()),
            {
                "networkx": partial(self.digest, "import_networkx", graph, **columns),
                "SciPy": partial(self.digest, "import_scipy", matrix, **rest),
                "frames": partial(self.digest, "import_frames", nodes, edges),
                "Parquet": partial(self.parquet, folder, nodes, edges),
                **{
                    f"tables with {name}": partial(self.tables, folder / name, nodes, edges, name)
                    for name in ("commas", "semicolons", "tabs", "gzip", "index", "renamed")
                },
            },
        )

    def parquet(self, folder, nodes, edges):
        """Both tables as files."""
        nodes.to_parquet(folder / "n.parquet")
        edges.to_parquet(folder / "e.parquet")
        return self.digest("import_parquet", folder / "n.parquet", folder / "e.parquet")

    def tables(self, folder, nodes, edges, name):
        """Both tables as text, as people write it."""
        folder.mkdir()
        end = "csv.gz" if name == "gzip" else "csv"
        more = {"sep": {"semicolons": ";", "tabs": "\t"}.get(name, ",")}
        if name == "semicolons":
            more["decimal"] = ","
        if name == "renamed":
            edges = edges.rename(columns={"source": "src", "target": "dst"})
        nodes.to_csv(folder / f"nodes.{end}", index=name == "index", **more)
        edges.to_csv(folder / f"edges.{end}", index=name == "index", **more)
        return self.digest("import_path", folder)


if __name__ == "__main__":
    unittest.main()
