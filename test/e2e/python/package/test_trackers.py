"""Jobs in MLflow and in Weights & Biases, and what these have stored. Needs mlflow and wandb.

CORA is a .npz file, GNND_COMMAND starts a daemon. MLflow is a server on this host; W&B is offline.
"""

import json
import math
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import mlflow
import numpy as np
import wandb
from wandb.proto import wandb_internal_pb2

import gnnd
from gnnd import history, trackers

SERVER_SECONDS_MAX = 240


class Jobs(unittest.TestCase):
    """A daemon with a job for each way in which jobs end."""

    @classmethod
    def setUpClass(cls):
        cls.client = cls.enterClassContext(gnnd.local(cpu_devices=1))
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        arrays = dict(np.load(os.environ["CORA"]))
        names = [f"paper {node} of cora" for node in range(2708)]
        cls.client.import_arrays("cora", **arrays, node_names=names)
        targets = arrays["labels"].astype(float)
        cls.client.import_arrays("numbers", **{**arrays, "labels": targets}, task="REGRESSION")

    def job(self, name, dataset="cora", epochs=5, **options):
        model = gnnd.GCN(hidden=16)
        return self.client.submit(
            *(dataset, model),
            **{"fanouts": [5, 5], "epochs": epochs, "name": name, **options},
            evaluation={"every_epochs": 2},
        )

    def cancelled(self, name):
        job = self.job(name, epochs=1_000_000)
        next(update for update in job.updates() if update.epochs)
        return job.cancel()

    def failing(self, name):
        return self.job(name, learning_rate=1e38, restart={"max_attempts": 1})


class MLflow(Jobs):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        uri = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port"]
        store = f"sqlite:///{cls.folder}/mlflow.db"
        command += [str(port), "--workers", "1", "--backend-store-uri", store]
        log = cls.enterClassContext(open(cls.folder / "server.log", "w+b"))
        server = subprocess.Popen(
            command, cwd=cls.folder, stdout=log, stderr=log, start_new_session=True
        )
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(os.killpg, server.pid, signal.SIGTERM)
        deadline = time.monotonic() + SERVER_SECONDS_MAX
        while True:
            try:
                urllib.request.urlopen(f"{uri}/health").close()
                break
            except urllib.error.URLError:
                said = (cls.folder / "server.log").read_text()
                assert server.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.2)
        mlflow.set_tracking_uri(uri)
        cls.store = mlflow.MlflowClient(uri)

    def stored(self, job, **options):
        """The run that a job became, and its metrics by step, read from the server."""
        told = trackers.to_mlflow(job, **options)
        self.assertIsNone(mlflow.active_run())
        run = self.store.get_run(told.info.run_id)
        self.assertEqual(told.to_dictionary(), run.to_dictionary())
        points = {
            name: {
                point.step: point.value
                for point in self.store.get_metric_history(run.info.run_id, name)
            }
            for name in run.data.metrics
        }
        return run, points

    def test_has_the_spec_each_epoch_and_the_result(self):
        job = self.job("classes")
        run, points = self.stored(job)
        self.assertEqual((run.info.run_name, run.info.status), ("classes", "FINISHED"))
        given = {name: str(value) for name, value in trackers.flat(job.spec).items()}
        self.assertGreater(len(given), 100)
        self.assertEqual(run.data.params, given)
        records = job.records()
        self.assertEqual(len(records), 5)
        for name in set(records[-1]) - {"epoch"}:
            told = {r["epoch"]: r[name] for r in records if not math.isnan(r.get(name, math.nan))}
            self.assertEqual(points.pop(name), told, name)
        summary = trackers.summary(job)
        self.assertEqual(run.data.tags["parameters_sha256"], summary.pop("parameters_sha256"))
        self.assertEqual({name: value for name, (value,) in values(points)}, summary)

    def test_has_no_accuracy_of_numbers(self):
        run, points = self.stored(self.job("numbers", "numbers"), run_name="mine")
        self.assertEqual(run.info.run_name, "mine")
        self.assertEqual([name for name in points if "accuracy" in name], [])
        self.assertEqual(list(points["val_mae"]), [1, 3, 4])

    def test_has_jobs_that_did_not_succeed_as_such(self):
        run, _ = self.stored(self.failing("diverged"))
        self.assertEqual(run.info.status, "FAILED")
        self.assertEqual(run.data.tags["reason"], "NUMERIC_DIVERGENCE")
        run, _ = self.stored(self.cancelled("cancelled"))
        self.assertEqual(run.info.status, "KILLED")
        self.assertEqual(run.data.tags["reason"], "USER_CANCELLED")

    def test_takes_specs_of_any_length(self):
        trained = self.job("of-long-specs").wait()
        ids = [f"paper {node} of cora" for node in range(1000)]
        inference = {"job": trained.id, "nodes": "LISTED", "node_ids": ids}
        job = self.client.submit_spec({"kind": "INFERENCE", "inference": inference})
        run, _ = self.stored(job)
        self.assertEqual(run.info.status, "FINISHED")
        self.assertIn("paper 7 of cora", run.data.params["inference.node_ids"])


