#!/usr/bin/env python3
"""Whole jobs on devices of one kind, through a daemon, as a user runs them.

  jobs.py --node NODE --addons DIR --device cuda|sim --data FILE.npz --folder DIR [--epochs N]

Two logical devices on each of the first two devices, or four on the only one; jobs of several
crews on FILE, and one on CPU devices. Prints an answer a line, {"name", "value", "unit"}. Exit code
1 when a job fails, when two crews of one kind differ in a bit, or when a model whose Trainers are
the CPU's differs from the CPU's own: the samples were not equal then.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_S = 60
LOGICAL = 4


def say(name, value, unit=""):
    print(json.dumps({"name": name, "value": value, "unit": unit}), flush=True)


class Daemon:
    """`gnnd serve` with its state in a folder, until it is left."""

    def __init__(self, options, logical=None):
        self.node, self.device = options.node, options.device
        self.logical = logical
        self.folder = options.folder
        self.socket = f"unix:{self.folder / 'gnnd.sock'}"
        self.environment = {**os.environ, "GNND_ADDON_DIR": str(options.addons)}
        options.folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self):
        logical = self.logical_devices()
        flags = [
            "--state-dir", self.folder / "state", "--listen", self.socket,
            "--metrics-listen", "127.0.0.1:0", "--cpu-devices", "2", "--share-cores",
            "--cuda-devices", logical if self.device == "cuda" else "none",
            *(["--sim-devices", logical] if self.device == "sim" else []),
        ]
        self.process = subprocess.Popen(
            [self.node, ROOT / "dist/main.js", "serve", *map(str, flags)],
            stdout=subprocess.PIPE, stderr=open(self.folder / "daemon.log", "w"), text=True,
            env=self.environment)
        line = self.process.stdout.readline()
        if line == "":
            raise SystemExit((self.folder / "daemon.log").read_text()[-4000:])
        self.metrics = json.loads(line)["metrics"]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(START_S)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def logical_devices(self):
        """As told, else of two devices two each, of a single one four."""
        if self.logical is not None:
            return self.logical
        if self.device == "sim":
            return "0,0,1,1"
        if shutil.which("nvidia-smi") is None:
            return ",".join(["0"] * LOGICAL)
        asked = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
        return "0,0,1,1" if asked.stdout.count("GPU ") > 1 else ",".join(["0"] * LOGICAL)

    def gnnctl(self, *words):
        done = subprocess.run(
            [self.node, ROOT / "dist/cli/main.js", "--address", self.socket, *map(str, words)],
            capture_output=True, text=True, env=self.environment)
        if done.returncode != 0:
            raise SystemExit(f"gnnctl {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
        return done.stdout

    def stages(self):
        """Busy seconds of each stage so far."""
        with urllib.request.urlopen(f"http://{self.metrics}/metrics") as response:
            text = response.read().decode()
        found = re.findall(r'^gnnd_stage_seconds_total\{[^}]*stage="(\w+)"[^}]*\} (\S+)', text, re.M)
        stages = {}
        for stage, seconds in found:
            stages[stage] = stages.get(stage, 0) + float(seconds)
        return stages

    def run(self, name, spec):
        """The finished job as JSON, and its stages."""
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(spec))
        self.gnnctl("job", "create", "-f", path, "--id", name)
        stages = {}
        while True:
            job = json.loads(self.gnnctl("job", "get", name, "-o", "json"))
            if job["state"] not in ("JOB_STATE_PENDING", "JOB_STATE_PREPARING", "JOB_STATE_RUNNING"):
                break
            stages = self.stages() or stages
            time.sleep(0.5)
        if job["state"] != "JOB_STATE_SUCCEEDED":
            raise SystemExit(f"{name}: {job['state']} {job.get('reason')} {job.get('message')}")
        return job, stages


def crews(device):
    """By name: who samples and who trains."""
    kind = {"device_kind": device.upper()}

    def split(samplers, trainers, **more):
        return {
            "resources": {**kind, "devices": samplers + trainers},
            "placement": {"policy": "FIXED", "samplers": samplers, "standby": "OFF", **more},
        }

    def named(*names):
        return {
            "resources": {"device_names": list(names)},
            "placement": {"policy": "FIXED", "samplers": 1, "standby": "OFF"},
        }

    first = f"{device}:0/0"
    return {
        "cpu": {"resources": {"device_kind": "CPU", "devices": 2}},
        f"1+1 {device}": split(1, 1),
        f"2+2 {device}": split(2, 2),
        f"2+1 {device}, standby Trainers": split(2, 1, standby="ALWAYS"),
        f"one {device}, alternating": {"resources": {**kind, "devices": 1}},
        f"CPU samples, {device} trains": named("cpu:0", first),
        f"{device} samples, CPU trains": named(first, "cpu:0"),
    }


def trains_on(name):
    return "cpu" if name == "cpu" or name.endswith("CPU trains") else "device"


def parser_of(description):
    """What every script here that starts a daemon is told."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for name in ("node", "addons", "data", "folder"):
        parser.add_argument(f"--{name}", type=lambda text: Path(text).absolute(), required=True)
    parser.add_argument("--device", choices=("cuda", "sim"), required=True)
    return parser


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    digests, accuracies, wrong = {}, {}, []
    with Daemon(options) as daemon:
        daemon.gnnctl("dataset", "import", options.data, "--id", "graph")
        for index, (name, members) in enumerate(crews(options.device).items()):
            spec = {
                "dataset": "graph",
                "model": {"type": "GRAPHSAGE", "hidden_dim": 64, "dropout": 0.5},
                "sampling": {"fanouts": [10, 5]},
                "cache": {"ratio": 0.2},
                "training": {"epochs": options.epochs, "batch_size": 32, "batches_per_step": 1,
                             "random_seed": 7},
                **members,
            }
            job, stages = daemon.run(f"job-{index}", spec)
            result = job["result"]
            digests.setdefault(trains_on(name), {})[name] = result["parametersSha256"]
            accuracies[name] = float(result["testAccuracyBest"])
            seconds = sum(float(epoch["durationMs"]) for epoch in job["epochs"]) / 1000
            say(f"{name}: test accuracy", round(accuracies[name], 4))
            say(f"{name}: epochs", round(seconds, 3), "s")
            for stage, busy in sorted(stages.items()):
                if busy > 0:
                    say(f"{name}: stage {stage}", round(busy, 3), "s")
            say(f"{name}: model", result["parametersSha256"][:16])
    for kind, models in digests.items():
        if len(set(models.values())) > 1:
            wrong.append(f"models that train on the {kind} differ: {models}")
    spread = max(accuracies.values()) - min(accuracies.values())
    say("largest difference of test accuracies", round(spread, 4))
    if spread > 0.05:
        wrong.append(f"test accuracies differ by {spread:.3f}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
