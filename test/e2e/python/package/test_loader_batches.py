"""Batches of a loader beside the graph that they are drawn from, by every sampler."""

import itertools
import unittest

import torch
from torch_geometric.data import Data

import gnnd

NODES, EDGES, BATCH = 600, 9000, 64
WALKS, LENGTH, VISITED = 6, 3, 4


def graph():
    """A graph with loops, with edges that come twice, nodes without any, and weights of 0."""
    random = torch.Generator().manual_seed(3)
    pairs = torch.randint(0, NODES, (2, EDGES), generator=random)
    twice = pairs[:, torch.randint(0, EDGES, (EDGES // 3,), generator=random)]
    pairs = torch.cat([pairs, twice], dim=1)
    pairs = pairs[:, pairs[1] % 11 != 0]
    data = Data(x=torch.randn(NODES, 5, generator=random), edge_index=pairs)
    data.edge_attr = torch.randn(pairs.shape[1], 3, generator=random)
    data.weight = torch.rand(pairs.shape[1], generator=random) + 0.1
    data.weight[torch.rand(pairs.shape[1], generator=random) < 0.2] = 0
    return data


class LoaderBatchesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = graph()
        cls.sources, cls.targets = cls.data.edge_index
        cls.degrees = torch.bincount(cls.targets, minlength=NODES)
        weighty = cls.targets[cls.data.weight > 0]
        cls.weighty_degrees = torch.bincount(weighty, minlength=NODES)
        cls.seeds = torch.randperm(NODES, generator=torch.Generator().manual_seed(4))[:200]
        cls.client = gnnd.local(cpu_devices=4, share_cores=True)
        cls.addClassCleanup(cls.client.close)

    def batches(self, fanouts, data=None, **options):
        chosen = {"input_nodes": self.seeds, "batch_size": BATCH, "client": self.client, **options}
        with gnnd.loader(data or self.data, fanouts, num_workers=1, seed=5, **chosen) as loader:
            found = list(loader)
        self.assertEqual(len(found), 4)
        for number, batch in enumerate(found):
            expected = self.seeds[number * BATCH : (number + 1) * BATCH]
            self.assertTrue(torch.equal(batch.n_id[: batch.batch_size], expected))
        return found

    def rows_of(self, batch, expansion):
        """Of each hop: its rows as global ids, how many edges each has, and the edges' places."""
        begin, nodes = 0, 0
        last = batch.num_sampled_nodes[:-1]
        for added, count in zip(last, batch.num_sampled_edges, strict=True):
            first = nodes if expansion == "NEW" else 0
            nodes += added
            places = slice(begin, begin + count)
            begin += count
            rows = batch.edge_index[1, places]
            self.assertTrue(torch.equal(rows, rows.sort().values))
            self.assertTrue(count == 0 or first <= int(rows.min()) <= int(rows.max()) < nodes)
            counts = torch.bincount(rows - first, minlength=nodes - first)
            yield batch.n_id[first:nodes], counts, places
        self.assertEqual(begin, batch.edge_index.shape[1])

    def check_nodes(self, batch):
        self.assertEqual(len(batch.n_id.unique()), batch.num_nodes)
        self.assertEqual(sum(batch.num_sampled_nodes), batch.num_nodes)
        self.assertTrue(torch.equal(batch.x, self.data.x[batch.n_id]))
        drawn = batch.edge_index[0].unique()
        self.assertTrue(torch.isin(torch.arange(batch.batch_size, batch.num_nodes), drawn).all())

    def check_edges(self, batch, expansion, replace):
        """Edges are the graph's, with what they carry, and each row draws each at most once."""
        ends = torch.stack([self.sources[batch.e_id], self.targets[batch.e_id]])
        self.assertTrue(torch.equal(batch.n_id[batch.edge_index], ends))
        self.assertTrue(torch.equal(batch.edge_attr, self.data.edge_attr[batch.e_id]))
        if not replace:
            for _, _, places in self.rows_of(batch, expansion):
                self.assertEqual(len(batch.e_id[places].unique()), places.stop - places.start)

    def expected(self, rows, fanout, algorithm, replace):
        there = (self.weighty_degrees if algorithm == "KHOP_WEIGHTED" else self.degrees)[rows]
        if fanout < 0:
            return there
        return (there > 0) * fanout if replace else there.clamp(max=fanout)

    def test_neighbours_by_every_algorithm(self):
        for algorithm, expansion, replace, fanouts in itertools.product(
            ("KHOP_UNIFORM", "KHOP_WEIGHTED"),
            ("NEW", "ALL"),
            (False, True),
            ([4, 3], [-1, 2], [20]),
        ):
            with self.subTest(algorithm=algorithm, expansion=expansion, replace=replace):
                weights = {"weight_attr": "weight"} if algorithm == "KHOP_WEIGHTED" else {}
                sampling = {"expansion": expansion}
                for batch in self.batches(fanouts, sampling=sampling, replace=replace, **weights):
                    self.check_nodes(batch)
                    # With fanout -1 a row is taken whole, whatever replace says.
                    self.check_edges(batch, expansion, replace)
                    if weights:
                        self.assertTrue((self.data.weight[batch.e_id] > 0).all())
                    hops = self.rows_of(batch, expansion)
                    for fanout, (rows, counts, _) in zip(fanouts, hops, strict=True):
                        wanted = self.expected(rows, fanout, algorithm, replace)
                        self.assertTrue(torch.equal(counts, wanted))

    def test_neighbours_by_labor(self):
        fanouts = [4, 3]
        for expansion in ("NEW", "ALL"):
            sampling = {"algorithm": "LABOR", "expansion": expansion}
            drawn = wanted = 0
            for batch in self.batches(fanouts, sampling=sampling):
                self.check_nodes(batch)
                self.check_edges(batch, expansion, False)
                for fanout, (rows, counts, places) in zip(
                    fanouts, self.rows_of(batch, expansion), strict=True
                ):
                    there = self.degrees[rows]
                    self.assertTrue((counts <= there).all())
                    self.assertTrue(torch.equal(counts[there <= fanout], there[there <= fanout]))
                    drawn += int(counts.sum())
                    wanted += int(there.clamp(max=fanout).sum())
                    shares = (there / fanout).clamp(min=1).repeat_interleave(counts)
                    torch.testing.assert_close(batch.edge_weight[places], shares.float())
            self.assertLess(abs(drawn / wanted - 1), 0.1)

    def test_walks_visit_what_can_be_reached(self):
        reached = torch.zeros(NODES, NODES, dtype=torch.bool)
        one_step = torch.zeros(NODES, NODES)
        one_step[self.targets, self.sources] = 1
        step = torch.eye(NODES)
        for _ in range(LENGTH):
            step = (step @ one_step).clamp(max=1)
            reached |= step > 0
        for expansion in ("NEW", "ALL"):
            sampling = {
                "algorithm": "RANDOM_WALK",
                "expansion": expansion,
                "walk": {"walks": WALKS, "length": LENGTH, "neighbors": VISITED},
            }
            data = Data(x=self.data.x, edge_index=self.data.edge_index)
            for batch in self.batches([1, 1], data=data, sampling=sampling):
                self.check_nodes(batch)
                self.assertNotIn("e_id", batch)
                for rows, counts, places in self.rows_of(batch, expansion):
                    self.assertLessEqual(int(counts.max()), VISITED)
                    self.assertTrue((counts[self.degrees[rows] > 0] > 0).all())
                    ends = batch.n_id[batch.edge_index[:, places]]
                    self.assertTrue(reached[ends[1], ends[0]].all())
                    visits = batch.edge_weight[places]
                    self.assertTrue((visits >= 1).all())
                    self.assertLessEqual(int(visits.max()), WALKS * LENGTH)

    def test_of_edges_that_come_twice_each_is_as_likely(self):
        """A row with three edges from one node and one from another, of which one is drawn."""
        data = Data(x=torch.zeros(102, 1))
        rows = torch.arange(2, 102)
        data.edge_index = torch.cat(
            [torch.stack([torch.full_like(rows, each), rows]) for each in (0, 1, 0, 0)], dim=1
        )
        data.edge_attr = torch.arange(400.0).view(-1, 1)
        found = torch.zeros(4)
        with gnnd.loader(
            data, [1], batch_size=50, input_nodes=rows, client=self.client, num_workers=1
        ) as loader:
            for _ in range(10):
                for batch in loader:
                    found += torch.bincount(batch.e_id // 100, minlength=4)
        self.assertEqual(int(found.sum()), 1000)
        # Four standard deviations of a binomial distribution are 55.
        self.assertTrue(((found - 250).abs() < 55).all(), found)

    def test_numbers_of_edges_of_a_dataset(self):
        held = set(self.seeds.tolist())
        others = [node for node in range(NODES) if node not in held]
        options = {"train": self.seeds, "val": others[:5], "test": others[5:9]}
        options["labels"] = torch.arange(NODES) % 2
        dataset = self.client.import_arrays(
            "numbered", features=self.data.x, edge_index=self.data.edge_index, **options
        )
        order = self.targets.argsort(stable=True)
        with gnnd.loader(
            "numbered", [3, 2], batch_size=BATCH, edge_ids=True, client=self.client, num_workers=1
        ) as loader:
            for batch in loader:
                ends = self.data.edge_index[:, order[batch.e_id]]
                self.assertTrue(torch.equal(batch.n_id[batch.edge_index], ends))
        self.assertEqual(dataset.num_edges, len(order))

    def test_an_adjacency_in_place_of_edges(self):
        values = torch.ones(len(self.sources))
        size = (NODES, NODES)
        adjacency = torch.sparse_coo_tensor(self.data.edge_index.flip(0), values, size).coalesce()
        data = Data(x=self.data.x, adj_t=adjacency.to_sparse_csr())
        targets, sources = adjacency.indices()
        for batch in self.batches([3, 2], data=data, edge_ids=True):
            ends = torch.stack([sources[batch.e_id], targets[batch.e_id]])
            self.assertTrue(torch.equal(batch.n_id[batch.edge_index], ends))


if __name__ == "__main__":
    unittest.main()
