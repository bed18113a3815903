"""The forms of a loader's batches: each has the same batch."""

import sys
import unittest
from types import SimpleNamespace
from unittest import mock

import torch
from torch_geometric.data import Data

import gnnd

NODES, EDGES, BATCH = 800, 6000, 100
FANOUTS = [4, 3, 2]


def graph():
    random = torch.Generator().manual_seed(6)
    data = Data(
        x=torch.randn(NODES, 7, generator=random),
        edge_index=torch.randint(0, NODES, (2, EDGES), generator=random),
        y=torch.randint(0, 4, (NODES,), generator=random),
    )
    data.edge_attr = torch.randn(EDGES, 2, generator=random)
    return data


class Block:
    """As much of a DGL block as a loader fills in."""

    def __init__(self, edges, num_src_nodes, num_dst_nodes):
        layout, (indptr, src, numbers) = edges
        assert layout == "csc" and len(numbers) == 0
        assert len(indptr) == num_dst_nodes + 1
        self.indptr, self.src = indptr, src
        self.sizes = (num_src_nodes, num_dst_nodes)
        self.srcdata, self.dstdata, self.edata = {}, {}, {}


def stand_in():
    return SimpleNamespace(create_block=Block, NID="_ID", EID="_ID")


def edges_of(indptr, src, nodes):
    """Global ids of a hop's edges."""
    rows = torch.arange(len(indptr) - 1).repeat_interleave(indptr.diff())
    return torch.stack([nodes[src], nodes[rows]])


class LoaderFormsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = graph()
        cls.client = gnnd.local(cpu_devices=4, share_cores=True)
        cls.addClassCleanup(cls.client.close)

    def batches(self, form, data=None, **options):
        with gnnd.loader(
            data or self.data,
            FANOUTS,
            form=form,
            batch_size=BATCH,
            client=self.client,
            num_workers=1,
            **options,
        ) as loader:
            return list(loader)

    def without_edges(self):
        data = self.data.clone()
        del data.edge_attr
        return data

    def test_tensors_are_those_of_a_data(self):
        for one, other in zip(self.batches("tensors"), self.batches("pyg"), strict=True):
            self.assertEqual(set(one) - {"num_nodes"}, set(other.keys()) - {"num_nodes"})
            for key in ("x", "y", "n_id", "edge_index", "e_id", "edge_attr"):
                self.assertTrue(torch.equal(one[key], other[key]))

    def test_layers_are_the_edges_of_each_layer(self):
        data = self.without_edges()
        for sampling in (
            {},
            {"expansion": "ALL"},
            {"algorithm": "LABOR"},
            {"algorithm": "LABOR", "expansion": "ALL"},
        ):
            pairs = zip(
                self.batches("layers", data, sampling=sampling),
                self.batches("pyg", data, sampling=sampling),
                strict=True,
            )
            for layered, batch in pairs:
                self.check_layers(layered, batch, sampling.get("expansion", "NEW"))

    def check_layers(self, layered, batch, expansion):
        self.assertNotIn("edge_index", layered)
        self.assertTrue(torch.equal(layered.n_id, batch.n_id))
        self.assertTrue(torch.equal(layered.x, batch.x))
        hops = len(FANOUTS)
        self.assertEqual(len(layered.adjs), hops)
        for layer, adj in enumerate(layered.adjs):
            hop = hops - 1 - layer
            rows = sum(batch.num_sampled_nodes[: hop + 1])
            sources = sum(batch.num_sampled_nodes[: hop + 2])
            self.assertEqual(adj.shape, (rows, sources))
            end = sum(batch.num_sampled_edges[: hop + 1])
            begin = end - batch.num_sampled_edges[hop] if expansion == "ALL" else 0
            found = edges_of(adj.crow_indices(), adj.col_indices(), batch.n_id)
            wanted = batch.n_id[batch.edge_index[:, begin:end]]
            self.assertTrue(torch.equal(found, wanted))
            self.assertTrue((adj.values() == 1).all())
            if "edge_weight" in batch:
                weights = batch.edge_weight[begin:end]
                self.assertTrue(torch.equal(layered.edge_weights[layer], weights))

    def test_layers_give_what_edges_give(self):
        from torch_geometric.nn import SAGEConv

        convs = torch.nn.ModuleList(SAGEConv(7, 7) for _ in FANOUTS)
        data = self.without_edges()
        for layered, batch in zip(
            self.batches("layers", data), self.batches("pyg", data), strict=True
        ):
            x = layered.x
            for conv, adj in zip(convs, layered.adjs, strict=True):
                x = conv((x, x[: adj.size(0)]), adj).relu()
            whole = batch.x
            for conv in convs:
                whole = conv(whole, batch.edge_index).relu()
            torch.testing.assert_close(x, whole[: batch.batch_size])

    def test_blocks_are_what_dgl_is_given(self):
        with mock.patch.dict(sys.modules, {"dgl": stand_in()}):
            found = self.batches("blocks")
        whole = self.batches("pyg", sampling={"expansion": "ALL"})
        for (inputs, seeds, blocks), batch in zip(found, whole, strict=True):
            self.assertTrue(torch.equal(inputs, batch.n_id))
            self.assertTrue(torch.equal(seeds, batch.n_id[: batch.batch_size]))
            self.assertTrue(torch.equal(blocks[0].srcdata["feat"], batch.x))
            label = blocks[-1].dstdata["label"]
            self.assertTrue(torch.equal(label, batch.y[: batch.batch_size]))
            begin = 0
            for block, count in zip(reversed(blocks), batch.num_sampled_edges, strict=True):
                self.assertEqual(block.sizes[0], len(block.srcdata["_ID"]))
                self.assertTrue(torch.equal(block.srcdata["_ID"], inputs[: block.sizes[0]]))
                self.assertTrue(torch.equal(block.dstdata["_ID"], inputs[: block.sizes[1]]))
                places = slice(begin, begin + count)
                begin += count
                ends = edges_of(block.indptr, block.src, inputs)
                self.assertTrue(torch.equal(ends, batch.n_id[batch.edge_index[:, places]]))
                numbers = block.edata["_ID"]
                self.assertTrue(torch.equal(ends, self.data.edge_index[:, numbers]))
                self.assertTrue(torch.equal(block.edata["edge_attr"], self.data.edge_attr[numbers]))

    def test_what_a_form_needs_is_said(self):
        with mock.patch.dict(sys.modules, {"dgl": None}):
            with self.assertRaisesRegex(gnnd.GnndError, "dgl"):
                self.batches("blocks")

    def test_attributes_of_edges_that_no_batch_can_have_are_said_to_be_left_out(self):
        for options in ({"sampling": {"algorithm": "RANDOM_WALK"}}, {"form": "layers"}):
            with (
                self.assertWarnsRegex(UserWarning, "left out of batches: edge_attr"),
                gnnd.loader(self.data, FANOUTS, client=self.client, **options) as loader,
            ):
                self.assertNotIn("edge_attr", next(iter(loader)))

    def test_a_samplers_weights_beside_those_of_the_data(self):
        data = self.without_edges()
        data.edge_weight = torch.rand(EDGES)
        for batch in self.batches("pyg", data, sampling={"algorithm": "LABOR"}):
            self.assertTrue(torch.equal(batch.edge_weight, data.edge_weight[batch.e_id]))
            self.assertTrue((batch.sampler_weight >= 1).all())


if __name__ == "__main__":
    unittest.main()
