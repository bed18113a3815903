"""Runs, Ray and searches with stand-ins for the engines. CORA is a .npz file."""

import os
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

import gnnd
import gnnd.ray
import gnnd.tune
from gnnd import history, runs

OPTIONS = {"cuda_devices": "none", "share_cores": True}
SPEC = {
    "dataset": "cora",
    "model": {"type": "GCN", "hidden_dim": 8},
    "sampling": {"fanouts": [5, 5]},
    "training": {"epochs": 4, "batch_size": 50},
}


def spec(**training):
    return {**SPEC, "training": {**SPEC["training"], **training}}


class Runs(unittest.TestCase):
    def setUp(self):
        self.state = self.enterContext(tempfile.TemporaryDirectory())

    def run_here(self, name, given, **options):
        source = os.environ["CORA"]
        return runs.run(name, given, source=source, state_dir=self.state, **OPTIONS, **options)

    def test_a_job_that_ended_is_told_again(self):
        first = self.run_here("a", spec(), cpus=1)
        again = self.run_here("a", spec(), cpus=1)
        self.assertEqual((first.state, len(first.records)), ("SUCCEEDED", 4))
        self.assertEqual(first, again)

    def test_another_spec_under_its_name_is_refused(self):
        self.run_here("a", spec(epochs=1))
        with self.assertRaisesRegex(gnnd.GnndError, "another spec"):
            self.run_here("a", spec(epochs=2))

    def test_what_looks_at_epochs_may_give_a_job_up(self):
        def told(record):
            if record["epoch"] == 1:
                raise ValueError("enough")

        with self.assertRaisesRegex(ValueError, "enough"):
            self.run_here("a", spec(epochs=2000), on_epoch=told)
        self.assertEqual(self.run_here("a", spec(epochs=2000)).state, "CANCELLED")

    def test_a_state_directory_that_somebody_has_is_waited_for(self):
        folder = os.path.join(self.state, "a")
        other = gnnd.local(folder, **OPTIONS)

        def slept(_):
            other.close()

        clock = types.SimpleNamespace(monotonic=time.monotonic, sleep=slept)
        with unittest.mock.patch.object(runs, "time", clock):
            self.assertEqual(self.run_here("a", spec(epochs=1)).state, "SUCCEEDED")

    def test_cores_are_claimed_by_one_call_at_a_time(self):
        before = os.sched_getaffinity(0)
        if len(before) < 2:
            self.skipTest("one core")
        with runs._cores(1):
            mine = os.sched_getaffinity(0)
            os.sched_setaffinity(0, before)
            with runs._cores(1):
                self.assertEqual(len(mine), 1)
                self.assertTrue(mine.isdisjoint(os.sched_getaffinity(0)))
        self.assertEqual(os.sched_getaffinity(0), before)


class FakeRayError(Exception):
    pass


class FakeTask:
    """`ray.remote`: answers at once; the engine loses jobs called `lost`."""

    def __init__(self, engine, options):
        self.engine, self.options = engine, options

    def __call__(self, function):
        self.function = function
        return self

    def remote(self, name, given, options):
        self.engine.started.append((name, given, options, self.options))
        return name


class Metrics(unittest.TestCase):
    def test_curves_are_of_the_task_and_errors_are_minimised(self):
        common = {"epoch": 0, "loss": 1.0}
        ranked = {**common, "val_roc_auc": 0.7, "val_micro_f1": 0.5}
        labels = ["val_micro_f1", "val_roc_auc"]
        self.assertEqual(history.curves([common, ranked]), [["loss"], labels])
        regressed = {**common, "val_mae": 2.0}
        self.assertEqual(history.curves([regressed]), [["loss"], ["val_mae"]])
        # Of classes there are accuracies, and nothing to validate on is no curve.
        classes = {**ranked, "train_accuracy": 0.5, "val_accuracy": 0.5}
        accuracies = ["train_accuracy", "val_accuracy"]
        self.assertEqual(history.curves([classes]), [["loss"], accuracies])
        unvalidated = {**classes, "val_accuracy": float("nan")}
        self.assertEqual(history.curves([unvalidated]), [["loss"], ["train_accuracy"]])
        self.assertEqual(history.curves([]), [["loss"]])
        minimised = [name for name in (*common, *ranked, *regressed) if history.is_minimised(name)]
        self.assertEqual(sorted(set(minimised)), ["loss", "val_mae"])


class FakeRay(types.ModuleType):
    """As much of ray as `gnnd.ray` uses."""

    def __init__(self):
        super().__init__("ray")
        self.started = []
        self.exceptions = types.SimpleNamespace(RayError=FakeRayError)

    def remote(self, **options):
        return FakeTask(self, options)

    def wait(self, waiting, num_returns):
        return waiting[-num_returns:], waiting[:-num_returns]

    def get(self, name):
        if name == "lost":
            raise FakeRayError("its node died")
        return runs.Result(name, "SUCCEEDED")


class OnRay(unittest.TestCase):
    def test_results_keep_the_order_and_a_lost_job_is_one_of_them(self):
        engine = FakeRay()
        jobs = {"one": SPEC, "lost": SPEC, "two": SPEC}
        with unittest.mock.patch.dict(sys.modules, ray=engine):
            results = gnnd.ray.run(jobs, source="/data/cora.npz", cpus=2, resources={"big": 1})
        self.assertEqual([each.name for each in results], ["one", "lost", "two"])
        self.assertEqual([each.state for each in results], ["SUCCEEDED", "LOST", "SUCCEEDED"])
        self.assertEqual(results[1].message, "its node died")
        _, _, given, place = engine.started[0]
        self.assertEqual(place["num_cpus"], 2)
        self.assertEqual(place["resources"], {"big": 1})
        self.assertEqual(given["cuda_devices"], "none")

    def test_says_what_is_missing(self):
        with unittest.mock.patch.dict(sys.modules, {"ray": None, "optuna": None}):
            for call in (
                lambda: gnnd.ray.run([SPEC]),
                lambda: gnnd.tune.with_ray(SPEC, {}, trials=1, source="x"),
                lambda: gnnd.tune.with_optuna(None, SPEC, dict, trials=1),
            ):
                with self.assertRaisesRegex(gnnd.MissingPackage, "pip install"):
                    call()


if __name__ == "__main__":
    unittest.main()
