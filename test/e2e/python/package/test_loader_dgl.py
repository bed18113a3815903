"""Blocks of a true DGL. It needs neither torch_geometric nor the newest PyTorch."""

import itertools
import unittest

import numpy as np
import torch

import gnnd

try:
    import dgl
except ImportError:
    dgl = None

NODES, EDGES, BATCH, CLASSES = 800, 6000, 100, 4
FANOUTS = [4, 3, 2]


@unittest.skipIf(dgl is None, "dgl is not here: bench/peers/setup.sh makes an environment with it")
class LoaderDglTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        random = np.random.default_rng(6)
        cls.features = random.standard_normal((NODES, 7), np.float32)
        cls.edges = random.integers(0, NODES, (2, EDGES))
        cls.labels = random.integers(0, CLASSES, NODES)
        cls.train = np.arange(0, NODES, 2)
        cls.client = gnnd.local(cpu_devices=4, share_cores=True)
        cls.addClassCleanup(cls.client.close)
        cls.client.import_arrays(
            "blocks",
            **{"features": cls.features, "edge_index": cls.edges, "labels": cls.labels},
            **{"train": cls.train, "val": np.arange(1, 99, 2), "test": np.arange(101, 199, 2)},
        )

    def batches(self, **options):
        with gnnd.loader(
            "blocks",
            FANOUTS,
            form="blocks",
            batch_size=BATCH,
            shuffle=True,
            client=self.client,
            num_workers=1,
            **options,
        ) as loader:
            return list(loader)

    def test_blocks_are_samples_of_the_graph(self):
        order = np.argsort(self.edges[1], kind="stable")
        degrees = torch.from_numpy(np.bincount(self.edges[1], minlength=NODES))
        seen = []
        for inputs, seeds, blocks in self.batches(edge_ids=True):
            seen.append(seeds)
            self.assertTrue(torch.equal(blocks[0].srcdata[dgl.NID], inputs))
            self.assertTrue(torch.equal(blocks[-1].dstdata[dgl.NID], seeds))
            rows = torch.from_numpy(self.features)[inputs]
            self.assertTrue(torch.equal(blocks[0].srcdata["feat"], rows))
            labels = torch.from_numpy(self.labels)[seeds]
            self.assertTrue(torch.equal(blocks[-1].dstdata["label"], labels))
            for fanout, block in zip(reversed(FANOUTS), blocks, strict=True):
                self.assertTrue(block.is_block)
                nodes = block.dstdata[dgl.NID]
                self.assertTrue(torch.equal(block.srcdata[dgl.NID][: len(nodes)], nodes))
                self.assertTrue(torch.equal(block.in_degrees(), degrees[nodes].clamp(max=fanout)))
                sources, targets = block.edges()
                ends = torch.stack([block.srcdata[dgl.NID][sources], nodes[targets]])
                numbers = order[block.edata[dgl.EID].numpy()]
                self.assertTrue(torch.equal(ends, torch.from_numpy(self.edges[:, numbers])))
        found = torch.cat(seen).sort().values
        self.assertTrue(torch.equal(found, torch.from_numpy(self.train)))

    def test_a_model_of_dgl_learns_from_them(self):
        sizes = [7, 8, 8, CLASSES]
        convs = torch.nn.ModuleList(
            dgl.nn.SAGEConv(*ends, "mean") for ends in itertools.pairwise(sizes)
        )
        for _, seeds, blocks in self.batches():
            x = blocks[0].srcdata["feat"]
            for conv, block in zip(convs, blocks, strict=True):
                own = x[: block.num_dst_nodes()]
                sources, rows = block.edges()
                total = torch.zeros(len(own), x.shape[1]).index_add(0, rows, x[sources])
                mean = total / block.in_degrees().clamp(min=1).view(-1, 1)
                wanted = conv.fc_neigh(mean) + conv.fc_self(own)
                x = conv(block, (x, own))
                torch.testing.assert_close(x, wanted, rtol=1e-4, atol=1e-5)
            loss = torch.nn.functional.cross_entropy(x, blocks[-1].dstdata["label"])
            loss.backward()
            self.assertEqual(x.shape, (len(seeds), CLASSES))
        self.assertGreater(float(convs[0].fc_neigh.weight.grad.abs().sum()), 0)

    def test_weights_of_a_sampler(self):
        for _, _, blocks in self.batches(sampling={"algorithm": "LABOR"}):
            for block in blocks:
                self.assertEqual(block.edata["w"].shape, (block.num_edges(),))
                self.assertTrue(bool((block.edata["w"] >= 1).all()))


if __name__ == "__main__":
    unittest.main()
