"""Graphs as people have them: odd types, odd objects, parts that are missing.

usage: test_found.py, as test_extras.py. GNND_SEED repeats the graph of a run.
"""

import itertools
import os
import pathlib
import tempfile
import unittest

import networkx as nx
import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse
import torch
from torch_geometric.data import Data, HeteroData

import gnnd
from gnnd import networks

SEED = int(os.environ.get("GNND_SEED") or np.random.SeedSequence().entropy % 2**32)
N = 40
#: Of names: each dataset has its own.
NUMBERS = itertools.count()


def drawn():
    """A graph of chance: loops, repeated edges, nodes without any, weights, one way."""
    rng = np.random.default_rng(SEED)
    ends = rng.integers(0, N - 3, (2, 4 * N))
    ends = np.concatenate([ends, ends[:, :9], np.tile(np.arange(5), (2, 1))], axis=1)
    # By sources, as objects list them, so that rows have one order.
    ends = ends[:, np.lexsort((ends[1], ends[0]))]
    part = np.array(["train", "train", "val", "test"])[np.arange(N) % 4]
    return {
        "x": rng.normal(size=(N, 5)).astype(np.float32),
        "ends": ends,
        "weights": (rng.integers(1, 64, ends.shape[1]) / 8).astype(np.float32),
        "classes": rng.integers(0, 3, N),
        "targets": rng.normal(size=N).astype(np.float16),
        "labels": rng.integers(0, 2, (N, 4)),
        "part": part,
        "masks": {key: part == key for key in ("train", "val", "test")},
    }


class DGLGraph:
    """What is asked of a `dgl.DGLGraph`, with masks as `dgl.load_graphs` gives them back."""

    ntypes, etypes = ["_N"], ["_E"]

    def __init__(self, graph, y):
        self.ends = graph["ends"]
        self.ndata = {"feat": torch.from_numpy(graph["x"]), "label": torch.from_numpy(y)}
        for key, mask in graph["masks"].items():
            self.ndata[f"{key}_mask"] = torch.from_numpy(mask.astype(np.uint8))
        self.edata = {"w": torch.from_numpy(graph["weights"])}

    def num_nodes(self):
        return N

    def edges(self, order):
        assert order == "eid"
        return torch.from_numpy(self.ends[0]), torch.from_numpy(self.ends[1])


class Given(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(gnnd.connect())
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.graph = drawn()

    def name(self):
        return f"given-{next(NUMBERS)}"

    def labels(self, dataset):
        return np.load(pathlib.Path(dataset.path, "labels.npy"))

    def refused(self, call, *args, kind=gnnd.InvalidRequest, **options):
        """What is wrong, a line each."""
        with self.assertRaises(kind) as caught:
            call(*args, self.name(), **options)
        return "\n".join(map(str, caught.exception.violations))


class OneGraph(Given):
    """One graph of chance through every way in: one digest."""

    def ways(self, y):
        graph, client = self.graph, self.client
        x, ends, weights, masks = (graph[key] for key in ("x", "ends", "weights", "masks"))
        ids = {key: np.flatnonzero(mask) for key, mask in masks.items()}
        rest = {"features": x, "labels": y, **ids}
        yield (
            "arrays",
            client.import_arrays,
            (),
            {**rest, "edge_index": ends, "edge_weights": weights},
        )
        order = np.lexsort((ends[0], ends[1]))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(ends[1], minlength=N))])
        rows = {"indptr": indptr, "indices": ends[0][order], "edge_weights": weights[order]}
        lists = {
            **rest,
            "features": x.tolist(),
            "labels": list(y),
            "train": masks["train"].tolist(),
        }
        yield "lists and rows", client.import_arrays, (), {**lists, **rows}
        frame = {"features": pd.DataFrame(x), "edge_index": pd.DataFrame(ends)}
        frame |= {"val": pd.Series(masks["val"].astype("int8")), "edge_weights": pd.Series(weights)}
        yield "pandas", client.import_arrays, (), {**rest, **frame}
        tensors = {key: torch.from_numpy(value) for key, value in rest.items()}
        tensors |= {"features": torch.from_numpy(x).to_sparse()}
        tensors |= {"edge_index": torch.from_numpy(ends), "edge_weights": torch.from_numpy(weights)}
        yield "tensors", client.import_arrays, (), tensors
        integers = {f"{key}_mask": torch.from_numpy(mask).long() for key, mask in masks.items()}
        data = Data(
            x=torch.from_numpy(x),
            y=torch.from_numpy(y),
            edge_index=torch.from_numpy(ends),
            edge_weight=torch.from_numpy(weights),
            **integers,
        )
        yield "Data", client.import_pyg, (data,), {}
        path = self.folder / f"{self.name()}.pt"
        torch.save(data, path)
        yield "a file of it", client.import_pyg, (path,), {}
        yield "a file of it, trusted", client.import_pyg, (path,), {"trust": True}
        yield "DGL", client.import_dgl, (DGLGraph(graph, y),), {}
        yield "load_graphs", client.import_dgl, (([DGLGraph(graph, y)], {}),), {}
        cells = (weights, (ends[0], ends[1]))
        yield "COO", client.import_scipy, (scipy.sparse.coo_array(cells, shape=(N, N)),), rest
        by_source = np.concatenate([[0], np.cumsum(np.bincount(ends[0], minlength=N))])
        matrix = scipy.sparse.csr_matrix((weights, ends[1], by_source), shape=(N, N))
        yield "CSR", client.import_scipy, (matrix,), rest
        path = self.folder / f"{self.name()}.npz"
        scipy.sparse.save_npz(path, matrix)
        yield "a file of it", client.import_scipy, (path,), rest
        named = nx.MultiDiGraph()
        for node in range(N):
            named.add_node(node, x=list(x[node]), y=y[node], part=graph["part"][node])
        for (u, v), weight in zip(ends.T.tolist(), weights, strict=True):
            named.add_edge(u, v, w=weight)
        names = {"features": "x", "labels": "y", "split": "part", "weight": "w"}
        yield "networkx", client.import_networkx, (named,), names

    def test_whatever_it_is_held_in_and_whatever_is_learnt(self):
        for learnt in ("classes", "targets", "labels"):
            digests = {}
            for way, call, args, options in self.ways(self.graph[learnt]):
                made = call(*args, name=self.name(), **options)
                digests[way] = made.digest
                self.assertEqual(made.num_edges, self.graph["ends"].shape[1])
            message = f"of {learnt}; GNND_SEED={SEED} repeats it: {digests}"
            self.assertEqual(len(set(digests.values())), 1, message)


