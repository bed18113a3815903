"""Batches for a loop of one's own: what they hold, and that they are always the same."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

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

    def test_a_state_is_of_one_seeds_graph_and_sampler(self):
        state = self.loader().state_dict()
        self.loader().load_state_dict(state)
        other_mask = self.data.train_mask.clone()
        other_mask[int(other_mask.nonzero()[0])] = False
        other_mask[int((~self.data.train_mask).nonzero()[0])] = True
        self.assertEqual(int(other_mask.sum()), int(self.data.train_mask.sum()))
        for name, options in {
            "seed": {"seed": 2},
            "seeds": {"input_nodes": other_mask},
            "batch_size": {"batch_size": 64},
            "shuffle": {"shuffle": False},
            "sampling": {"sampling": {"algorithm": "LABOR"}},
            "world_size": {"world_size": 2},
        }.items():
            with self.assertRaisesRegex(gnnd.GnndError, rf"another loader; {name}: [^;]*$"):
                self.loader(**options).load_state_dict(state)
        other = self.data.clone()
        other.edge_index[0, 7] = (other.edge_index[0, 7] + 1) % NODES
        loader = gnnd.loader(
            other,
            FANOUTS,
            batch_size=128,
            input_nodes=self.data.train_mask,
            shuffle=True,
            client=self.client,
        )
        self.addCleanup(loader.close)
        with self.assertRaisesRegex(gnnd.GnndError, "another loader; graph: [^;]*$"):
            loader.load_state_dict(state)
        with self.assertRaisesRegex(gnnd.GnndError, "state_dict"):
            loader.load_state_dict({"epoch": 0})

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

    def test_a_rank_has_its_batch_before_the_other_returned_its_own(self):
        whole = list(self.loader())
        options = {"world_size": 2, "prefetch_factor": 0}
        first = self.loader(rank=0, **options)
        second = self.loader(rank=1, job=first.job_id, **options)
        held = threading.Event()
        came = threading.Event()

        def held_up(batch):
            held.set()
            self.assertTrue(came.wait(30))
            return batch

        first._shape._transform = held_up
        with ThreadPoolExecutor(1) as pool:
            one = pool.submit(lambda: next(iter(first)))
            self.assertTrue(held.wait(30))
            # The first rank has not returned batch 0.
            other = next(iter(second))
            came.set()
            self.assertTrue(same(one.result(), whole[0]))
        self.assertTrue(same(other, whole[1]))

    def test_ranks_that_go_on_have_the_batches_that_they_would_have_had(self):
        """Epochs have an odd number of batches, so that the ranks change places with each."""
        whole = self.loader(batch_size=150)
        size = len(whole)
        self.assertEqual(size % 2, 1)
        batches = list(whole) + list(whole)
        loaders = []
        for rank in (0, 1):
            job = loaders[0].job_id if loaders else None
            loaders.append(self.loader(batch_size=150, rank=rank, world_size=2, job=job))
            state = loaders[rank].state_dict()
            loaders[rank].load_state_dict({**state, "epoch": 1, "batch": 2})
        # Each returns the batches that it passes over, so that both have to read.
        with ThreadPoolExecutor(2) as pool:
            parts = list(pool.map(list, loaders))
        for number in range(size + 2, 2 * size):
            self.assertTrue(same(parts[number % 2].pop(0), batches[number]))
        self.assertEqual(parts, [[], []])

    def test_ranks_outlive_their_lender(self):
        whole = list(self.loader(batch_size=32))
        first = self.loader(batch_size=32, rank=0, world_size=2, num_workers=2)
        second = self.loader(batch_size=32, rank=1, world_size=2, job=first.job_id)
        seen = []

        def read(loader):
            for batch in loader:
                seen.append(batch)
                time.sleep(0.01)
                yield batch

        with ThreadPoolExecutor(2) as pool:
            reading = [pool.submit(lambda each=each: list(read(each))) for each in (first, second)]
            while len(seen) < 8:
                time.sleep(0.01)
            os.kill(self.executor(first, "TRAINER"), signal.SIGKILL)
            parts = [each.result() for each in reading]
        for number, batch in enumerate(whole):
            self.assertTrue(same(parts[number % 2].pop(0), batch))
        self.assertEqual(parts, [[], []])

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
            ({"weight_attr": "weight"}, "no such attribute"),
            ({"weight_attr": "y", "sampling": {"algorithm": "LABOR"}}, "KHOP_WEIGHTED"),
            ({"edge_ids": True, "sampling": {"algorithm": "RANDOM_WALK"}}, "walks"),
            ({"edge_ids": True, "form": "layers"}, "pyg"),
        ):
            with self.assertRaises(gnnd.InvalidRequest) as caught:
                gnnd.loader(self.data, FANOUTS, client=self.client, **options)
            self.assertIn(said, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
