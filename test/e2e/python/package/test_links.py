"""Jobs of links, on the daemon of GNND_ADDRESS. usage: test_links.py, with CORA, a .npz file."""

import os
import pathlib
import tempfile
import unittest

import numpy as np

import gnnd

CORA = pathlib.Path(os.environ["CORA"])
ARRAYS = dict(np.load(CORA))
MODEL = gnnd.GraphSAGE(hidden=16, layers=2, dropout=0.0)


class Links(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(gnnd.connect())
        cls.data = cls.client.import_arrays("cited", **ARRAYS)

    def test_are_learnt_from_a_graph_to_metrics(self):
        split = {"validation": 0.05, "test": 0.1, "random_seed": 7}
        task = gnnd.Links(split=split, head="DOT", loss="BCE", negatives=1, evaluation=100)
        job = self.client.submit("cited", MODEL, fanouts=[10, 10], epochs=4, task=task)
        job.wait()
        metrics = job.result.metrics
        self.assertEqual(next(iter(metrics)), "mrr@100")
        self.assertLessEqual({"roc_auc", "average_precision", "hits@10@100"}, set(metrics))
        self.assertTrue(all(0 < value <= 1 for value in metrics.values()), metrics)
        self.assertEqual(job.result.parameters_sha256, job.message.result.parameters_sha256)
        self.assertRegex(repr(job.result), r"mrr@100 0\.\d{4}")
        self.assertEqual(job.task, "LINKS")
        record = job.records()[-1]
        self.assertIn("val_mrr@100", record)
        self.assertNotIn("train_accuracy", record)

    def test_of_a_folder_are_its_own(self):
        random = np.random.default_rng(3)
        ends = np.unique(np.sort(random.integers(0, 2708, (2000, 2)), axis=1), axis=0)
        ends = ends[ends[:, 0] < ends[:, 1]]
        known = set(map(tuple, self.edges()))
        links = np.array([pair for pair in ends.tolist() if tuple(pair) not in known])
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            for name in ("indptr", "indices", "features"):
                np.save(folder / f"{name}.npy", ARRAYS[name])
            (folder / "links").mkdir()
            np.save(folder / "links/train.npy", np.ascontiguousarray(links[:800].T))
            np.save(folder / "links/val.npy", links[800:900])
            np.save(folder / "links/test.npy", links[900:1000])
            for side in ("val", "test"):
                np.save(folder / f"links/{side}_negatives.npy", random.integers(0, 2708, (100, 20)))
            self.client.import_path(folder, "own-links")
        job = self.client.submit("own-links", MODEL, fanouts=[5, 5], epochs=2, task=gnnd.Links())
        metrics = job.wait().result.metrics
        self.assertEqual(job.spec["links"]["targets"], "DATASET")
        self.assertIn("mrr@20", metrics)

    @staticmethod
    def edges():
        targets = np.repeat(np.arange(2708), np.diff(ARRAYS["indptr"]))
        return np.stack([ARRAYS["indices"], targets], axis=1).tolist()

    def test_are_asked_for_by_a_value(self):
        with self.assertRaises(gnnd.InvalidRequest) as caught:
            gnnd.Links(splits={}, heads="DOT")
        fields = {each.field for each in caught.exception.violations}
        self.assertEqual(fields, {"splits", "heads"})
        with self.assertRaises(gnnd.InvalidRequest) as caught:
            self.client.submit(
                "cited",
                MODEL,
                fanouts=[5, 5],
                epochs=1,
                task=gnnd.Links(negatives=0, split={"validation": 2}, temperature=3),
            )
        fields = {each.field for each in caught.exception.violations}
        wanted = {"links.negatives.count", "links.split.validation", "links.temperature"}
        self.assertEqual(fields, {f"spec.{name}" for name in wanted})


if __name__ == "__main__":
    unittest.main()
