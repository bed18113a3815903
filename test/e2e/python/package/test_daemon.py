"""The package against the daemon of GNND_ADDRESS. usage: test_daemon.py, with CORA, a .npz file."""

import json
import math
import os
import pathlib
import tempfile
import threading
import unittest
import unittest.mock

import numpy as np

import gnnd
from gnnd import files, staging, trackers

CORA = pathlib.Path(os.environ["CORA"])
ARRAYS = dict(np.load(CORA))
ERRORS = {"val_mae", "val_rmse"}
MODEL = gnnd.GCN(hidden=16, input_dropout=0.5)


def checksums(dataset):
    """SHA-256 of each array."""
    return json.loads(pathlib.Path(dataset.path, "dataset.json").read_text())["sha256"]


class Imports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(gnnd.connect())
        cls.reference = checksums(cls.client.import_path(CORA, "from-npz"))

    def test_of_arrays_are_the_same_bytes_as_of_a_file(self):
        dataset = self.client.import_arrays("from-arrays", **ARRAYS)
        self.assertEqual(checksums(dataset), self.reference)
        self.assertEqual((dataset.num_nodes, dataset.num_classes), (2708, 7))
        self.assertEqual(dataset.split, {"train": 140, "val": 500, "test": 1000})
        self.assertIn("from-arrays", [each.id for each in self.client.datasets()])

    def test_of_edges_and_masks_are_so_too(self):
        rest = {key: ARRAYS[key] for key in ("features", "labels")}
        targets = np.repeat(np.arange(2708), np.diff(ARRAYS["indptr"]))
        masks = {key: np.isin(np.arange(2708), ARRAYS[key]) for key in ("train", "val", "test")}
        edge_index = np.stack([ARRAYS["indices"], targets])
        shuffled = edge_index[:, np.random.default_rng(1).permutation(edge_index.shape[1])]
        order = np.lexsort((shuffled[0], shuffled[1]))
        names = [f"paper {node}" for node in range(2708)]
        dataset = self.client.import_arrays(
            "from-edges",
            edge_index=shuffled[:, order],
            class_names=list("abcdefg"),
            node_names=names,
            **rest,
            **masks,
        )
        self.assertEqual(checksums(dataset), self.reference)
        about = json.loads(pathlib.Path(dataset.path, "dataset.json").read_text())
        self.assertEqual(about["class_names"], list("abcdefg"))
        lines = pathlib.Path(dataset.path, "names.txt").read_text().splitlines()
        self.assertEqual(lines, names)

    def test_write_an_array_once_and_link_it(self):
        written = []
        put = staging.put_array

        def noting(folder, name, array):
            answer = put(folder, name, array)
            written.append((name, (folder / f"{name}.npy").stat().st_ino))
            return answer

        with unittest.mock.patch.object(staging, "put_array", noting):
            dataset = self.client.import_arrays("linked-arrays", **ARRAYS)
        inodes = dict(written)
        for name in ("features", "indices"):
            file = pathlib.Path(dataset.path, f"{name}.npy").stat()
            self.assertEqual((file.st_ino, file.st_nlink), (inodes[name], 1))
        beside = pathlib.Path(self.client.host.state_dir).parent
        self.assertEqual(list(beside.glob("gnnd-arrays-*")), [])

    def test_share_a_mapped_file_only_where_told_to(self):
        beside = pathlib.Path(self.client.host.state_dir).parent
        with tempfile.TemporaryDirectory(dir=beside) as folder:
            path = pathlib.Path(folder, "mine.npy")
            np.save(path, ARRAYS["features"])
            mapped = {**ARRAYS, "features": np.load(path, mmap_mode="r")}
            for link in (False, True):
                name = f"mapped-{link}".lower()
                dataset = self.client.import_arrays(name, **mapped, link=link)
                inode = pathlib.Path(dataset.path, "features.npy").stat().st_ino
                self.assertEqual(inode == path.stat().st_ino, link)
                self.assertEqual(checksums(dataset), self.reference)

    def test_that_fail_say_every_problem_by_file(self):
        with self.assertRaises(gnnd.ImportFailed) as caught:
            self.client.import_arrays(
                "bad",
                features=np.ones((4, 2, 1)),
                labels=[0, 1, 9, 0],
                train=[0],
                val=[1],
                edge_index=[[0, 1], [1, 2]],
                edge_weights=[1.0],
            )
        found = [each.field for each in caught.exception.violations]
        self.assertEqual(sorted(found), ["edge_weights.npy", "features.npy"])
        self.assertEqual(caught.exception.reason, "DATASET_CORRUPT")

    def test_of_a_name_that_is_taken_are_refused(self):
        with self.assertRaises(gnnd.AlreadyExists):
            self.client.import_path(CORA, "from-npz")

    def test_have_labels_or_targets_in_place_of_classes(self):
        rest = {key: array for key, array in ARRAYS.items() if key != "labels"}
        several = np.random.default_rng(2).integers(0, 2, (2708, 5)).astype(np.float32)
        several[7, 2] = np.nan
        dataset = self.client.import_arrays("several-labels", labels=several, **rest)
        self.assertEqual((dataset.task, dataset.num_classes), ("MULTI_LABEL", 5))
        self.assertIn("5 labels", repr(dataset))
        stored = np.load(pathlib.Path(dataset.path, "labels.npy"))
        expected = np.where(np.isnan(several), 255, several).astype(np.uint8)
        self.assertTrue(np.array_equal(stored, expected))
        job = self.client.submit(dataset, MODEL, fanouts=[5, 5], epochs=2, metric="ROC_AUC").wait()
        self.assertEqual(job.message.epochs[-1].val_metrics[0].name, "roc_auc")
        self.assertGreater(job.records()[-1]["val_roc_auc"], 0)
        self.assertEqual(job.task, "MULTI_LABEL")
        self.assertNotIn("val_accuracy", job.records()[-1])
        with self.assertRaisesRegex(gnnd.InvalidRequest, "evaluation.metric.*expected one of"):
            self.client.submit(dataset, MODEL, fanouts=[5, 5], epochs=2, metric="RMSE")
        again = self.client.import_arrays(
            "same-labels", labels=np.where(np.isnan(several), -1, several).astype(int), **rest
        )
        self.assertEqual(again.digest, dataset.digest)
        targets = np.arange(2708.0)
        whole = self.client.import_arrays("ranks", labels=targets, task="REGRESSION", **rest)
        self.assertEqual((whole.task, whole.num_classes), ("REGRESSION", 1))
        job = self.client.submit(
            whole, MODEL, fanouts=[5, 5], epochs=3, evaluation={"every_epochs": 2}
        ).wait()
        frames = {"epoch", "loss", "seconds", "batches", "steps", "retries", "version"}
        self.assertEqual(
            [set(record) - frames for record in job.records()], [set(), ERRORS, ERRORS]
        )
        self.assertEqual(set(trackers.summary(job)) & {"test_accuracy_best"}, set())
        self.assertIn("test_mae_best", trackers.summary(job))
        with self.assertRaisesRegex(gnnd.ImportFailed, "expected labels 0 and 1"):
            self.client.import_arrays("no-labels", labels=targets, task="multi-label", **rest)

    def test_without_validation_nodes_leave_the_last_epoch_the_best(self):
        dataset = self.client.import_arrays("unvalidated", **{**ARRAYS, "val": np.array([], int)})
        self.assertRegex(" ".join(dataset.notices), "no validation split: the last epoch counts")
        job = self.client.submit(dataset, MODEL, fanouts=[5, 5], epochs=7).wait()
        result = job.result
        self.assertEqual(result.best_epoch, 6)
        self.assertEqual(result.test_accuracy_best, result.test_accuracy_last)
        best, last = (job.parameters(which) for which in ("best", "last"))
        self.assertTrue(all(np.array_equal(best[name], last[name]) for name in last))

    def test_in_float16_are_rounded(self):
        dataset = self.client.import_arrays("half", **ARRAYS, feature_dtype="float16")
        features = np.load(pathlib.Path(dataset.path, "features.npy"))
        self.assertEqual(features.dtype, np.float16)
        dataset.delete()
        with self.assertRaises(gnnd.NotFound):
            self.client.dataset("half")


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(gnnd.connect())
        names = [f"paper {node}" for node in range(2708)]
        cls.data = cls.client.import_arrays(
            "for-jobs", **ARRAYS, node_names=names, class_names=list("abcdefg")
        )
        cls.job = cls.train("first", epochs=12, random_seed=3)

    @classmethod
    def train(cls, name, **options):
        options = {"fanouts": [-1, -1], "batch_size": 70, "learning_rate": 0.01, **options}
        return cls.client.submit(cls.data, MODEL, name=name, **options)

    def test_are_watched_to_their_end(self):
        self.job.watch()
        self.assertEqual(self.job.state, "SUCCEEDED")
        self.assertGreater(self.job.result.test_accuracy_best, 0.5)
        self.assertEqual(self.job.spec["model"]["hidden_dim"], 16)

    def test_have_a_history(self):
        records = self.job.wait().records()
        self.assertEqual([record["epoch"] for record in records], list(range(12)))
        self.assertTrue(all(record["batches"] == 2 for record in records))
        self.assertFalse(any(math.isnan(record["val_accuracy"]) for record in records))
        self.assertLess(records[-1]["loss"], records[0]["loss"])
        best = max(record["val_accuracy"] for record in records)
        self.assertEqual(best, self.job.result.best_val_accuracy)

    def test_have_a_report_of_their_test_nodes(self):
        report = self.job.report()
        self.assertEqual(report.names, list("abcdefg"))
        self.assertEqual(report.accuracy, self.job.result.test_accuracy_best)
        self.assertEqual(report.confusion.sum(), self.data.split["test"])
        self.assertTrue(np.array_equal(report.support, report.confusion.sum(axis=1)))
        self.assertRegex(str(report), r"precision +recall +f1 +nodes\na ")
        validated = self.job.report("val")
        self.assertEqual(validated.accuracy, self.job.result.best_val_accuracy)
        with self.assertRaisesRegex(gnnd.InvalidRequest, "'tset': expected one of test, val"):
            self.job.report("tset")

    def test_of_a_spec_again_train_the_same_parameters(self):
        again = self.client.submit_spec(self.job.spec, name="again").wait()
        self.assertEqual(again.result.parameters_sha256, self.job.result.parameters_sha256)

    def test_leave_a_checkpoint_and_predictions(self):
        with tempfile.TemporaryDirectory() as folder:
            made = self.job.checkpoint(folder, predictions="all")
            names = {path.name for path in made}
            self.assertEqual(names, {path.name for path in pathlib.Path(folder).iterdir()})
            data = {path.name: path.read_bytes() for path in made}
        files.checked(data, "export.json")
        parameters = self.job.parameters()
        self.assertEqual(parameters["convs.1.lin.weight"].shape, (7, 16))
        for name, array in files.safetensors(data["model.safetensors"]).items():
            self.assertTrue(np.array_equal(array, parameters[name]))
        logits = files.npy(data["logits.npy"])

        every = self.job.predict(logits=True, ids=True)
        self.assertLess(np.abs(every.logits - logits).max(), 1e-4)
        self.assertEqual(every.ids, [f"paper {node}" for node in range(2708)])
        asked = [2000, 3, 3, 7]
        some = self.job.predict(asked, probabilities=True)
        self.assertEqual(some.nodes.tolist(), asked)
        self.assertEqual(some.classes.tolist(), every.classes[asked].tolist())
        self.assertTrue(np.allclose(some.probabilities.sum(axis=1), 1))
        self.assertIsNone(some.logits)
        self.assertIsNone(some.ids)
        self.assertEqual(some.names, ["abcdefg"[label] for label in some.classes])
        by_ids = self.job.predict(["paper 70", "paper 7", "2000", "paper 70"])
        self.assertEqual(by_ids.nodes.tolist(), [70, 7, 2000, 70])
        self.assertEqual(by_ids.ids, ["paper 70", "paper 7", "paper 2000", "paper 70"])
        self.assertEqual(by_ids.classes.tolist(), every.classes[by_ids.nodes].tolist())
        with self.assertRaisesRegex(gnnd.JobFailed, r'node_ids: \[0\]: "paper x": expected the id'):
            self.job.predict(["paper x"])
        with self.assertRaisesRegex(gnnd.InvalidRequest, "float64: expected whole numbers"):
            self.job.predict([1.5])
        texts = np.array(["paper 70", "paper 7"], dtype=object)
        self.assertEqual(list(self.job.predict(texts).classes), list(by_ids.classes[:2]))
        test = self.job.predict("test", dataset=self.data)
        self.assertEqual(test.ids, [f"paper {node}" for node in test.nodes])
        mask = np.arange(2708) % 1000 == 7
        self.assertEqual(self.job.predict(mask).ids, ["paper 7", "paper 1007", "paper 2007"])
        self.assertTrue(np.array_equal(test.nodes, np.sort(ARRAYS["test"])))
        hits = test.classes == ARRAYS["labels"][test.nodes]
        self.assertAlmostEqual(hits.mean(), self.job.result.test_accuracy_best)
        kinds = {job.message.spec.kind for job in self.client.jobs()}
        self.assertEqual(kinds, {0}, "predictions left jobs")

    def test_give_rows_of_layers(self):
        rows = self.job.embeddings()
        self.assertEqual((rows.rows.shape, rows.layer), ((2708, 16), 1))
        some = self.job.embeddings(["paper 70", "paper 7", "paper 70"])
        self.assertEqual(some.ids, ["paper 70", "paper 7", "paper 70"])
        self.assertTrue(np.allclose(some, np.asarray(rows)[[70, 7, 70]], atol=1e-5))
        logits = self.job.predict(logits=True).logits
        self.assertTrue(np.allclose(self.job.embeddings(layer=2), logits, atol=1e-4))
        with self.assertRaisesRegex(gnnd.InvalidRequest, "the model has 2"):
            self.job.embeddings(layer=3)
        with tempfile.TemporaryDirectory() as folder:
            path = rows.save(pathlib.Path(folder, "rows.npy"))
            self.assertTrue(np.array_equal(np.load(path), rows.rows))
            with self.assertRaisesRegex(gnnd.InvalidRequest, r"expected .npy or .parquet"):
                rows.save(pathlib.Path(folder, "rows.csv"))

    def test_log_what_their_executors_say(self):
        lines = list(self.job.wait().logs())
        self.assertTrue(any("trainer" in line and "executor.started" in line for line in lines))
        self.assertLess(len(list(self.job.logs(tail=1))), len(lines))
        self.assertFalse(self.job.plan().estimated)

    def test_are_refused_with_the_paths_of_wrong_fields(self):
        with self.assertRaises(gnnd.InvalidRequest) as caught:
            self.client.submit("for-jobs", gnnd.GCN(dropout=1.5), fanouts=[10, 0], epochs=0)
        error = caught.exception
        self.assertEqual(
            sorted(each.field for each in error.violations),
            ["spec.model.dropout", "spec.sampling.fanouts[1]", "spec.training.epochs"],
        )
        self.assertEqual((error.code, error.reason), ("INVALID_ARGUMENT", "SPEC_INVALID"))
        self.assertIn("spec.model.dropout: 1.5", str(error))
        with self.assertRaises(gnnd.NotFound):
            self.client.job("none")

    def test_can_be_cancelled_while_somebody_waits(self):
        job = self.train("cancelled", epochs=1_000_000)
        ended = []

        def wait():
            try:
                self.client.job("cancelled").wait()
            except gnnd.JobCancelled as error:
                ended.append(error.reason)

        waiting = threading.Thread(target=wait)
        waiting.start()
        next(update for update in job.updates() if update.epochs)
        job.cancel()
        waiting.join()
        self.assertEqual(ended, ["USER_CANCELLED"])
        self.assertEqual(job.state, "CANCELLED")
        with self.assertRaises(gnnd.NotPossibleNow):
            job.wait(check=False).predictions()
        job.delete()
        with self.assertRaises(gnnd.NotFound):
            job.refresh()

    def test_that_fail_say_why(self):
        job = self.train("diverged", epochs=50, learning_rate=1e38, restart={"max_attempts": 1})
        with self.assertRaises(gnnd.JobFailed) as caught:
            job.wait()
        self.assertIn("NUMERIC_DIVERGENCE", caught.exception.reason + str(caught.exception))


if __name__ == "__main__":
    unittest.main()
