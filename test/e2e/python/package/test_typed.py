"""Graphs of several types of nodes and relations, as torch_geometric has them.

usage: test_typed.py, as test_extras.py.
"""

import itertools
import pathlib
import tempfile
import unittest

import torch
from torch_geometric.data import HeteroData

import gnnd

#: Of names: each dataset has its own.
NUMBERS = itertools.count()


class Types(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(gnnd.connect())
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def name(self):
        return f"typed-{next(NUMBERS)}"

    def refused(self, call, *args, kind=gnnd.InvalidRequest, **options):
        """What is wrong, a line each."""
        with self.assertRaises(kind) as caught:
            call(*args, self.name(), **options)
        return "\n".join(map(str, caught.exception.violations))

    def test_become_a_dataset_of_several_types(self):
        data = self.library()
        path = self.folder / "library.pt"
        torch.save(data, path)
        made = self.client.import_pyg(data, self.name())
        self.assertEqual(
            [
                (name, found.num_nodes, found.num_features)
                for name, found in made.node_types.items()
            ],
            [("author", 4, 0), ("paper", 6, 3)],
        )
        paper = made.node_types["paper"]
        self.assertEqual((paper.num_classes, paper.num_train, paper.num_val), (2, 4, 2))
        self.assertEqual(
            [(name, found.num_edges, found.reverse_of) for name, found in made.relations.items()],
            [
                (("author", "writes", "paper"), 3, ""),
                (("paper", "cites", "paper"), 2, ""),
                (("paper", "rev_writes", "author"), 3, "author__writes__paper"),
            ],
        )
        self.assertRegex(repr(made), r"10 nodes of 2 types, 8 edges of 3 relations")
        plain = {
            self.client.import_pyg(given, self.name(), **options).digest
            for given, options in ((data, {}), ([data], {}), (path, {}), (path, {"trust": True}))
        }
        plain.add(self.client.import_path(path, self.name()).digest)
        torch.save(data.to_dict(), path)
        plain.add(self.client.import_path(path, self.name()).digest)
        self.assertEqual(len(plain), 1)
        bare = self.client.import_path(path, self.name(), reverse=False)
        self.assertNotEqual(bare.digest, made.digest)
        self.assertEqual(len(bare.relations), 2)
        rows = self.library()
        ends = rows["author", "writes", "paper"].edge_index
        del rows["author", "writes", "paper"].edge_index
        cells = torch.sparse_coo_tensor(ends.flip(0), torch.ones(3), (6, 4)).coalesce()
        rows["author", "writes", "paper"].adj_t = cells.to_sparse_csr()
        self.assertEqual(self.client.import_pyg(rows, self.name()).digest, plain.pop())
        has = "has 2 types of nodes and 3 relations"
        with self.assertRaisesRegex(gnnd.InvalidRequest, has):
            self.client.submit(made.id, gnnd.GraphSAGE(hidden=8), epochs=1)
        with self.assertRaisesRegex(gnnd.InvalidRequest, "expected the HeteroData"):
            gnnd.loader(made.id, num_neighbors=[2], batch_size=2, client=self.client)

    def test_are_learnt_with_fanouts_of_each_relation(self):
        made = self.client.import_pyg(self.library(), self.name())
        fanouts = {("author", "writes", "paper"): [2, 0], "*": [3, 3]}
        model = gnnd.HGT(hidden=8, heads=2)
        job = self.client.submit(made, model, fanouts=fanouts, epochs=2)
        job.wait()
        spec = job.spec
        self.assertEqual(spec["relations"]["target"], "paper")
        self.assertEqual(spec["relations"]["fanouts"], ["author__writes__paper=2/0"])
        self.assertEqual(spec["sampling"]["fanouts"], [3, 3])
        module = job.to_pyg()
        data = self.library()
        x = {"paper": data["paper"].x, "author": torch.zeros(4, 3)}
        edges = {key: data[key].edge_index for key in data.edge_types}
        self.assertEqual(tuple(module(x, edges).shape), (6, 2))
        with self.assertRaisesRegex(
            gnnd.InvalidRequest, r"relations\.fanouts\[0\].*mean author__w"
        ):
            self.client.submit(made, model, fanouts={"author__wrote__paper": [2, 2]})
        with self.assertRaisesRegex(gnnd.InvalidRequest, "lists of one length"):
            self.client.submit(made, model, fanouts={"author__writes__paper": [2], "*": [2, 2]})

    def test_train_models_that_torch_geometric_computes(self):
        random = torch.Generator().manual_seed(3)
        data, papers, authors = HeteroData(), 120, 30
        data["paper"].x = torch.randn(papers, 3, generator=random)
        data["paper"].y = torch.arange(papers) % 3
        data["author"].x = torch.randn(authors, 5, generator=random)
        for part, name in enumerate(("train_mask", "val_mask", "test_mask")):
            data["paper"][name] = torch.arange(papers) // 3 % 3 == part
        drawn = [torch.randint(n, (300,), generator=random) for n in (authors, papers, papers)]
        data["author", "writes", "paper"].edge_index = torch.stack(drawn[:2])
        data["paper", "cites", "paper"].edge_index = torch.stack(drawn[1:])
        made = self.client.import_pyg(data, self.name())
        edges = {
            name: data[tuple(found.reverse_of.split("__"))].edge_index.flip(0)
            if found.reverse_of
            else data[name].edge_index
            for name, found in made.relations.items()
        }
        self.assertEqual(len(edges), 4)
        # Of edges that are listed twice a dataset has one.
        edges = {name: torch.unique(ends, dim=1) for name, ends in edges.items()}
        mask = data["paper"].test_mask
        for model, standardize in (
            (gnnd.RSAGE(hidden=8, normalization="LAYER"), "OFF"),
            (gnnd.RGCN(hidden=8, bases=2, residual=True), "ON"),
            (gnnd.HGT(hidden=8, heads=2), "OFF"),
        ):
            options = {"fanouts": [4, 4], "epochs": 4, "batch_size": 8, "standardize": standardize}
            job = self.client.submit(made.id, model, **options)
            job.wait()
            module = job.to_pyg()
            with torch.no_grad():
                logits = module(data.x_dict, edges)
            self.assertEqual(logits.shape, (papers, 3))
            right = (logits.argmax(1) == data["paper"].y)[mask].sum().item()
            # Rounding may turn one that is nearly even.
            told = job.result.test_accuracy_best * mask.sum().item()
            self.assertLessEqual(abs(right - told), 1.01, model)
            # A mask is of the target's nodes, not of all types'.
            said = torch.as_tensor(job.predict(mask, logits=True).logits)
            torch.testing.assert_close(said, logits[mask], rtol=1e-4, atol=1e-4)
            with self.assertRaisesRegex(gnnd.InvalidRequest, f"expected 0 to {papers - 1}"):
                job.predict([papers])

    def test_say_what_cannot_be_taken(self):
        data = self.library()
        data["author", "writes", "paper"].edge_weight = torch.ones(3)
        del data["author"].num_nodes
        text = self.refused(self.client.import_pyg, data, undirected=True)
        self.assertIn("author__writes__paper: has edge_weight", text)
        self.assertIn("undirected: is not for graphs of several types", text)
        path = self.folder / "wrong.pt"
        torch.save(data, path)
        for call in (self.client.import_pyg, self.client.import_path):
            text = self.refused(call, path, kind=gnnd.ImportFailed)
            self.assertIn("author__writes__paper has edge_weight", text)
            self.assertNotIn("\x1b", text)

    def library(self):
        data, mask = HeteroData(), torch.arange(6) < 4
        data["paper"].x = torch.arange(18.0).reshape(6, 3)
        data["paper"].y = torch.arange(6) % 2
        data["paper"].train_mask, data["paper"].val_mask = mask, ~mask
        data["author"].num_nodes = 4
        data["author", "writes", "paper"].edge_index = torch.tensor([[0, 3, 3], [5, 0, 1]])
        data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1], [1, 0]])
        return data
