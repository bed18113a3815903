"""Jobs of links, on the daemon of GNND_ADDRESS. usage: test_links.py, with CORA, a .npz file."""

import os
import pathlib
import tempfile
import unittest
from types import SimpleNamespace

import numpy as np

import gnnd

CORA = pathlib.Path(os.environ["CORA"])
ARRAYS = dict(np.load(CORA))
MODEL = gnnd.GraphSAGE(hidden=16, layers=2, dropout=0.0)


class OgbLinks:
    """What `LinkPropPredDataset` has of a dataset."""

    def __init__(self, graph, split):
        self.graph, self.split = graph, split

    def __getitem__(self, _):
        return self.graph

    def get_edge_split(self):
        return self.split


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

    def test_are_not_learnt_where_walks_are(self):
        walks = {"length": 3, "window": 2, "per_node": 1}
        task = gnnd.Links(positives="WALKS", walks=walks, evaluation=100)
        job = self.client.submit("cited", MODEL, fanouts=[5, 5], epochs=2, task=task)
        self.assertIn("roc_auc", job.wait().result.metrics)
        nodes = len(ARRAYS["features"])
        self.assertLessEqual(job.message.progress.batches_per_epoch, -(-nodes * 5 // 1024))
        self.assertEqual(job.embeddings().rows.shape, (nodes, 16))
        with self.assertRaises(gnnd.InvalidRequest) as caught:
            task = gnnd.Links(walks=walks)
            self.client.submit("cited", MODEL, fanouts=[5, 5], epochs=1, task=task)
        self.assertIn("only for links.positives WALKS", str(caught.exception))

    def test_have_classes_that_are_learnt(self):
        random = np.random.default_rng(3)
        nodes = random.integers(0, 90, size=(2, 1500))
        nodes = np.unique(nodes[:, nodes[0] != nodes[1]], axis=1)
        nodes = nodes[:, random.permutation(nodes.shape[1])]
        kinds = (nodes[0] + nodes[1]) % 3
        features = np.eye(3, dtype=np.float32)[np.arange(90) % 3]
        sides = {"train": slice(None, 900), "val": slice(900, 1000), "test": slice(1000, None)}
        links = {side: (nodes[:, part], kinds[part]) for side, part in sides.items()}
        data = self.client.import_arrays("kinds", edge_index=nodes, features=features, links=links)
        job = self.client.submit(
            data, MODEL, fanouts=[5, 5], epochs=20, task=gnnd.LinkLabels(), learning_rate=0.01
        )
        job.wait()
        self.assertEqual(job.task, "CLASSIFICATION")
        self.assertEqual(next(iter(job.result.metrics)), "accuracy")
        self.assertGreater(job.result.metrics["accuracy"], 0.6)
        with self.assertRaises(gnnd.InvalidRequest) as caught:
            self.client.import_arrays(
                "short",
                edge_index=nodes,
                features=features,
                links={**links, "val": (nodes[:, :9], kinds[:8])},
            )
        self.assertIn("one for each link", str(caught.exception))

    def test_take_classes_from_a_split_of_pyg(self):
        edges = np.array([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])

        def part(pairs, kinds):
            return SimpleNamespace(
                edge_index=edges[:, :4],
                x=np.eye(6, dtype=np.float32),
                edge_label_index=np.array(pairs).T,
                edge_label=np.array(kinds),
                num_nodes=6,
            )

        from gnnd import target_links

        known = part([(0, 1), (1, 2)], [0, 2])
        found = target_links.of_pyg((known, part([(2, 3)], [1]), part([(4, 5)], [0])))
        self.assertEqual(found.links["train"][1].tolist(), [0, 2])
        none = part([(0, 5), (1, 2)], [0, 2])
        with self.assertRaises(gnnd.InvalidRequest) as caught:
            target_links.of_pyg((none, known, known))
        self.assertIn("neg_sampling_ratio=0.0", str(caught.exception))

    def test_give_rows_scores_and_the_nearest(self):
        job = self.client.submit(
            "cited",
            MODEL,
            fanouts=[5, 5],
            epochs=2,
            task=gnnd.Links(split={"validation": 0.05, "test": 0.1}, evaluation=50),
        )
        embeddings = job.embeddings()
        rows = embeddings.rows.astype(np.float64)
        self.assertEqual((embeddings.layer, rows.shape), (2, (2708, 16)))
        random = np.random.default_rng(1)
        pairs = random.integers(0, 2708, (300, 2))
        expected = (rows[pairs[:, 0]] * rows[pairs[:, 1]]).sum(axis=1)
        for asked in (pairs, pairs.T, pairs.tolist()):
            np.testing.assert_allclose(job.score(asked), expected, rtol=1e-3, atol=1e-3)
        nodes = [2000, 3, 2000]
        nearest = job.nearest(nodes, k=5, with_known=True)
        self.assertEqual(nearest.nodes.tolist(), nodes)
        self.assertEqual(nearest.nearest.shape, (3, 5))
        scores = rows[nodes] @ rows.T
        scores[np.arange(3), nodes] = -np.inf
        best = -np.sort(-scores, axis=1)[:, :5]
        np.testing.assert_allclose(nearest.scores, best, rtol=1e-3, atol=1e-3)
        among = np.arange(100, 150)
        chosen = job.nearest([3], k=4, among=among).nearest
        self.assertTrue(np.isin(chosen, among).all())
        self.assertIn("3 nodes: 5 each", repr(nearest))

    def test_come_to_pytorch_with_the_head_that_scores_them(self):
        import onnxruntime
        import torch

        pairs = np.random.default_rng(2).integers(0, 2708, (2, 200))
        # Another dataset than the one that was trained on is read with all its edges.
        features = ARRAYS["features"].astype(np.float32)
        features[0] = 0.5
        self.client.import_arrays("others", **{**ARRAYS, "features": features})
        x = torch.from_numpy(features)
        edges = torch.tensor(self.edges()).T
        for head in ("DOT", "COSINE", "DISTMULT", "BILINEAR", "MLP"):
            with self.subTest(head=head):
                task = gnnd.Links(head=head, evaluation=50)
                job = self.client.submit("cited", MODEL, fanouts=[5, 5], epochs=1, task=task)
                module = job.wait().to_pyg()
                with torch.no_grad():
                    found = module(x, edges, torch.from_numpy(pairs)).numpy()
                    rows = module.encoder(x, edges)
                self.assertEqual(tuple(rows.shape), (2708, 16))
                expected = job.score(pairs, dataset="others")
                np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
                with tempfile.TemporaryDirectory() as folder:
                    session = onnxruntime.InferenceSession(job.to_onnx(f"{folder}/{head}.onnx"))
                graph = {"x": features, "edge_index": edges.numpy(), "edge_label_index": pairs}
                (scores,) = session.run(["scores"], graph)
                np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-4)

    def test_are_not_asked_for_what_cannot_be(self):
        job = self.client.submit("cited", MODEL, fanouts=[5, 5], epochs=1, task=gnnd.Links())
        job.wait()
        for pairs, text in (
            ([], "there are none"),
            ([[0, 1, 2]], "expected [n, 2] or [2, n]"),
            ([[0, 2708]], "2708 in pair 0"),
            ([[0.5, 1.0]], "whole numbers"),
        ):
            with self.assertRaisesRegex(gnnd.InvalidRequest, text.replace("[", r"\[")):
                job.score(pairs)
        for k, text in ((0, "expected 1 or more"), (2708, "fewer than the 2,708 nodes")):
            with self.assertRaisesRegex(gnnd.InvalidRequest, text):
                job.nearest([1], k=k)
        with self.assertRaisesRegex(gnnd.InvalidRequest, "predicts no node"):
            job.predict()

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

    def test_are_taken_as_other_libraries_hold_them(self):
        pairs = np.array([pair for pair in self.edges() if pair[0] < pair[1]]).T
        train, val, test = pairs[:, :4000], pairs[:, 4000:4600], pairs[:, 4600:]
        negatives = np.random.default_rng(5).integers(0, 2708, (test.shape[1], 2, 7))
        kept = np.concatenate([train, train[::-1]], axis=1)
        graph = {"edge_index": kept, "num_nodes": 2708, "node_feat": ARRAYS["features"]}
        listed = {"train": train, "val": val, "test": test}
        plain = self.client.import_arrays(
            "of-arrays", edge_index=kept, features=ARRAYS["features"], links=listed
        )

        def part(links, none):
            ends = np.concatenate([links, none], axis=1)
            labels = np.repeat([1.0, 0.0], [links.shape[1], none.shape[1]])
            given = {"edge_label_index": ends, "edge_label": labels}
            return SimpleNamespace(
                x=ARRAYS["features"], y=ARRAYS["labels"], edge_index=kept, **given
            )

        split = tuple(part(links, links[:, :50]) for links in (train, val, test))
        of_pyg = self.client.import_pyg(split, "of-pyg-links")
        self.assertEqual(of_pyg.digest, plain.digest)
        self.assertRegex("\n".join(of_pyg.notices), "(?s)pairs that are no links.*y is not used")
        named = ({"edge": links.T} for links in (train, val, test))
        dataset = OgbLinks(graph, dict(zip(("train", "valid", "test"), named, strict=True)))
        self.assertEqual(self.client.import_ogb(dataset, "of-ogb").digest, plain.digest)
        for side, links in (("valid", val), ("test", test)):
            ends = {"source_node": links[0], "target_node": links[1]}
            of_each = negatives[: links.shape[1], 0]
            dataset.split[side] = {**ends, "target_node_neg": of_each, "year": links[0]}
        ranked = self.client.import_ogb(dataset, "of-ogb-negatives")
        self.assertRegex("\n".join(ranked.notices), "year of links is not used")
        job = self.client.submit(ranked.id, MODEL, fanouts=[5, 5], epochs=1, task=gnnd.Links())
        self.assertIn("mrr@7", job.wait().result.metrics)

    def test_of_ogb_are_found_in_its_pool(self):
        pairs = np.array([pair for pair in self.edges() if pair[0] < pair[1]]).T
        train, val, test = pairs[:, :4000], pairs[:, 4000:4600], pairs[:, 4600:]
        kept = np.concatenate([train, train[::-1]], axis=1)
        graph = {"edge_index": kept, "num_nodes": 2708, "node_feat": ARRAYS["features"]}
        none = np.random.default_rng(7).integers(0, 2708, (1500, 2))
        split = {
            "train": {"edge": train.T},
            "valid": {"edge": val.T, "edge_neg": none[:500]},
            "test": {"edge": test.T, "edge_neg": none[500:]},
        }
        pooled = self.client.import_ogb(OgbLinks(graph, split), "of-ogb-pool")
        self.assertRegex("\n".join(pooled.notices), "678 to test, beside 1,000 pairs that are none")
        job = self.client.submit(pooled.id, MODEL, fanouts=[5, 5], epochs=3, task=gnnd.Links())
        found = job.wait().result.metrics
        ks = (1, 3, 10, 20, 50, 100)
        names = {"roc_auc", "average_precision", *(f"hits@{k}@pool" for k in ks)}
        self.assertEqual(set(found), names)
        self.assertEqual(next(iter(found)), "hits@50@pool")
        self.assertIn("val_hits@50@pool", job.records()[-1])
        # As ogb.linkproppred.Evaluator computes them, of scores of the same model.
        positive, negative = job.score(test), np.sort(job.score(none[500:]))[::-1]
        for k in ks:
            expected = (positive > negative[k - 1]).mean()
            self.assertAlmostEqual(found[f"hits@{k}@pool"], expected, delta=1.5 / test.shape[1])
        above = (positive[:, None] > negative[None]).mean()
        self.assertAlmostEqual(found["roc_auc"], above, places=3)

    def test_count_as_they_are_weighed(self):
        pairs = np.array([pair for pair in self.edges() if pair[0] < pair[1]]).T
        links = {"train": pairs[:, :600], "val": pairs[:, 600:700], "test": pairs[:, 700:800]}
        graph = {**ARRAYS, "links": {**links, "train_weights": np.arange(600)}}
        self.client.import_arrays("weighed", **graph)
        task = gnnd.Links(allow_overlap=True, evaluation=50)
        job = self.client.submit("weighed", MODEL, fanouts=[5, 5], epochs=1, task=task)
        self.assertEqual(job.spec["links"]["weights"], "DATASET")
        job.wait()
        for weights in (np.ones(599), -np.ones(600), np.zeros(600), np.full(600, np.nan)):
            graph["links"]["train_weights"] = weights
            with self.assertRaises(gnnd.InvalidRequest) as caught:
                self.client.import_arrays("wrong", **graph)
            fields = [each.field for each in caught.exception.violations]
            self.assertEqual(fields, ["links.train_weights"])

    def test_that_cannot_be_taken_are_refused_together(self):
        links = {"train": [[0.5], [1.5]], "validation": [[0], [1]], "test": [[0], [1], [2]]}
        with self.assertRaises(gnnd.InvalidRequest) as caught:
            self.client.import_arrays("none", **{**ARRAYS, "links": links})
        fields = {each.field for each in caught.exception.violations}
        expected = {"links.train", "links.validation", "links.val", "links.test"}
        self.assertEqual(fields, expected)
        kinds = [
            SimpleNamespace(edge_index=np.zeros((2, 1)), edge_label_index=np.zeros((2, 3), int))
        ]
        for labels, what in (([1, 0], "edge_label has shape"), ([1, 2], "labels have shape")):
            kinds[0].edge_label = np.array(labels)
            with self.assertRaisesRegex(gnnd.InvalidRequest, rf"train: {what} \(2,\)"):
                self.client.import_pyg(kinds * 3, "none")

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
