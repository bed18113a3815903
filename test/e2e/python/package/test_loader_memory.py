"""Batches whose rows are large: past the caches, in memory that is used again."""

import unittest

import torch
from torch_geometric.data import Data

import gnnd

NODES, EDGES, BATCH = 2000, 8000, 500


def graph(columns):
    random = torch.Generator().manual_seed(2)
    return Data(
        x=torch.randn(NODES, columns, generator=random),
        edge_index=torch.randint(0, NODES, (2, EDGES), generator=random),
    )


class LoaderMemoryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = gnnd.local(cpu_devices=4, share_cores=True)
        cls.addClassCleanup(cls.client.close)

    def loader(self, data):
        options = {"batch_size": BATCH, "shuffle": True, "client": self.client}
        return gnnd.loader(data, [8, 8], num_workers=1, **options)

    def test_rows(self):
        # Of whole lines, of whole units of sixteen bytes, and of neither.
        for columns in (1024, 1020, 1023):
            data = graph(columns)
            with self.subTest(columns=columns), self.loader(data) as loader:
                for batch in loader:
                    self.assertGreater(batch.x.nbytes, 4 << 20)
                    self.assertTrue(torch.equal(batch.x, data.x[batch.n_id]))

    def test_memory_that_somebody_has(self):
        data = graph(1024)
        with self.loader(data) as loader:
            kept = [batch for _ in range(3) for batch in loader]
            parts = [batch.x[5:9, 3] for batch in loader]  # Of batches that are gone.
            wanted = [data.x[batch.n_id[5:9], 3] for batch in self.again(data, epoch=3)]
            list(loader)
        for batch in kept:
            self.assertTrue(torch.equal(batch.x, data.x[batch.n_id]))
        for part, expected in zip(parts, wanted, strict=True):
            self.assertTrue(torch.equal(part, expected))

    def test_memory_that_nobody_has(self):
        with self.loader(graph(1024)) as loader:
            places = [batch.x.data_ptr() for _ in range(5) for batch in loader]
        self.assertEqual(len(places), 20)
        self.assertLess(len(set(places)), 6)

    def again(self, data, epoch):
        """The same batches of another loader."""
        with self.loader(data) as loader:
            state = loader.state_dict()
            loader.load_state_dict({**state, "epoch": epoch})
            yield from loader


if __name__ == "__main__":
    unittest.main()
