"""The package with the libraries that it knows, against the daemon of GNND_ADDRESS.

usage: test_extras.py, with CORA, a .npz file; torch, torch_geometric, scipy, networkx, pandas,
pyarrow and matplotlib must be there.
"""

import json
import os
import pathlib
import tempfile
import unittest

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import RandomLinkSplit

import gnnd
from gnnd import geometric

ARRAYS = dict(np.load(os.environ["CORA"]))
N = len(ARRAYS["labels"])
TARGETS = np.repeat(np.arange(N), np.diff(ARRAYS["indptr"]))
EDGES = np.stack([ARRAYS["indices"].astype(np.int64), TARGETS])
#: Of the largest difference of a logit: sums in another order.
TOLERANCE = 1e-4


def pyg_data():
    """Cora as torch_geometric has it."""
    masks = {
        f"{key}_mask": torch.from_numpy(np.isin(np.arange(N), ARRAYS[key]))
        for key in ("train", "val", "test")
    }
    return Data(
        x=torch.from_numpy(ARRAYS["features"]),
        y=torch.from_numpy(ARRAYS["labels"].astype(np.int64)),
        edge_index=torch.from_numpy(EDGES),
        **masks,
    )


def checksums(dataset):
    """SHA-256 of each array."""
    return json.loads(pathlib.Path(dataset.path, "dataset.json").read_text())["sha256"]


