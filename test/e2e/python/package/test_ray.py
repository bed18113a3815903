"""Jobs and searches on a Ray cluster of several nodes, here. Needs ray[tune] and optuna.

CORA is a .npz file, GNND_COMMAND starts a daemon. Nodes are processes of this machine, and believe
that they have a processor each.
"""

import logging
import os
import pathlib
import tempfile
import threading
import time
import unittest

import optuna
import ray
from ray import tune
from ray.cluster_utils import Cluster

import gnnd
import gnnd.ray
import gnnd.tune

CORA = os.environ["CORA"]
OPTIONS = {"share_cores": True, "command": os.environ["GNND_COMMAND"]}
SECONDS_MAX = 240


def spec(epochs=3, seed=1, **training):
    """A small GCN on cora."""
    return {
        "dataset": "cora",
        "model": {"type": "GCN", "hidden_dim": 16},
        "sampling": {"fanouts": [5, 5]},
        "training": {"epochs": epochs, "batch_size": 20, "random_seed": seed, **training},
    }


class OfSeveralNodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        # No work for the head: what runs, runs on a node that a test may take away.
        cls.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        cls.addClassCleanup(cls.cluster.shutdown)
        cls.nodes = [cls.cluster.add_node(num_cpus=1, resources={"graph": 1}) for _ in range(2)]
        # Workers take what this process has, so that they find the package and the daemon.
        ray.init(address=cls.cluster.address, logging_level=logging.ERROR, log_to_driver=False)
        cls.addClassCleanup(ray.shutdown)

    def state(self, name):
        return pathlib.Path(self.folder, name)


class Runs(OfSeveralNodes):
    def test_jobs_of_all_nodes_come_back_in_their_order(self):
        told = []
        jobs = [spec(seed=seed) for seed in (1, 2, 3)]
        results = gnnd.ray.run(jobs, source=CORA, on_result=told.append, **OPTIONS)
        self.assertEqual([each.name for each in results], ["job-0", "job-1", "job-2"])
        self.assertEqual({each.state for each in results}, {"SUCCEEDED"})
        self.assertEqual(len({each.summary["parameters_sha256"] for each in results}), 3)
        self.assertEqual([len(each.records) for each in results], [3, 3, 3])
        self.assertEqual({each.name for each in told}, {"job-0", "job-1", "job-2"})

    def test_a_wrong_spec_is_an_answer_and_stops_no_other(self):
        jobs = {"wrong": spec(epochs=0), "right": spec()}
        wrong, right = gnnd.ray.run(jobs, source=CORA, **OPTIONS)
        self.assertEqual((wrong.state, wrong.reason), ("FAILED", "SPEC_INVALID"))
        self.assertIn("training.epochs", wrong.message)
        self.assertEqual(right.state, "SUCCEEDED")

    def test_a_job_of_a_lost_node_goes_on_elsewhere_to_the_same_model(self):
        job = spec(epochs=400)
        (whole,) = gnnd.ray.run({"whole": job}, source=CORA, **OPTIONS)
        state = self.state("lost")
        lost = threading.Event()

        def lose_the_node():
            """Once the job has an image; the node is the one whose process holds the daemon."""
            deadline = time.monotonic() + SECONDS_MAX
            while not list(state.glob("parts/jobs/*/images/*")):
                if time.monotonic() > deadline:
                    return
                time.sleep(0.01)
            busy = [n["NodeID"] for n in ray.nodes() if n["Alive"] and is_busy(n["NodeID"])]
            victim = next(n for n in self.nodes if n.node_id in busy)
            self.cluster.remove_node(victim, allow_graceful=False)
            self.nodes.remove(victim)
            lost.set()

        threading.Thread(target=lose_the_node, daemon=True).start()
        (parts,) = gnnd.ray.run({"parts": job}, source=CORA, state_dir=state, **OPTIONS)
        self.assertTrue(lost.is_set())
        self.assertEqual(parts.state, "SUCCEEDED", parts)
        self.assertEqual(parts.summary["parameters_sha256"], whole.summary["parameters_sha256"])
        # Told again from what the folder has: every epoch once.
        self.assertEqual([r["epoch"] for r in parts.records], list(range(400)))
        self.nodes.append(self.cluster.add_node(num_cpus=1, resources={"graph": 1}))


def is_busy(node_id):
    """Whether all of a node's processors are taken."""
    free = ray._private.state.available_resources_per_node().get(node_id, {})
    return free.get("CPU", 0) < 1


def rate_of(config):
    """The learning rate that a trial tries."""
    return config["training"]["optimizer"]["learning_rate"]


class GivesUpSlowLearners(tune.schedulers.FIFOScheduler):
    """At their second epoch, as ASHA would if the others were there first."""

    def on_trial_result(self, tune_controller, trial, result):
        slow = rate_of(trial.config) < 1e-3 and result["epoch"] >= 2
        return self.STOP if slow else self.CONTINUE


class PrunesSlowLearners(optuna.pruners.BasePruner):
    """The same for Optuna."""

    def prune(self, study, trial):
        return trial.params["rate"] < 1e-3 and trial.last_step >= 1


class Searches(OfSeveralNodes):
    def test_ray_tune_tries_specs_and_stops_what_is_behind(self):
        grid = gnnd.tune.with_ray(
            spec(epochs=200),
            {"training": {"optimizer": {"learning_rate": tune.grid_search([1e-6, 0.01])}}},
            trials=1,
            source=CORA,
            state_dir=self.state("trials"),
            scheduler=GivesUpSlowLearners(),
            storage=str(self.state("tune")),
            **OPTIONS,
        )
        self.assertEqual(grid.num_errors, 0, grid.errors)
        epochs = {rate_of(each.config): each.metrics["epoch"] for each in grid}
        self.assertEqual(epochs[0.01], 200)
        self.assertLess(epochs[1e-6], 200)
        self.assertEqual(rate_of(grid.get_best_result().config), 0.01)


class OnOneDaemon(unittest.TestCase):
    def test_optuna_prunes_and_leaves_the_best_job_alone(self):
        study = optuna.create_study(
            direction="maximize",
            sampler=optuna.samplers.GridSampler({"rate": [1e-6, 0.01, 0.02]}),
            pruner=PrunesSlowLearners(),
        )

        def space(trial):
            rate = trial.suggest_float("rate", 1e-6, 1.0)
            return {"training": {"optimizer": {"learning_rate": rate}}}

        with gnnd.local(cpu_devices=1, cuda_devices="none", **OPTIONS) as client:
            client.import_path(CORA, "cora")
            gnnd.tune.with_optuna(client, spec(epochs=30), space, trials=3, study=study)
            states = {trial.params["rate"]: trial.state.name for trial in study.trials}
            self.assertEqual(states, {1e-6: "PRUNED", 0.01: "COMPLETE", 0.02: "COMPLETE"})
            best = study.best_trial
            self.assertEqual([job.id for job in client.jobs()], [best.user_attrs["job"]])
            accuracies = [r["val_accuracy"] for r in client.jobs()[0].records()]
            self.assertEqual(best.value, max(accuracies))
            with self.assertRaisesRegex(gnnd.GnndError, "'val_mae'.* there are .*val_accuracy"):
                gnnd.tune.with_optuna(
                    client, spec(epochs=2), lambda _: {}, trials=1, metric="val_mae"
                )


if __name__ == "__main__":
    unittest.main()
