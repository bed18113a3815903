"""Batches of several types for a loop of one's own, as NeighborLoader names what they have."""

import os
import signal
import time
import unittest

import torch
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv

import gnnd
from gnnd.v1 import executor_pb2

AUTHORS, PAPERS, VENUES, CLASSES = 300, 800, 16, 4
WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")
WROTE, HAS = ("paper", "rev_writes", "author"), ("venue", "has", "paper")
FANOUTS = [4, 3]


def graph():
    """Papers whose classes tell their authors' features, venues without any, and lonely nodes."""
    random = torch.Generator().manual_seed(3)
    data = HeteroData()
    kinds = torch.randint(0, CLASSES, (AUTHORS,), generator=random)
    labels = torch.randint(0, CLASSES, (PAPERS,), generator=random)
    data["author"].x = torch.eye(CLASSES)[kinds]
    data["paper"].x = torch.randn(PAPERS, 6, generator=random)
    data["paper"].y = labels
    data["paper"].train_mask = torch.rand(PAPERS, generator=random) < 0.5
    data["venue"].num_nodes = VENUES
    data["lonely"].x = torch.ones(5, 2)

    def ends(sources, count):
        pairs = (sources, PAPERS)
        return torch.stack([torch.randint(0, n, (count,), generator=random) for n in pairs])

    drawn = ends(AUTHORS, 12000)
    data[WRITES].edge_index = drawn[:, kinds[drawn[0]] == labels[drawn[1]]]
    data[WROTE].edge_index = data[WRITES].edge_index.flip(0)
    data[CITES].edge_index = ends(PAPERS, 4000)
    data[CITES].edge_attr = torch.randn(4000, 2, generator=random)
    data[HAS].edge_index = ends(VENUES, 900)
    return data


def same(one, other):
    nodes = all(torch.equal(one[kind].n_id, other[kind].n_id) for kind in one.node_types)
    rows = torch.equal(one["paper"].x, other["paper"].x)
    return (
        nodes
        and rows
        and all(
            torch.equal(one[relation].edge_index, other[relation].edge_index)
            for relation in one.edge_types
        )
    )


class TypedLoaderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = graph()
        cls.client = gnnd.local(cpu_devices=12, share_cores=True)
        cls.addClassCleanup(cls.client.close)

    def loader(self, fanouts=FANOUTS, **options):
        chosen = {
            "batch_size": 64,
            "input_nodes": ("paper", self.data["paper"].train_mask),
            "shuffle": True,
            "client": self.client,
            "num_workers": 1,
            **options,
        }
        loader = gnnd.loader(self.data, fanouts, **chosen)
        self.addCleanup(loader.close)
        return loader

    def test_a_batch_is_a_sample_of_the_graph(self):
        data, seeds, places = self.data, [], []
        given = data["paper"].train_mask.nonzero().flatten()
        loader = self.loader()
        for batch in loader:
            self.assertEqual(set(batch.node_types), set(data.node_types))
            self.assertEqual(set(batch.edge_types), set(data.edge_types))
            for kind in ("author", "paper", "lonely"):
                self.assertTrue(torch.equal(batch[kind].x, data[kind].x[batch[kind].n_id]))
            paper = batch["paper"]
            self.assertTrue(torch.equal(paper.y, data["paper"].y[paper.n_id]))
            self.assertEqual(batch["lonely"].num_nodes, 0)
            for kind in batch.node_types:
                store = batch[kind]
                self.assertEqual(len(store.n_id.unique()), store.num_nodes)
                self.assertEqual(sum(store.num_sampled_nodes), store.num_nodes)
            for relation in batch.edge_types:
                self.check_edges(batch, relation, FANOUTS)
            seeds.append(paper.n_id[: paper.batch_size])
            places.append(paper.input_id)
        self.assertEqual(len(seeds), len(loader))
        found = torch.cat(seeds)
        self.assertTrue(torch.equal(given[torch.cat(places)], found))
        self.assertTrue(torch.equal(found.sort().values, given))
        self.assertFalse(torch.equal(found, given))

    def check_edges(self, batch, relation, fanouts):
        """Edges are the graph's, and each row has its fanout or all that there are."""
        source, _, target = relation
        store, graph_edges = batch[relation], self.data[relation].edge_index
        ends = [
            batch[kind].n_id[row]
            for kind, row in zip((source, target), store.edge_index, strict=True)
        ]
        self.assertTrue(torch.equal(torch.stack(ends), graph_edges[:, store.e_id]))
        self.assertEqual(len(store.e_id.unique()), len(store.e_id))
        if relation == CITES:
            self.assertTrue(torch.equal(store.edge_attr, self.data[CITES].edge_attr[store.e_id]))
        self.assertEqual(sum(store.num_sampled_edges), store.edge_index.shape[1])
        # Of edges between the same two nodes one is drawn.
        there_are = graph_edges.unique(dim=1)
        degrees = torch.bincount(there_are[1], minlength=self.data[target].num_nodes)
        drawn = torch.bincount(store.edge_index[1], minlength=batch[target].num_nodes)
        begin = 0
        for fanout, count in zip(fanouts, batch[target].num_sampled_nodes[:-1], strict=True):
            rows = slice(begin, begin + count)
            there = degrees[batch[target].n_id[rows]]
            expected = there if fanout < 0 else there.clamp(max=fanout)
            self.assertTrue(torch.equal(drawn[rows], expected))
            begin += count
        self.assertEqual(int(drawn[begin:].sum()), 0)

    def test_each_relation_may_have_numbers_of_its_own(self):
        fanouts = {WRITES: [3, 2], CITES: [-1, 2], HAS: [0, 0], "*": [2, 2]}
        for batch in self.loader(fanouts):
            for relation in (WRITES, CITES, HAS):
                self.check_edges(batch, relation, fanouts[relation])
            self.check_edges(batch, WROTE, [2, 2])

    def test_any_number_of_samplers_draws_the_same_and_a_killed_one_changes_nothing(self):
        whole = list(self.loader(batch_size=16))
        loader = self.loader(batch_size=16, num_workers=2)
        self.assertTrue(all(map(same, list(loader), whole)))
        again = list(loader)
        self.assertFalse(same(again[0], whole[0]))
        other = self.loader(batch_size=16, num_workers=2)
        batches = []
        for batch in other:
            batches.append(batch)
            if len(batches) == 5:
                os.kill(self.sampler(other), signal.SIGKILL)
        self.assertEqual(len(batches), len(whole))
        self.assertTrue(all(map(same, batches, whole)))

    def sampler(self, loader):
        number = executor_pb2.EXECUTOR_ROLE_SAMPLER
        while True:
            for each in self.client.job(loader.job_id).message.progress.executors:
                if each.role == number and each.pid > 0:
                    return each.pid
            time.sleep(0.05)

    def test_it_goes_on_at_a_batch_of_an_epoch(self):
        loader = self.loader()
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        rest = list(batches)
        other = self.loader()
        other.load_state_dict(state)
        again = list(other)
        self.assertEqual(len(again), len(rest))
        self.assertTrue(all(map(same, rest, again)))
        with self.assertRaisesRegex(gnnd.GnndError, "relations"):
            self.loader({"*": FANOUTS}, input_nodes="author").load_state_dict(state)

    def test_seeds_may_be_of_any_type(self):
        batch = next(iter(self.loader(input_nodes="author", shuffle=False)))
        self.assertTrue(torch.equal(batch["author"].n_id[:64], torch.arange(64)))
        self.assertEqual(batch["author"].batch_size, 64)
        self.assertNotIn("batch_size", batch["paper"])

    def test_hops_that_expand_all_nodes(self):
        for batch in self.loader(sampling={"expansion": "ALL"}, edge_ids=True):
            for relation in batch.edge_types:
                source, _, target = relation
                store = batch[relation]
                ends = [
                    batch[kind].n_id[row]
                    for kind, row in zip((source, target), store.edge_index, strict=True)
                ]
                edges = self.data[relation].edge_index[:, store.e_id]
                self.assertTrue(torch.equal(torch.stack(ends), edges))
                self.assertEqual(sum(store.num_sampled_edges), store.edge_index.shape[1])

    def test_a_model_of_the_users_learns(self):
        torch.manual_seed(1)
        convs = {
            WRITES: SAGEConv((CLASSES, 6), 16),
            CITES: SAGEConv((6, 6), 16),
        }
        conv, head = HeteroConv(convs), torch.nn.Linear(16, CLASSES)
        steps = torch.optim.Adam([*conv.parameters(), *head.parameters()], lr=0.02)
        loader = self.loader([8])
        accuracy = 0.0
        for _ in range(4):
            right = 0
            for batch in loader:
                kept = {key: edges for key, edges in batch.edge_index_dict.items() if key in convs}
                rows = {kind: batch[kind].x for kind in ("author", "paper")}
                paper = batch["paper"]
                logits = head(conv(rows, kept)["paper"].relu())[: paper.batch_size]
                labels = paper.y[: paper.batch_size]
                steps.zero_grad()
                torch.nn.functional.cross_entropy(logits, labels).backward()
                steps.step()
                right += int((logits.argmax(1) == labels).sum())
            accuracy = right / int(self.data["paper"].train_mask.sum())
        self.assertGreater(accuracy, 0.8)

    def test_what_is_not_there_is_refused_by_its_argument(self):
        cases = [
            ({"input_nodes": None}, "input_nodes: None: expected .type, mask or ids"),
            ({"input_nodes": "papers"}, "input_nodes: .*paper"),
            ({"input_nodes": ("paper", [PAPERS])}, "input_nodes: .* expected ids from 0 to 799"),
            ({"form": "blocks"}, "form: .*several types"),
            ({"weight_attr": "edge_attr"}, "weight_attr: .*several types"),
            ({"sampling": {"algorithm": "LABOR"}}, "sampling.algorithm: .*several types"),
            ({"time_attr": "time"}, "time_attr: "),
            ({"fanouts": {WRITES: [2]}}, "num_neighbors: has none of paper__cites__paper"),
            ({"fanouts": {"*": [2], ("a", "b", "c"): [2]}}, "num_neighbors: .*a__b__c"),
        ]
        for options, said in cases:
            with self.subTest(options=options), self.assertRaises(gnnd.InvalidRequest) as caught:
                self.loader(**options)
            self.assertRegex("\n".join(map(str, caught.exception.violations)), said)
        with self.assertRaisesRegex(gnnd.InvalidRequest, "links of several types"):
            gnnd.link_loader(self.data, FANOUTS)
        bare = graph()
        del bare["paper"].y, bare["paper"].train_mask
        self.client.import_pyg(bare, "several")
        with self.assertRaisesRegex(gnnd.InvalidRequest, "data: several has several types"):
            gnnd.loader("several", FANOUTS, client=self.client)


if __name__ == "__main__":
    unittest.main()