class Imports(unittest.TestCase):
    """One graph, however it is held: the same bytes."""

    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(gnnd.connect())
        cls.reference = checksums(cls.client.import_path(os.environ["CORA"], "reference"))
        cls.rest = {key: ARRAYS[key] for key in ("features", "labels", "train", "val", "test")}

    def test_of_tables_that_cannot_be_read_name_them(self):
        def refused(nodes, edges, call=self.client.import_parquet):
            with self.assertRaises(gnnd.ImportFailed) as caught:
                call(nodes, edges, "unreadable")
            return str(caught.exception)

        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/n.parquet"
            self.assertIn(f"{file}: there is no such file", refused(file, file))
            self.assertRegex(refused("n.parquet", file), r"n.parquet: there is no .*\(from /")
            self.assertIn(f"{folder}: Is a directory", refused(folder, file))
            pathlib.Path(file).write_bytes(b"PAR1 and no more than that PAR1")
            self.assertIn("nodes.parquet: is not a whole Parquet file", refused(file, file))
            frame = pd.DataFrame({"id": ["a", "b"], "label": [0, "x"]})
            said = refused(frame, frame, self.client.import_frames)
            self.assertRegex(said, "nodes.label: Could not convert 'x'")
            with self.assertRaisesRegex(gnnd.ImportFailed, r"d.pt: there is no such file \(from"):
                self.client.import_pyg("d.pt", "unreadable")

    def same(self, dataset):
        self.assertEqual(checksums(dataset), self.reference)
        return dataset

    def test_of_torch_geometric(self):
        self.same(self.client.import_pyg(pyg_data(), name="of-pyg"))
        data = pyg_data()
        data.train_mask = torch.stack([data.train_mask, data.train_mask], dim=1)
        with self.assertRaisesRegex(gnnd.ImportFailed, "2 splits: choose one with split, 0 to 1"):
            self.client.import_pyg(data, name="of-two-splits")
        self.same(self.client.import_pyg(data, name="of-the-second", split=1))
        data.y = torch.rand(N, 3)
        targets = self.client.import_pyg(data, name="of-targets", split=0)
        self.assertEqual((targets.task, targets.num_classes), ("REGRESSION", 3))
        data.y = (data.y > 0.5).float()
        labels = self.client.import_pyg(data, name="of-labels", split=0)
        self.assertEqual((labels.task, labels.num_classes), ("MULTI_LABEL", 3))

    def test_of_links_of_torch_geometric(self):
        split = RandomLinkSplit(num_val=0.05, num_test=0.1, is_undirected=True)
        train, val, test = split(pyg_data())
        dataset = self.client.import_pyg((train, val, test), "of-link-split")
        self.assertEqual(dataset.num_edges, train.edge_index.shape[1])
        taken = [int(part.edge_label.sum()) for part in (train, val, test)]
        manifest = json.loads(pathlib.Path(dataset.path, "dataset.json").read_text())
        self.assertEqual([manifest["links"][side] for side in ("train", "val", "test")], taken)
        self.assertEqual(sum("pairs that are no links" in line for line in dataset.notices), 1)

    def test_of_scipy(self):
        values = np.ones(EDGES.shape[1])
        matrix = scipy.sparse.csr_array((values, (EDGES[0], EDGES[1])), shape=(N, N))
        self.same(self.client.import_scipy(matrix, "of-scipy", **self.rest))
        weighted = matrix * 0.5
        dataset = self.client.import_scipy(weighted, "of-weights", **self.rest)
        self.assertIn("edge_weights.npy", checksums(dataset))

    def test_of_networkx(self):
        graph = nx.Graph()
        split = {key: set(ARRAYS[key].tolist()) for key in ("train", "val", "test")}
        for node in range(N):
            part = next((key for key, nodes in split.items() if node in nodes), None)
            label = f"class {ARRAYS['labels'][node]}"
            graph.add_node(f"n{node}", y=label, split=part, x=ARRAYS["features"][node])
        graph.add_edges_from((f"n{u}", f"n{v}") for u, v in EDGES.T.tolist() if u <= v)
        dataset = self.client.import_networkx(
            graph, "of-networkx", features="x", labels="y", split="split"
        )
        # Rows are in the order of the graph's edges: as many, and the same otherwise.
        found = checksums(dataset)
        for name in ("features", "indptr", "labels", "test", "train", "val"):
            file = f"{name}.npy"
            self.assertEqual(found[file], self.reference[file], name)
        names = pathlib.Path(dataset.path, "names.txt").read_text().split()
        self.assertEqual(names[17], "n17")

    def test_of_parquet_and_frames(self):
        nodes = pd.DataFrame({"id": [f"n{node}" for node in range(N)], "label": ARRAYS["labels"]})
        nodes["split"] = ""
        for key in ("train", "val", "test"):
            nodes.loc[ARRAYS[key], "split"] = key
        columns = pd.DataFrame(ARRAYS["features"]).add_prefix("f")
        nodes = pd.concat([nodes, columns], axis=1)
        half, ids = EDGES[:, EDGES[0] < EDGES[1]], nodes.id.to_numpy()
        edges = pd.DataFrame({"source": ids[half[0]], "target": ids[half[1]]})
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ("nodes.parquet", "edges.parquet")]
            nodes.to_parquet(paths[0])
            edges.to_parquet(paths[1])
            self.same(self.client.import_parquet(*paths, "of-parquet"))
            nodes.to_parquet(paths[0], compression="zstd", row_group_size=1000)
            said = []
            dataset = self.client.import_parquet(
                *paths, "of-zstd", progress=lambda *told: said.append(told)
            )
            self.same(dataset)
            self.assertTrue(all(0 <= share <= 1 and text for share, text in said))
        self.same(self.client.import_frames(nodes, edges, "of-frames"))
        embedded = nodes[["id", "label", "split"]].assign(x=list(ARRAYS["features"]))
        self.same(self.client.import_frames(embedded, edges, "of-lists"))
        with self.assertRaises(gnnd.ImportFailed) as caught:
            self.client.import_frames(nodes.head(9), edges, "of-too-few")
        self.assertRegex(str(caught.exception.violations[0]), r"edges.parquet row \d+: has the")

    def test_of_saved_graphs_without_running_their_code(self):
        data, dataset = pyg_data(), self.client.dataset("reference")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "processed", "data.pt")
            file.parent.mkdir()
            for number, content in enumerate(
                [data, (data.to_dict(), None, Data), (data, None), dict(data.to_dict())]
            ):
                torch.save(content, file)
                for place in (file, folder):
                    name = f"of-file-{number}-{place == file}".lower()
                    digest = self.same(self.client.import_pyg(place, name)).digest
                    self.assertEqual(digest, dataset.digest)
            torch.save((data, pathlib.PurePosixPath("x")), file)
            with self.assertRaisesRegex(gnnd.GnndError, "trust=True"):
                self.client.import_pyg(file, "of-code")
            file.write_bytes(b"no file of torch")
            with self.assertRaises(gnnd.GnndError):
                self.client.import_pyg(file, "of-nothing")
            file.unlink()
            with self.assertRaisesRegex(
                gnnd.GnndError, "expected one of data.pt, .*geometric_data"
            ):
                self.client.import_pyg(folder, "of-no-file")