def attributes(n=30, lacks=(), **more):
    """A networkx graph of n nodes; `more` are attributes as functions of nodes."""
    made = nx.gnm_random_graph(n, 70, seed=1)
    usual = {
        "y": lambda i: "abc"[i % 3],
        "x": lambda i: [float(i % 3), 1.0],
        "part": lambda i: None if i == 5 else ("train", "train", "val", "test")[i % 4],
    }
    for i in made:
        found = {key: value(i) for key, value in {**usual, **more}.items()}
        made.nodes[i].update({key: value for key, value in found.items() if (i, key) not in lacks})
    return made


class Networks(Given):
    names = {"features": "x", "labels": "y", "split": "part"}

    def test_keep_targets_of_every_type_of_number(self):
        truth = np.array([0.2 + 0.37 * (i % 5) for i in range(30)])
        for kind in (np.float64, np.float32, np.float16, torch.tensor, lambda v: np.array([v])):
            for task in (None, "REGRESSION"):
                graph = attributes(y=lambda i, kind=kind: kind(truth[i]))
                made = self.client.import_networkx(graph, self.name(), task=task, **self.names)
                self.assertEqual(made.task, "REGRESSION")
                dtype = np.float16 if kind is np.float16 else np.float32
                wanted = truth.astype(dtype).astype(np.float32)
                self.assertEqual(self.labels(made).ravel().tolist(), wanted.tolist())

    def test_miss_labels_and_name_what_cannot_be_missed(self):
        expected = [i % 3 for i in range(30)]
        expected[5] = -1
        nothing = {"lacks": {(5, "y")}}
        for more in (
            nothing,
            {"y": lambda i: float("nan") if i == 5 else "abc"[i % 3]},
            {"y": lambda i: "NA" if i == 5 else "abc"[i % 3]},
            {"y": lambda i: np.float32("nan") if i == 5 else np.float32(i % 3)},
            {"y": lambda i: pd.NA if i == 5 else i % 3},
        ):
            made = self.client.import_networkx(attributes(**more), self.name(), **self.names)
            self.assertEqual(self.labels(made).tolist(), expected)
        made = self.client.import_networkx(attributes(**nothing), self.name(), **self.names)
        self.assertRegex(made.notices[0], "node 5 without y: the label is not known")
        for more, said in (
            ({"y": lambda i: 3 if i == 5 else "abc"[i % 3]}, "labels: node '5' has 3 among texts"),
            ({"lacks": {(5, "x")}}, "features: node 5 has no x"),
            ({"x": lambda i: [1.0] * (1 + (i == 5))}, "features: node 5 has 2 numbers, and node 0"),
            ({"x": lambda i: "a"}, "features: node 0 has 'a': expected a number"),
            ({"x": lambda i: [float(i), np.nan if i > 7 else 1]}, r"node 8 has \[8.0, nan\] in x"),
            ({"lacks": {(4, "y")}}, "train: has node '4', whose label is not known"),
            ({"part": lambda i: "trian"}, "split: node 0 has 'trian': .*did you mean train"),
        ):
            text = self.refused(self.client.import_networkx, attributes(**more), **self.names)
            self.assertRegex(text, said)
            self.assertNotIn("\n", text)

    def test_name_edges_by_their_nodes(self):
        graph = attributes()
        nx.set_edge_attributes(graph, 1.5, "weight")
        for name, edit, said in (
            ("wieght", {}, "no edge has 'wieght'; there are: weight; did you mean weight"),
            ("weight", {"weight": None}, "the edge from 0 to .* has no weight"),
            ("weight", {"weight": -1}, "the edge from 0 to .* has -1.0: expected a number of 0"),
            ("weight", {"weight": "far"}, "the edge from 0 to .* has 'far': expected a number"),
        ):
            u, v = next(iter(graph.edges))
            graph.edges[u, v].update({"weight": 1.5, **edit})
            text = self.refused(self.client.import_networkx, graph, **self.names, weight=name)
            self.assertRegex(text, f"weight: {said}")

    def test_have_single_numbers_parallel_edges_and_loops(self):
        graph = nx.MultiDiGraph()
        for at, name in enumerate("abcdef"):
            part = "train" if at < 4 else "val"
            more = {"kind": "xy"[at % 2], "part": part}
            graph.add_node(name, high=float(at), far=at, x=[0, at], **more)
        graph.add_edges_from([("a", "b"), ("a", "b"), ("c", "d"), ("e", "e")])
        rest = {"labels": "kind", "split": "part"}
        one = self.client.import_networkx(graph, self.name(), features="high", **rest)
        self.assertEqual((one.num_features, one.num_edges), (1, 4))
        said = " ".join(one.notices)
        self.assertIn("1 edge from a node to itself: kept", said)
        self.assertIn("1 edge beside another one of the same nodes: kept, each counts", said)
        two = self.client.import_networkx(graph, self.name(), features=["high", "far"], **rest)
        named = networks.from_networkx(graph, {"features": ["high", "x"], **rest}).feature_names
        self.assertEqual(named, ["high", "x.0", "x.1"])
        self.assertEqual(np.load(f"{two.path}/features.npy").tolist(), [[i, i] for i in range(6)])
        for node in graph:
            del graph.nodes[node]["x"]  # A list is no attribute of GraphML's.
        path = self.folder / "graph.graphml"
        nx.write_graphml(graph, path)
        of_file = self.client.import_networkx(path, self.name(), features=["high", "far"], **rest)
        self.assertEqual(of_file.digest, two.digest)
        graph.nodes["b"].pop("kind")
        text = self.refused(self.client.import_networkx, graph, features="high", **rest)
        self.assertEqual(text, "train: has node 'b', whose label is not known")