def values(points):
    """Metrics that have one point."""
    return ((name, tuple(steps.values())) for name, steps in points.items())


class WeightsAndBiases(Jobs):
    def stored(self, job, **options):
        """What W&B wrote down of a run, without its server: the records of its log by kind."""
        settings = wandb.Settings(console="off", silent=True)
        options = {"mode": "offline", "dir": self.folder, "settings": settings, **options}
        run = trackers.to_wandb(job, **options)
        self.assertIsNone(wandb.run)
        (path,) = self.folder.glob(f"wandb/offline-run-*-{run.id}/run-{run.id}.wandb")
        found = {}
        for record in records_of(path.read_bytes()):
            kind = record.WhichOneof("record_type")
            found.setdefault(kind, []).append(getattr(record, kind))
        return found

    def test_has_the_spec_each_epoch_and_the_result(self):
        job = self.job("classes")
        found = self.stored(job, project="graphs", config={"mine": 1})
        (run,) = found["run"]
        self.assertEqual((run.display_name, run.project), ("classes", "graphs"))
        config = {item.key: json.loads(item.value_json) for item in run.config.update}
        config.pop("_wandb", None)
        self.assertEqual(config, {**job.spec, "mine": 1})
        rows = [self.row(item) for item in found["history"]]
        told = [{"_step": r["epoch"], **history.numbers(r)} for r in job.records()]
        self.assertEqual(rows, told)
        summary = {}
        for change in found["summary"]:
            summary |= {item.key: json.loads(item.value_json) for item in change.update}
        expected = trackers.summary(job)
        self.assertGreater(expected["test_accuracy_best"], 0)
        self.assertEqual({name: summary[name] for name in expected}, expected)
        self.assertEqual(found["exit"][0].exit_code, 0)

    def row(self, item):
        row = {(v.key or v.nested_key[0]): json.loads(v.value_json) for v in item.item}
        row = {name: value for name, value in row.items() if name[0] != "_"}
        return {"_step": item.step.num, **row}

    def test_has_no_accuracy_of_numbers(self):
        found = self.stored(self.job("numbers", "numbers"))
        rows = [self.row(item) for item in found["history"]]
        self.assertEqual([name for row in rows for name in row if "accuracy" in name], [])
        self.assertEqual([row["_step"] for row in rows if "val_mae" in row], [1, 3, 4])

    def test_has_jobs_that_did_not_succeed_as_such(self):
        for job, reason in (
            (self.failing("diverged"), "NUMERIC_DIVERGENCE"),
            (self.cancelled("cancelled"), "USER_CANCELLED"),
        ):
            found = self.stored(job)
            self.assertEqual(found["exit"][0].exit_code, 1)
            told = {item.key: item.value_json for it in found["summary"] for item in it.update}
            self.assertEqual(json.loads(told["reason"]), reason)


def records_of(data):
    """Of a .wandb file: LevelDB's log (blocks of 32 KiB, pieces with CRC, length and type) after a
    header of 7 bytes."""
    assert data[:4] == b":W&B", data[:7]
    at, whole = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        _, size, kind = struct.unpack("<IHB", data[at : at + 7]) if left >= 7 else (0, 0, 0)
        if kind == 0:  # The end of a block is filled with zeros.
            at += left
            continue
        whole += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # The only piece, or the last one.
            yield wandb_internal_pb2.Record.FromString(whole)
            whole = b""


if __name__ == "__main__":
    unittest.main()
