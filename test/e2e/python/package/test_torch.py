"""A job's model in PyTorch and as ONNX, against the daemon of GNND_ADDRESS.

usage: test_torch.py, as test_extras.py, with onnx, onnxscript and onnxruntime.
"""

import pathlib
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
import onnxruntime
import torch
from test_extras import EDGES, TOLERANCE, N, pyg_data

import gnnd
from gnnd import geometric, onnx


def adjacency_product(scales):
    """x -> D^-1/2 (A + I) D^-1/2 x or D^-1 (A + I) x, float64, by edges alone."""
    loops = np.stack([np.arange(N), np.arange(N)])
    source, target = np.concatenate([EDGES, loops], axis=1)
    degree = np.bincount(target, minlength=N)
    weights = 1 / np.sqrt(degree[source] * degree[target])
    if scales == "ROW":
        weights = 1 / degree[target]

    def product(x):
        out = np.zeros_like(x)
        np.add.at(out, target, weights[:, None] * x[source])
        return out

    return product


def propagated(operators, hops):
    """[N, 1 + K R, F] rows: hop 0, then the hops of each operator."""
    tokens = [pyg_data().x.numpy().astype(np.float64)]
    for operator in operators:
        product, x = adjacency_product(operator), tokens[0]
        for _ in range(hops):
            x = product(x)
            tokens.append(x)
    return torch.from_numpy(np.stack(tokens, 1).astype(np.float32))


def graph(nodes, edges, features):
    """A graph of chance, with loops and repeated edges."""
    draw = torch.Generator().manual_seed(nodes)
    x = torch.rand(nodes, features, generator=draw)
    return x, torch.randint(0, nodes, (2, edges), generator=draw)


class Models(unittest.TestCase):
    """Jobs of models that torch_geometric lacks, and of three that it has."""

    over_rows = {
        "sgc": (gnnd.SGC(hops=2), ["SYMMETRIC"], 2),
        "concat": (gnnd.SIGN(hops=2, hidden=16, variant="CONCAT"), ["SYMMETRIC", "ROW"], 2),
        "hoga": (
            gnnd.HOGA(hops=2, hidden=16, heads=2, residual=True, hop_layers=2, hop_hidden_dim=8),
            ["SYMMETRIC", "ROW"],
            2,
        ),
        "dac24": (gnnd.HOGA(hops=3, hidden=16, heads=2, variant="DAC24"), ["SYMMETRIC"], 3),
    }
    over_graphs = {
        "onnx-gat": (gnnd.GAT(hidden=16, heads=4, residual=True), {}),
        "onnx-gcn": (gnnd.GCN(hidden=16, normalization="LAYER"), {"standardize": "ON"}),
        "onnx-pinsage": (gnnd.PinSAGE(hidden=16, layers=2), {}),
    }

    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(gnnd.connect())
        cls.data = pyg_data()
        cls.client.import_pyg(cls.data, name="for-torch")
        common = {"epochs": 3, "batch_size": 70, "devices": 1}
        cls.jobs = {}
        for name, (model, operators, _) in cls.over_rows.items():
            more = {"propagation": {"operators": operators}}
            cls.jobs[name] = cls.client.submit("for-torch", model, name=name, **common, **more)
        for name, (model, more) in cls.over_graphs.items():
            fanouts = {} if name == "onnx-pinsage" else {"fanouts": [5, 5]}
            cls.jobs[name] = cls.client.submit(
                "for-torch", model, name=name, **fanouts, **common, **more
            )
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def as_onnx(self, name):
        """A job's module, and the same as a function of arrays that ONNX Runtime computes."""
        path = self.jobs[name].to_onnx(self.folder / f"{name}.onnx")
        self.assertEqual([each.name for each in self.folder.glob(f"{name}*")], [f"{name}.onnx"])
        session = onnxruntime.InferenceSession(path)
        said = session.get_modelmeta().custom_metadata_map
        result = self.jobs[name].result
        # The best parameters are those of the end only where the last epoch, from 0, is the best.
        is_last = int(said["gnnd.epoch"]) + 1 == self.jobs[name].message.result.epochs
        is_same = said["gnnd.parameters_sha256"] == result.parameters_sha256
        self.assertEqual(is_same, is_last, said)
        names = [each.name for each in session.get_inputs()]

        def computed(*arrays):
            return session.run(
                ["logits"], dict(zip(names, (a.numpy() for a in arrays), strict=True))
            )[0]

        return self.jobs[name].to_torch(), computed, names

    def equal(self, module, computed, *arrays):
        with torch.no_grad():
            wanted = module(*arrays).numpy()
        found = computed(*arrays)
        self.assertEqual(found.shape, wanted.shape)
        if wanted.size > 0:
            self.assertLess(np.abs(found - wanted).max(), TOLERANCE * max(1, np.abs(wanted).max()))

    def test_over_rows_compute_what_gnnd_predicts(self):
        for name, (model, operators, hops) in self.over_rows.items():
            with self.subTest(name):
                module = self.jobs[name].to_torch()
                rows = propagated(operators, hops)
                with torch.no_grad():
                    found = module(rows[:, -1] if name == "sgc" else rows).numpy()
                wanted = self.jobs[name].predict("all", logits=True).logits
                self.assertEqual(found.shape, (N, 7))
                self.assertLess(np.abs(found - wanted).max(), TOLERANCE * np.abs(wanted).max())
                self.assertFalse(module.training)
                with self.assertRaisesRegex(gnnd.GnndError, rf"{model.type}; job.to_torch\(\)"):
                    self.jobs[name].to_pyg()

    def test_over_graphs_are_the_same_in_onnx_for_any_graph(self):
        for name in self.over_graphs:
            with self.subTest(name):
                module, computed, names = self.as_onnx(name)
                self.assertEqual(names, ["x", "edge_index"])
                self.equal(module, computed, self.data.x, self.data.edge_index)
                features = self.data.x.shape[1]
                for nodes, edges in ((40, 400), (2, 1), (9, 0)):
                    self.equal(module, computed, *graph(nodes, edges, features))

    def test_over_rows_are_the_same_in_onnx_for_any_number(self):
        for name, (_, operators, hops) in self.over_rows.items():
            with self.subTest(name):
                module, computed, names = self.as_onnx(name)
                self.assertEqual(names, ["rows"])
                rows = propagated(operators, hops)
                rows = rows[:, -1] if name == "sgc" else rows
                for count in (N, 3, 1):
                    self.equal(module, computed, rows[:count])

    def test_that_cannot_be_exported_say_what_to_do(self):
        script = {"model": {"type": "TORCHSCRIPT", "residual": False}, "rows": None}
        with self.assertRaisesRegex(gnnd.GnndError, "docs/plugins.md"):
            geometric.any_module(script, {}, {})

        class ByValue(torch.nn.Module):
            def forward(self, x, edge_index):
                return x if x.sum() > 0 else -x

        facts = {"model": {"type": "GCN", "in_dim": 3}, "rows": None}
        path = self.folder / "never.onnx"
        with self.assertRaisesRegex(gnnd.GnndError, r"no ONNX of this GCN: .*job.predict\(\)"):
            onnx.write(ByValue(), facts, path)
        with (
            unittest.mock.patch.dict(sys.modules, {"onnxscript": None}),
            self.assertRaisesRegex(
                gnnd.MissingPackage, r"pip install onnxscript, or 'gnnd\[onnx\]'"
            ),
        ):
            onnx.write(ByValue(), facts, path)
        self.assertFalse(path.exists())


if __name__ == "__main__":
    unittest.main()