class Frames(Given):
    def tables(self, **more):
        nodes = pd.DataFrame(self.graph["x"])
        nodes = nodes.assign(id=range(N), label=self.graph["classes"], split=self.graph["part"])
        edges = pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3]})
        return nodes.assign(**more), edges

    def test_have_columns_that_are_called_by_numbers_or_by_several(self):
        nodes, edges = self.tables()
        made = self.client.import_frames(nodes, edges, self.name())
        named = self.client.import_frames(nodes.rename(columns=str), edges, self.name())
        self.assertEqual((made.digest, made.num_features), (named.digest, 5))
        by_index = self.client.import_frames(nodes.set_index("id"), edges, self.name())
        self.assertEqual(by_index.digest, made.digest)
        for wrong, said in (
            (pd.concat({"n": nodes}, axis=1), r"named on 2 levels, such as \('n', 0\).*droplevel"),
            (nodes.assign(**{"0": 1.0}), "1 names are those of several columns: 0"),
            (nodes["label"], "expected a frame of pandas or polars"),
            (nodes.assign(z=1j), "nodes.z: is of type complex128"),
        ):
            self.assertRegex(self.refused(self.client.import_frames, wrong, edges), said)

    def test_have_columns_of_every_type_of_number(self):
        targets = self.graph["targets"]
        digests = set()
        for label in (
            *(targets, targets.astype(np.longdouble), [torch.tensor(each) for each in targets]),
            pd.Series(list(targets), dtype=object),
        ):
            nodes, edges = self.tables(label=label)
            made = self.client.import_frames(nodes, edges, self.name())
            self.assertEqual((made.task, made.num_classes), ("REGRESSION", 1))
            digests.add(made.digest)
        self.assertEqual(len(digests), 1)
        sparse = pd.arrays.SparseArray(np.arange(N) % 2 * 1.0)
        tensors = [torch.ones(3) for _ in range(N)]
        nodes, edges = self.tables(sparse=sparse, tensors=tensors, stamp=2**40 + np.arange(N))
        made = self.client.import_frames(nodes, edges, self.name())
        self.assertEqual(made.num_features, 5 + 1 + 3 + 1)
        self.assertRegex(made.notices[0], "nodes.stamp: 39 .*rounded.* 1099511627777 of row 2$")


