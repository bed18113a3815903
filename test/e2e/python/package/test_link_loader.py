"""Batches of links for a loop of one's own: what they hold, and that they are always the same."""

import os
import signal
import time
import unittest

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.sampler import NegativeSampling

import gnnd
from gnnd.v1 import executor_pb2

NODES, EDGES, LINKS, SIZE = 900, 6000, 700, 128
FANOUTS = [4, 3]
NEGATIVE = 22
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def graph():
    random = torch.Generator().manual_seed(1)
    one_way = torch.randint(0, NODES, (2, EDGES // 2), generator=random)
    return Data(
        x=torch.randn(NODES, 24, generator=random),
        edge_index=torch.cat([one_way, one_way.flip(0)], 1),
    )


def philox(key, counter):
    """Philox4x32-10 of counters [4] of arrays, by its published definition."""
    c = [np.asarray(each, np.uint64) for each in counter]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [
            (p1 >> HALF) ^ c[1] ^ np.uint64(k[0]),
            p1 & LOW,
            (p0 >> HALF) ^ c[3] ^ np.uint64(k[1]),
            p0 & LOW,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def negatives_of(seed, epoch, batch, pairs, per_pair):
    """The uniform negatives of native/core/draw/negatives.h, [pairs, per_pair]."""
    rows, columns = np.meshgrid(np.arange(pairs), np.arange(per_pair), indexing="ij")
    zeros = np.zeros_like(rows)
    words = philox(seed, [rows, columns // 2, zeros + batch, zeros + (NEGATIVE << 24 | epoch)])
    is_odd = columns % 2 == 1
    low, high = np.where(is_odd, words[2], words[0]), np.where(is_odd, words[3], words[1])
    number = np.uint64(NODES)
    return ((high * number + (low * number >> HALF)) >> HALF).astype(np.int64)


def same(one, other):
    names = ("x", "n_id", "edge_index", "edge_label_index", "edge_label", "input_id")
    return all(torch.equal(one[name], other[name]) for name in names)


class LinkLoaderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = graph()
        cls.links = cls.data.edge_index[:, :LINKS]
        cls.client = gnnd.local(cpu_devices=24, share_cores=True)
        cls.addClassCleanup(cls.client.close)

    def loader(self, **options):
        chosen = {
            "edge_label_index": self.links,
            "neg_sampling": "binary",
            "batch_size": SIZE,
            "shuffle": True,
            "client": self.client,
            "num_workers": 1,
            **options,
        }
        loader = gnnd.link_loader(self.data, FANOUTS, **chosen)
        self.addCleanup(loader.close)
        return loader

    def check_links(self, batch, ends):
        """These columns of local ends are the links that the batch names."""
        self.assertTrue(torch.equal(batch.n_id[ends], self.links[:, batch.input_id]))
        self.assertLess(int(ends.max()), batch.num_sampled_nodes[0])

    def test_links_and_negatives_are_what_numpy_recomputes(self):
        for amount in (1, 2, 1.5, 0.25):
            loader = self.loader(neg_sampling=("binary", amount), seed=5)
            for epoch in range(2):
                seen = []
                for number, batch in enumerate(loader):
                    pairs = len(batch.input_id)
                    wanted = int(np.ceil(pairs * amount))
                    self.check_links(batch, batch.edge_label_index[:, :pairs])
                    drawn = negatives_of(5, epoch, number, pairs, 2 * int(np.ceil(amount)))
                    expected = drawn.reshape(-1, 2)[:wanted].T
                    found = batch.n_id[batch.edge_label_index[:, pairs:]].numpy()
                    np.testing.assert_array_equal(found, expected)
                    labels = torch.cat([torch.ones(pairs), torch.zeros(wanted)])
                    self.assertTrue(torch.equal(batch.edge_label, labels))
                    self.assertTrue(torch.equal(batch.x, self.data.x[batch.n_id]))
                    seen.append(batch.input_id)
                self.assertEqual(len(seen), len(loader))
                self.assertEqual(torch.cat(seen).sort().values.tolist(), list(range(LINKS)))
                self.assertNotEqual(torch.cat(seen).tolist(), list(range(LINKS)))

    def test_triplets(self):
        for amount in (1, 3):
            asked = NegativeSampling("triplet", amount)
            for number, batch in enumerate(self.loader(neg_sampling=asked, seed=9)):
                pairs = len(batch.input_id)
                self.check_links(batch, torch.stack([batch.src_index, batch.dst_pos_index]))
                expected = negatives_of(9, 0, number, pairs, amount)
                found = batch.n_id[batch.dst_neg_index].numpy()
                np.testing.assert_array_equal(
                    found, expected.squeeze(-1) if amount == 1 else expected
                )
                self.assertNotIn("edge_label", batch)

    def test_labels_count_up_beside_negatives_alone(self):
        labels = torch.arange(LINKS) % 3
        for batch in self.loader(edge_label=labels):
            own = len(batch.input_id)
            self.assertTrue(torch.equal(batch.edge_label[:own], labels[batch.input_id] + 1))
            self.assertEqual(int(batch.edge_label[own:].abs().sum()), 0)
        for batch in self.loader(edge_label=labels + 1):
            own = len(batch.input_id)
            self.assertTrue(torch.equal(batch.edge_label[:own], labels[batch.input_id] + 1))
        for batch in self.loader(edge_label=labels, neg_sampling=None):
            self.assertTrue(torch.equal(batch.edge_label, labels[batch.input_id]))
            self.check_links(batch, batch.edge_label_index)

    def test_without_shuffling_links_come_in_their_order(self):
        loader = self.loader(shuffle=False, neg_sampling=None)
        for _ in range(2):
            found = torch.cat([batch.input_id for batch in loader])
            self.assertEqual(found.tolist(), list(range(LINKS)))
        self.assertEqual(len(self.loader(shuffle=False, edge_label_index=None)), -(-EDGES // SIZE))

    def test_a_batch_has_its_own_links_as_edges_only_when_asked(self):
        for excluded in (True, False):
            found = 0
            for batch in self.loader(exclude_links=excluded, neg_sampling=None):
                pairs = batch.n_id[batch.edge_label_index]
                own = {tuple(pair) for each in (pairs, pairs.flip(0)) for pair in each.t().tolist()}
                edges = batch.n_id[batch.edge_index].t().tolist()
                found += sum(tuple(edge) in own for edge in edges)
            self.assertEqual(found == 0, excluded)

    def test_any_number_of_samplers_draws_the_same(self):
        epochs = [list(self.loader(num_workers=workers)) for workers in (1, 2, 4)]
        for other in epochs[1:]:
            self.assertEqual(len(epochs[0]), len(other))
            self.assertTrue(all(map(same, epochs[0], other)))

    def test_a_killed_sampler_changes_nothing(self):
        whole = list(self.loader(batch_size=16))
        loader = self.loader(batch_size=16, num_workers=2)
        batches = []
        for batch in loader:
            batches.append(batch)
            if len(batches) == 5:
                os.kill(self.sampler_of(loader), signal.SIGKILL)
        self.assertEqual(len(batches), len(whole))
        self.assertTrue(all(map(same, batches, whole)))

    def sampler_of(self, loader):
        role = executor_pb2.ExecutorRole.EXECUTOR_ROLE_SAMPLER
        job = self.client.job(loader.job_id)
        while True:
            for each in job.refresh().message.progress.executors:
                if each.role == role and each.pid > 0:
                    return each.pid
            time.sleep(0.05)

    def test_it_goes_on_at_a_batch_of_an_epoch(self):
        loader = self.loader()
        list(loader)
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        rest = list(batches) + list(loader)
        other = self.loader()
        other.load_state_dict(state)
        again = list(other) + list(other)
        self.assertEqual(len(rest), len(again))
        self.assertTrue(all(map(same, rest, again)))
        for options in ({"exclude_links": False}, {"neg_sampling": "triplet"}):
            with self.assertRaises(gnnd.GnndError) as caught:
                self.loader(**options).load_state_dict(state)
            self.assertIn(next(iter(options)), str(caught.exception))

    def test_ranks_share_the_batches(self):
        whole = list(self.loader())
        first = self.loader(rank=0, world_size=2, prefetch_factor=2)
        other = self.loader(rank=1, world_size=2, prefetch_factor=2, job=first.job_id)
        one, two = iter(first), iter(other)
        shared = [next((one, two)[number % 2]) for number in range(len(whole))]
        self.assertTrue(all(map(same, whole, shared)))

    def test_tensors_and_layers_have_the_same_links(self):
        whole = next(iter(self.loader()))
        for form in ("tensors", "layers"):
            batch = next(iter(self.loader(form=form)))
            for name in ("n_id", "edge_label_index", "edge_label", "input_id"):
                self.assertTrue(torch.equal(batch[name], whole[name]))

    def test_what_cannot_be_is_refused_by_its_name(self):
        for options, said in (
            ({"neg_sampling": "tripled"}, "triplet"),
            ({"neg_sampling": ("binary", 0)}, "more than 0"),
            ({"neg_sampling": ("triplet", 1.5)}, "whole number"),
            ({"neg_sampling": ("binary", 513)}, "512"),
            ({"neg_sampling": {"mode": "binary", "dst_weight": torch.ones(NODES)}}, "dst_weight"),
            ({"neg_sampling": "triplet", "edge_label": torch.ones(LINKS)}, "edge_label"),
            ({"edge_label": torch.ones(3)}, "3 labels"),
            ({"edge_label_index": torch.tensor([[0], [NODES]])}, f"{NODES - 1:,}"),
            ({"edge_label_index": torch.zeros(2, 0, dtype=torch.int64)}, "1 link"),
            ({"edge_label_index": (("a", "to", "b"), self.links)}, "one relation"),
            ({"edge_label_time": torch.ones(LINKS)}, "edge_label_time"),
            ({"form": "blocks"}, "tensors"),
            ({"input_nodes": self.links[0]}, "edge_label_index"),
            ({"batch_sizes": 3}, "batch_size"),
        ):
            with self.assertRaises(gnnd.InvalidRequest) as caught:
                self.loader(**options)
            self.assertIn(said, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
