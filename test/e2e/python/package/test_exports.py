"""What a job's modules compute on graphs of chance, against what gnnd predicts of them.

usage: test_exports.py, against the daemon of GNND_ADDRESS, with torch, torch_geometric, onnx,
onnxscript and onnxruntime. GNND_SEED repeats the graphs of a run.
"""

import os
import pathlib
import pickle
import tempfile
import unittest

import numpy as np
import onnxruntime
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import ToSparseTensor

import gnnd

SEED = int(os.environ.get("GNND_SEED") or np.random.SeedSequence().entropy % 2**32)
#: Of the largest logit: sums in another order.
TOLERANCE = 1e-4
FEATURES = 5


def drawn(rng, nodes):
    """A graph with edges one way, repeated ones, loops (also repeated), nodes without any edge."""
    ends = rng.integers(0, nodes - 3, (2, 4 * nodes))
    repeated = ends[:, rng.integers(0, ends.shape[1], nodes)]
    loops = np.tile(rng.integers(0, nodes - 3, nodes // 2), (2, 1))
    edge_index = np.concatenate([ends, repeated, loops, loops[:, :3]], axis=1)
    labels = rng.integers(0, 3, nodes)
    centres = np.eye(3)[labels] @ rng.normal(size=(3, FEATURES))
    scales, shifts = np.array([1, 50, 0.01, 3, 1]), np.array([0, -100, 2, 0, 7])
    features = (centres + rng.normal(size=(nodes, FEATURES))) * scales + shifts
    part = rng.permutation(nodes) % 4
    return {
        "features": features.astype(np.float32),
        "labels": labels,
        "edge_index": edge_index,
        "edge_weights": rng.random(edge_index.shape[1]).astype(np.float32) + 0.1,
        "train": np.flatnonzero(part < 2),
        "val": np.flatnonzero(part == 2),
        "test": np.flatnonzero(part == 3),
    }


def propagated(graph, operators, hops):
    """[N, 1 + K R, F] rows by dense matrices: hop 0, then the hops of each operator."""
    nodes = len(graph["labels"])
    matrix = np.eye(nodes)
    np.add.at(matrix, tuple(graph["edge_index"][::-1]), 1)
    degrees = matrix.sum(1)
    products = {
        "SYMMETRIC": matrix / np.sqrt(np.outer(degrees, degrees)),
        "ROW": matrix / degrees[:, None],
    }
    tokens = [graph["features"].astype(np.float64)]
    for operator in operators:
        x = tokens[0]
        for _ in range(hops):
            x = products[operator] @ x
            tokens.append(x)
    return torch.from_numpy(np.stack(tokens, 1).astype(np.float32))


def over_blocks(known):
    """Classes of models over blocks that are not among `known`."""
    kinds = (getattr(gnnd, name) for name in gnnd.models.__all__)
    return [kind for kind in kinds if issubclass(kind, gnnd.models.Layered) and kind not in known]


def inputs_of(layers, module, *given):
    """What each of `layers` is given while `module` computes: the rows of the layer below it."""
    seen = []

    def note(_, args):
        seen.append(args[0].detach())

    hooks = [layer.register_forward_pre_hook(note) for layer in layers]
    module(*given)
    for hook in hooks:
        hook.remove()
    return seen


class Exports(unittest.TestCase):
    """One job of each model, on one graph of chance; predicted on another one, too."""

    both = ["SYMMETRIC", "ROW"]
    over_graphs = {
        "x-sage": (gnnd.GraphSAGE(hidden=8, normalization="L2"), {"standardize": "ON"}),
        "x-gcn": (gnnd.GCN(hidden=8, layers=3), {}),
        "x-gat": (gnnd.GAT(hidden=8, heads=2, residual=True), {"standardize": "ON"}),
        "x-gatv2": (gnnd.GATv2(hidden=8, heads=2, activation="ELU"), {"standardize": "ON"}),
        "x-pinsage": (gnnd.PinSAGE(hidden=8, layers=2), {}),
    }
    over_graphs |= {
        f"x-{kind.type.lower()}": (kind(hidden=8), {"standardize": "ON"})
        for kind in over_blocks({type(model) for model, _ in over_graphs.values()})
    }
    over_rows = {
        "x-sgc": (gnnd.SGC(hops=2), ["SYMMETRIC"], 2),
        "x-sign": (gnnd.SIGN(hops=2, hidden=8, variant="CONCAT"), both, 2),
        "x-hoga": (gnnd.HOGA(hops=2, hidden=8, heads=2), both, 2),
    }

    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(gnnd.connect())
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        rng = np.random.default_rng(SEED)
        cls.graphs = {"chance": drawn(rng, 60), "another-chance": drawn(rng, 33)}
        for name, graph in cls.graphs.items():
            cls.client.import_arrays(name, **graph)
        common = {"epochs": 15, "batch_size": 16, "devices": 1, "learning_rate": 0.02}
        cls.jobs = {}
        for name, (model, more) in cls.over_graphs.items():
            layers = (model.layers or 2) if name != "x-pinsage" else 0
            fanouts = {"fanouts": [-1] * layers} if layers else {}
            cls.jobs[name] = cls.client.submit(
                "chance", model, name=name, **fanouts, **common, **more
            )
        for name, (model, operators, _) in cls.over_rows.items():
            more = {"propagation": {"operators": operators}}
            cls.jobs[name] = cls.client.submit("chance", model, name=name, **common, **more)

    def alike(self, found, wanted, what):
        found = found.detach().numpy() if isinstance(found, torch.Tensor) else found
        apart = np.abs(found - wanted).max() / max(1, np.abs(wanted).max())
        self.assertLess(apart, TOLERANCE, f"{what}; GNND_SEED={SEED} repeats it")

    def in_onnx(self, name):
        """A function of named tensors."""
        path = self.jobs[name].to_onnx(self.folder / f"{name}.onnx")
        session = onnxruntime.InferenceSession(path)
        return lambda **given: session.run(["logits"], {k: v.numpy() for k, v in given.items()})[0]

    def test_over_graphs_compute_gnnds_logits_whatever_the_edges_are(self):
        for name in self.over_graphs:
            job = self.jobs[name]
            modules = {"to_pyg": job.to_pyg(), "to_torch": job.to_torch()}
            onnx = self.in_onnx(name)
            for of, graph in self.graphs.items():
                wanted = job.predict("all", logits=True, dataset=of).logits
                x = torch.from_numpy(graph["features"])
                edges = torch.from_numpy(graph["edge_index"])
                for way, module in modules.items():
                    self.alike(module(x, edges), wanted, f"{way} of {name} on {of}")
                self.alike(onnx(x=x, edge_index=edges), wanted, f"to_onnx of {name} on {of}")

    def test_over_graphs_give_gnnds_rows_of_each_hidden_layer(self):
        of = "another-chance"
        x, edges = (torch.from_numpy(self.graphs[of][key]) for key in ("features", "edge_index"))
        for name in self.over_graphs:
            module = self.jobs[name].to_pyg()
            convs = getattr(module, "model", module).convs
            rows = inputs_of(convs, module, x, edges)[1:]
            for layer, wanted in enumerate(rows, start=1):
                found = self.jobs[name].embeddings(layer=layer, dataset=of)
                self.alike(wanted, found.rows, f"layer {layer} of {name}")
        last = self.jobs["x-gcn"].embeddings([3, 3, 1], dataset=of)
        self.assertEqual((last.layer, last.nodes.tolist()), (2, [3, 3, 1]))
        wanted = self.jobs["x-gcn"].embeddings(dataset=of).rows
        self.alike(last.tensor(), wanted[[3, 3, 1]], "some nodes of x-gcn")

    def test_over_rows_give_gnnds_rows_of_each_layer_where_nodes_have_one(self):
        job = self.jobs["x-sign"]
        module = job.to_torch()
        rows = propagated(self.graphs["chance"], self.both, 2)
        lins = getattr(module, "model", module).lins
        for layer, wanted in enumerate(inputs_of(lins, module, rows), start=1):
            self.alike(wanted, job.embeddings(layer=layer).rows, f"layer {layer} of x-sign")
        wide = self.jobs["x-hoga"]
        self.assertEqual(
            wide.embeddings("val").rows.shape[1], wide.predict("val", logits=True).logits.shape[1]
        )

    def test_over_rows_compute_gnnds_logits_too(self):
        # That their files in ONNX compute the same test_torch shows: they have no edges.
        for name, (_, operators, hops) in self.over_rows.items():
            module = self.jobs[name].to_torch()
            for of, graph in self.graphs.items():
                wanted = self.jobs[name].predict("all", logits=True, dataset=of).logits
                rows = propagated(graph, operators, hops)
                rows = rows[:, -1] if name == "x-sgc" else rows
                self.alike(module(rows), wanted, f"to_torch of {name} on {of}")

    def test_take_adjacencies_for_edges_and_are_pickled_whole(self):
        graph = self.graphs["another-chance"]
        ends = np.unique(graph["edge_index"], axis=1)
        data = Data(edge_index=torch.from_numpy(ends), num_nodes=33)
        adjacency = ToSparseTensor(attr=None, layout=torch.sparse_coo)(data).adj_t
        x = torch.from_numpy(graph["features"])
        for name in ("x-gcn", "x-sage"):
            module = self.jobs[name].to_pyg()
            again = pickle.loads(pickle.dumps(module))
            wanted = module(x, torch.from_numpy(ends)).detach().numpy()
            self.alike(again(x, adjacency.to_sparse_csr()), wanted, name)
            self.alike(again(x, adjacency), wanted, name)
        with self.assertRaisesRegex(ValueError, "trained without weights"):
            self.jobs["x-gcn"].to_pyg()(x, torch.from_numpy(ends), torch.ones(ends.shape[1]))


if __name__ == "__main__":
    unittest.main()