class Objects(Given):
    def test_with_sparse_features_are_taken_whole(self):
        x = (torch.rand(N, 6) > 0.7).float()
        masks = {key: torch.from_numpy(mask) for key, mask in self.graph["masks"].items()}
        rest = {"y": torch.arange(N) % 3, "edge_index": torch.from_numpy(self.graph["ends"])}
        rest |= {f"{key}_mask": mask for key, mask in masks.items()}
        digests = set()
        for features in (x, x.to_sparse(), x.to_sparse_csr(), x.to_sparse_csc()):
            made = self.client.import_pyg(Data(x=features, **rest), self.name())
            digests.add(made.digest)
        data = Data(x=x, **rest)
        for features in (scipy.sparse.csr_matrix(x.numpy()), scipy.sparse.coo_array(x.double())):
            digests.add(self.client.import_pyg(data, self.name(), features=features).digest)
        self.assertEqual(len(digests), 1)
        large = scipy.sparse.csr_matrix(([1.0], ([0], [0])), shape=(N, 1 << 45))
        text = self.refused(self.client.import_pyg, data, features=large)
        self.assertRegex(text, r"features: they are sparse, \[40, 35184372088832\]: in full .* GiB")

    def test_of_several_types_are_one_graph_where_each_has_one(self):
        data = HeteroData()
        paper, mask = data["paper"], torch.arange(6) < 4
        paper.x, paper.y, paper.train_mask, paper.val_mask = (
            torch.eye(6),
            torch.arange(6) % 2,
            mask,
            ~mask,
        )
        data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1], [1, 0]])
        path = self.folder / "hetero.pt"
        torch.save(data, path)
        digests = {
            self.client.import_pyg(given, self.name(), **options).digest
            for given, options in ((data, {}), (path, {}), (path, {"trust": True}))
        }
        self.assertEqual(len(digests), 1)

    def test_of_ogb_have_their_split_beside_them(self):
        class Dataset:
            def __len__(self):
                return 1

            def __getitem__(self, _):
                data = Data(x=torch.eye(6), edge_index=torch.tensor([[0, 1], [1, 0]]))
                return data.update({"y": torch.arange(6).reshape(6, 1) % 2})

            def get_idx_split(self):
                ids = torch.arange(6)
                return {"train": ids[:3], "valid": ids[3:5], "test": ids[5:]}

        made = self.client.import_pyg(Dataset(), self.name())
        self.assertEqual(made.split, {"train": 3, "val": 2, "test": 1})

    def test_of_another_kind_say_what_is_expected(self):
        client = self.client
        for call, given, said in (
            (client.import_scipy, "g.csv", "'g.csv': expected a sparse matrix, or the path"),
            (client.import_scipy, {1: 2}, "it is a dict: expected a scipy.sparse array"),
            (client.import_scipy, np.zeros((3, 4)), r"shape \(3, 4\): expected as many rows"),
            (client.import_networkx, [1], "it is a list: expected a networkx graph"),
            (client.import_dgl, [object()], "it is a object: expected a dgl.DGLGraph"),
            (client.import_dgl, [1, 2], "there are 2 graphs: gnnd learns from one"),
            (client.import_ogb, "arxiv", "'arxiv' is a path.*client.import_path takes"),
            (client.import_ogb, Data(), "torch_geometric.data.data.Data: expected an ogb"),
            (client.import_pyg, [1, 2], "it holds 2 graphs: gnnd learns from one"),
            (client.import_pyg, 7, "it is a int: expected a torch_geometric.data.Data"),
        ):
            with self.subTest(given=given):
                self.assertRegex(self.refused(call, given), said)
        for call, file in (
            *((client.import_scipy, "g.mtx"), (client.import_networkx, "g.gml")),
            *((client.import_dgl, "graph.bin"), (client.import_pyg, "data.pt")),
        ):
            text = self.refused(call, file, kind=gnnd.ImportFailed)
            self.assertRegex(text, rf"{file}: there is no such file \(from ")

    def test_of_matrices_keep_repeated_cells_and_tell_zeros(self):
        rest = {"features": np.eye(4), "labels": [0, 1, 0, 1], "train": [0, 1], "val": [2]}
        cells = ([1.0, 1.0, 0.0], ([0, 0, 2], [1, 1, 3]))
        matrix = scipy.sparse.coo_matrix(cells, shape=(4, 4))
        made = self.client.import_scipy(matrix, self.name(), **rest)
        self.assertEqual(made.num_edges, 3)
        self.assertRegex(made.notices[0], "1 values of the adjacency are 0")
        path = self.folder / "g.mtx"
        scipy.io.mmwrite(path, matrix)
        self.assertEqual(self.client.import_scipy(path, self.name(), **rest).digest, made.digest)
        dense = np.array([[0, 0.5, 0, 0], [0, 0, 2, 0], [0, 0, 0, 1], [1, 0, 0, 0]])
        of_dense = self.client.import_scipy(dense, self.name(), **rest)
        of_sparse = self.client.import_scipy(scipy.sparse.csr_array(dense), self.name(), **rest)
        self.assertEqual(of_dense.digest, of_sparse.digest)

    def test_that_changed_in_memory_are_imported_as_they_are(self):
        path = self.folder / "x.npy"
        np.save(path, 1000 * self.graph["x"])
        mapped = np.load(path, mmap_mode="c")
        mapped -= mapped.mean(axis=0)
        rest = {
            "labels": self.graph["classes"],
            "edge_index": self.graph["ends"],
            **self.graph["masks"],
        }
        digests = [
            self.client.import_arrays(self.name(), features=features, **rest).digest
            for features in (mapped, np.array(mapped), torch.from_numpy(mapped))
        ]
        self.assertEqual(len(set(digests)), 1)

    def test_that_lack_something_are_completed_by_the_daemon(self):
        rest = {"labels": self.graph["classes"], "edge_index": self.graph["ends"]}
        made = self.client.import_arrays(
            self.name(), made_features="degree", random_split=(0.25, 0.25, 3), **rest
        )
        self.assertEqual(made.split, {"train": 20, "val": 10, "test": 10})
        again = self.client.import_arrays(
            self.name(), made_features="degree", random_split=(0.25, 0.25, 3), **rest
        )
        self.assertEqual(again.digest, made.digest)
        data = Data(y=torch.from_numpy(self.graph["classes"]), edge_index=torch.tensor([[0], [1]]))
        made = self.client.import_pyg(data, self.name(), random_split=(0.2, 0.2))
        self.assertRegex(" ".join(made.notices), "the source has no features")
        data.X = torch.eye(N)
        text = self.refused(self.client.import_pyg, data, random_split=(0.2, 0.2))
        self.assertRegex(text, "features: the data has no x, give it as features=…; did you mean X")


class Predictions(Given):
    def test_of_a_mask_are_those_of_its_nodes_whatever_its_type(self):
        rest = {"labels": self.graph["classes"], "edge_index": self.graph["ends"]}
        data = self.client.import_arrays(
            self.name(), features=self.graph["x"], **rest, **self.graph["masks"]
        )
        model = gnnd.GraphSAGE(hidden=8, layers=2)
        job = self.client.submit(data, model, fanouts=[3, 3], epochs=1).wait()
        mask = np.zeros(N, bool)
        mask[[3, 7, 30]] = True
        for kind in (mask, mask.astype(np.uint8), torch.from_numpy(mask).long(), mask.tolist()):
            self.assertEqual(job.predict(kind).nodes.tolist(), [3, 7, 30])
        for wrong in (mask[:-1], np.append(mask, True), [N], [-1]):
            with self.assertRaisesRegex(gnnd.InvalidRequest, "expected (one of each|0 to 39)"):
                job.predict(wrong)


if __name__ == "__main__":
    unittest.main()
