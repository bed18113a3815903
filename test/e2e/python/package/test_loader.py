"""Batches for a loop of one's own: what they hold, and that they are always the same."""

import os
import signal
import subprocess
import sys
import time
import unittest

import numpy as np
import torch
from torch_geometric.data import Data

import gnnd
from gnnd.v1 import executor_pb2

NODES, EDGES, CLASSES = 3000, 24000, 5
FANOUTS = [4, 3]


def graph():
    random = torch.Generator().manual_seed(1)
    data = Data(
        x=torch.randn(NODES, 24, generator=random),
        edge_index=torch.randint(0, NODES, (2, EDGES), generator=random),
        y=torch.randint(0, CLASSES, (NODES,), generator=random),
    )
    data.train_mask = torch.rand(NODES, generator=random) < 0.4
    return data


def same(one, other):
    return all(torch.equal(one[key], other[key]) for key in ("x", "y", "n_id", "edge_index"))


class LoaderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = graph()
        cls.others = np.flatnonzero(~cls.data.train_mask.numpy())
        cls.client = gnnd.local(cpu_devices=24, share_cores=True)
        cls.addClassCleanup(cls.client.close)

    def loader(self, fanouts=FANOUTS, **options):
        chosen = {
            "batch_size": 128,
            "input_nodes": self.data.train_mask,
            "shuffle": True,
            "client": self.client,
            "num_workers": 1,
            **options,
        }
        loader = gnnd.loader(self.data, fanouts, **chosen)
        self.addCleanup(loader.close)
        return loader

    def test_a_batch_is_a_sample_of_the_graph(self):
        sources = [[] for _ in range(NODES)]
        for source, node in self.data.edge_index.t().tolist():
            sources[node].append(source)
        seeds = []
        loader = self.loader()
        for batch in loader:
            self.assertTrue(torch.equal(batch.x, self.data.x[batch.n_id]))
            self.assertTrue(torch.equal(batch.y, self.data.y[batch.n_id]))
            self.assertTrue(torch.equal(batch.train_mask, self.data.train_mask[batch.n_id]))
            self.assertEqual(len(batch.n_id.unique()), batch.num_nodes)
            self.assertEqual(sum(batch.num_sampled_nodes), batch.num_nodes)
            self.assertEqual(sum(batch.num_sampled_edges), batch.edge_index.shape[1])
            self.check_rows(batch, sources)
            seeds.append(batch.n_id[: batch.batch_size])
        self.assertEqual(len(seeds), len(loader))
        found = torch.cat(seeds)
        self.assertTrue(torch.equal(found.sort().values, self.data.train_mask.nonzero().flatten()))
        self.assertFalse(torch.equal(found, found.sort().values))

    def check_rows(self, batch, sources):
        """Each node that a hop expanded has its fanout, or all neighbours, drawn once."""
        begin = 0
        for fanout, added in zip(FANOUTS, batch.num_sampled_nodes[:-1], strict=True):
            for row in range(begin, begin + added):
                mine = batch.edge_index[0][batch.edge_index[1] == row]
                drawn = batch.n_id[mine].tolist()
                there = sources[int(batch.n_id[row])]
                self.assertEqual(len(drawn), min(fanout, len(there)))
                for node in set(drawn):
                    self.assertLessEqual(drawn.count(node), there.count(node))
            begin += added

    def test_any_number_of_samplers_draws_the_same(self):
        epochs = [
            [list(loader), list(loader)]
            for loader in (self.loader(num_workers=workers) for workers in (1, 2, 4))
        ]
        for other in epochs[1:]:
            for one_epoch, other_epoch in zip(epochs[0], other, strict=True):
                self.assertEqual(len(one_epoch), len(other_epoch))
                self.assertTrue(all(map(same, one_epoch, other_epoch)))
        self.assertFalse(same(epochs[0][0][0], epochs[0][1][0]))

    def test_killed_executors_change_nothing(self):
        whole = list(self.loader(batch_size=32))
        for role in ("SAMPLER", "TRAINER"):
            loader = self.loader(batch_size=32, num_workers=2)
            batches = []
            for batch in loader:
                batches.append(batch)
                if len(batches) == 5:
                    os.kill(self.executor(loader, role), signal.SIGKILL)
            self.assertEqual(len(batches), len(whole))
            self.assertTrue(all(map(same, batches, whole)))

    def executor(self, loader, role):
        number = executor_pb2.ExecutorRole.Value(f"EXECUTOR_ROLE_{role}")
        job = self.client.job(loader.job_id)
        while True:
            for each in job.refresh().message.progress.executors:
                if each.role == number and each.pid > 0:
                    return each.pid
            time.sleep(0.05)

    def test_it_goes_on_at_a_batch_of_an_epoch(self):
        loader = self.loader()
        list(loader)
        batches = iter(loader)
        next(batches)
        next(batches)
        state = loader.state_dict()
        self.assertEqual((state["epoch"], state["batch"]), (1, 2))
        rest = list(batches) + list(loader)
        other = self.loader()
        other.load_state_dict(state)
        again = list(other) + list(other)
        self.assertEqual(len(rest), len(again))
        self.assertTrue(all(map(same, rest, again)))
        with self.assertRaises(gnnd.GnndError):
            self.loader(seed=2).load_state_dict(state)

    def test_a_loop_that_breaks_begins_the_next_epoch(self):
        whole = self.loader()
        epochs = [list(whole), list(whole)]
        loader = self.loader()
        for batch in loader:
            self.assertTrue(same(batch, epochs[0][0]))
            break
        self.assertTrue(all(map(same, list(loader), epochs[1])))

    def test_ids_without_shuffling_come_in_their_order(self):
        ids = torch.randperm(NODES, generator=torch.Generator().manual_seed(2))[:500]
        loader = self.loader([-1], input_nodes=ids, shuffle=False, drop_last=True)
        seeds = torch.cat([batch.n_id[: batch.batch_size] for batch in loader])
        self.assertTrue(torch.equal(seeds, ids[: 128 * len(loader)]))
        self.assertEqual(len(loader), 3)

    def test_ranks_share_the_batches(self):
        whole = list(self.loader())
        first = self.loader(rank=0, world_size=2)
        second = self.loader(rank=1, world_size=2, job=first.job_id)
        parts = [iter(first), iter(second)]
        shared = [next(parts[number % 2]) for number in range(len(whole))]
        self.assertTrue(all(map(same, shared, whole)))

    def test_other_samplers_and_forms(self):
        labor = next(iter(self.loader(sampling={"algorithm": "LABOR"})))
        self.assertEqual(labor.edge_weight.shape[0], labor.edge_index.shape[1])
        plain = next(iter(self.loader(form="tensors")))
        self.assertTrue(same(plain, next(iter(self.loader()))))

    def test_rows_keep_their_type(self):
        data = graph()
        for kind in (torch.bfloat16, torch.float16, torch.float64, torch.uint8):
            data.x = (graph().x * 10).to(kind)
            loader = gnnd.loader(data, [2], batch_size=64, client=self.client, num_workers=1)
            self.addCleanup(loader.close)
            batch = next(iter(loader))
            self.assertEqual(batch.x.dtype, kind)
            self.assertTrue(torch.equal(batch.x, data.x[batch.n_id]))
        del data.x
        data.num_nodes = NODES
        loader = gnnd.loader(data, [2], batch_size=64, client=self.client, num_workers=1)
        self.addCleanup(loader.close)
        self.assertNotIn("x", next(iter(loader)))

    def test_a_dataset_of_the_daemon(self):
        self.client.import_pyg(self.data, "lent", val=self.others[:5], test=self.others[5:9])
        loader = gnnd.loader("lent", FANOUTS, batch_size=64, client=self.client, num_workers=1)
        self.addCleanup(loader.close)
        batch = next(iter(loader))
        self.assertTrue(torch.equal(batch.x, self.data.x[batch.n_id]))
        self.assertTrue(torch.equal(batch.y, self.data.y[batch.n_id]))

    def test_its_job_is_seen_and_ends_with_it(self):
        loader = self.loader()
        next(iter(loader))
        job = self.client.job(loader.job_id)
        self.assertEqual(job.state, "RUNNING")
        loader.close()
        self.assertEqual(job.wait().state, "SUCCEEDED")

    def test_its_job_ends_with_its_process(self):
        script = (
            "import gnnd, os, sys, time\n"
            "client = gnnd.connect(sys.argv[1])\n"
            "loader = gnnd.loader(sys.argv[2], [2], batch_size=8, client=client, num_workers=1)\n"
            "next(iter(loader))\n"
            "print(loader.job_id, flush=True)\n"
            "time.sleep(600)\n"
        )
        self.client.import_pyg(self.data, "left", val=self.others[:5], test=self.others[5:9])
        address = self.client.connection.address
        with subprocess.Popen(
            [sys.executable, "-c", script, address, "left"],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            job = self.client.job(process.stdout.readline().strip())
            self.assertEqual(job.state, "RUNNING")
            process.kill()
        self.assertEqual(job.wait().state, "SUCCEEDED")

    def test_what_cannot_be_is_refused_by_its_name(self):
        for options, said in (
            ({"num_neighbours": [2]}, "num_neighbors"),
            ({"form": "dgl"}, "blocks"),
            ({"batch_size": 0}, "from 1 on"),
            ({"rank": 2, "world_size": 2}, "0 to 1"),
            ({"input_nodes": torch.tensor([NODES])}, f"{NODES - 1:,}"),
            ({"sampling": {"algorithm": "LABOUR"}}, "LABOR"),
        ):
            with self.assertRaises(gnnd.InvalidRequest) as caught:
                gnnd.loader(self.data, FANOUTS, client=self.client, **options)
            self.assertIn(said, str(caught.exception))

    def test_attributes_of_edges_are_said_to_be_left_out(self):
        data = self.data.clone()
        data.edge_attr = torch.zeros(data.num_edges, 3)
        with (
            self.assertWarnsRegex(UserWarning, "left out of batches: edge_attr"),
            gnnd.loader(data, FANOUTS, client=self.client) as loader,
        ):
            self.assertNotIn("edge_attr", next(iter(loader)))


if __name__ == "__main__":
    unittest.main()