class Modules(unittest.TestCase):
    """What torch_geometric computes with a job's parameters is what gnnd predicts."""

    models = {
        "sage": (gnnd.GraphSAGE(hidden=16, layers=3), {"fanouts": [5, 5, 5]}),
        "gcn": (gnnd.GCN(hidden=16), {"fanouts": [5, 5], "standardize": "ON"}),
        "gat": (
            gnnd.GAT(hidden=16, heads=4, normalization="LAYER", residual=True),
            {"fanouts": [5, 5]},
        ),
        "gatv2": (gnnd.GATv2(hidden=16, heads=2, activation="ELU"), {"fanouts": [5, 5]}),
        "pinsage": (gnnd.PinSAGE(hidden=16, layers=2), {}),
    }

    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(gnnd.connect())
        cls.data = pyg_data()
        cls.client.import_pyg(cls.data, name="for-modules")
        # One device each: two at a time.
        common = {"epochs": 2, "batch_size": 70, "devices": 1}
        cls.jobs = {
            name: cls.client.submit("for-modules", model, name=name, **common, **options)
            for name, (model, options) in cls.models.items()
        }

    def agrees(self, name):
        """The module of a job, once its logits are those of the job's export."""
        module = self.jobs[name].to_pyg()
        self.assertFalse(module.training)
        with torch.no_grad():
            computed = module(self.data.x, self.data.edge_index).numpy()
        with tempfile.TemporaryDirectory() as folder:
            self.jobs[name].checkpoint(folder, predictions="all")
            expected = np.load(pathlib.Path(folder, "logits.npy"))
        self.assertEqual(computed.shape, (N, 7))
        self.assertLess(np.abs(computed - expected).max(), TOLERANCE)
        return module

    def test_graphsage(self):
        module = self.agrees("sage")
        self.assertEqual(type(module).__name__, "GraphSAGE")
        module.load_state_dict(self.jobs["sage"].state_dict("last"))
        self.assertEqual(module.dropout.p, 0.5)

    def test_gcn_of_standardised_features(self):
        self.assertEqual(type(self.agrees("gcn").model).__name__, "GCN")

    def test_gat_with_layer_norm(self):
        self.agrees("gat")

    def test_gatv2_with_elu(self):
        self.agrees("gatv2")

    def test_pinsage(self):
        self.agrees("pinsage")

    def test_that_are_not_there_say_where_else(self):
        for kind, residual, spec, said in (
            ("SGC", False, {}, r"job.to_torch\(\) has one"),
            ("TORCHSCRIPT", False, {}, "docs/plugins.md"),
            ("GCN", True, {}, "no residual connections"),
            ("GRAPHSAGE", False, {"sampling": {"algorithm": "KHOP_WEIGHTED"}}, "weighted by edges"),
        ):
            with self.assertRaisesRegex(gnnd.GnndError, said):
                geometric.module({"model": {"type": kind, "residual": residual}}, spec, {})

    def test_embeddings_are_tensors_and_tables(self):
        rows = self.jobs["gcn"].embeddings("val")
        self.assertTrue(torch.equal(rows.tensor(), torch.from_numpy(np.asarray(rows))))
        with tempfile.TemporaryDirectory() as folder:
            table = pd.read_parquet(rows.save(f"{folder}/rows.parquet"))
        self.assertEqual(list(table.columns), ["node", "embedding"])
        self.assertEqual(table.node.tolist(), rows.nodes.tolist())
        self.assertTrue(np.array_equal(np.stack(table.embedding), rows.rows))

    def test_history_is_a_frame_that_plots(self):
        mpl.use("Agg")
        job = self.jobs["gcn"].wait()
        history = job.history()
        self.assertIsInstance(history, pd.DataFrame)
        self.assertEqual(history.epoch.tolist(), [0, 1])
        figure = job.plot()
        self.assertEqual(figure.axes[0].lines[0].get_ydata().tolist(), history.loss.tolist())
        self.assertEqual(len(job.plot("seconds").axes), 1)


if __name__ == "__main__":
    unittest.main()
