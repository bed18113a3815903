"""`gnnd serve` as scripts of gpu-check start it, and how they answer."""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_S = 60
GOING_ON = ("JOB_STATE_PENDING", "JOB_STATE_PREPARING", "JOB_STATE_RUNNING")


def say(name, value, unit=""):
    print(json.dumps({"name": name, "value": value, "unit": unit}), flush=True)


def answered(main):
    """Its exit code; whatever went wrong is a sentence, not a trace."""
    try:
        return main()
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        print(f"{Path(sys.argv[0]).name}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


class Daemon:
    """With its state in a folder, until it is left. `logical`: devices as --cuda-devices has them;
    else of two GPUs two each, of a single one four."""

    def __init__(self, options, logical=None):
        self.node, self.device, self.addons = options.node, options.device, options.addons
        self.logical = logical
        self.folder = options.folder
        self.socket = f"unix:{self.folder / 'gnnd.sock'}"
        self.environment = {**os.environ, "GNND_ADDON_DIR": str(options.addons)}
        options.folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self):
        logical = self.logical or self.logical_devices()
        flags = [
            "--state-dir", self.folder / "state", "--listen", self.socket,
            "--metrics-listen", "127.0.0.1:0", "--cpu-devices", "2", "--share-cores",
            "--cuda-devices", logical if self.device == "cuda" else "none", "--share-gpus", "true",
            *(["--sim-devices", logical] if self.device == "sim" else []),
        ]
        self.log = open(self.folder / "daemon.log", "w", encoding="utf8")
        self.process = subprocess.Popen(
            [self.node, ROOT / "dist/main.js", "serve", *map(str, flags)],
            stdout=subprocess.PIPE, stderr=self.log, text=True, env=self.environment)
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
        self.process.stdout.close()
        self.log.close()

    def logical_devices(self):
        if self.device == "sim":
            return "0,0,1,1"
        plugin = self.addons / f"gnnd_{self.device}.so"
        asked = subprocess.run([self.addons / "gnnd_probe", plugin], capture_output=True, text=True)
        return "0,0,1,1" if len(json.loads(asked.stdout)["devices"]) > 1 else "0,0,0,0"

    def gnnctl(self, *words):
        done = subprocess.run(
            [self.node, ROOT / "dist/cli/main.js", "--address", self.socket, *map(str, words)],
            capture_output=True, text=True, env=self.environment)
        if done.returncode != 0:
            raise SystemExit(f"gnnctl {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
        return done.stdout

    def stages(self):
        """Busy seconds of each stage so far."""
        try:
            with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=10) as response:
                text = response.read().decode()
        except urllib.error.URLError as error:
            raise SystemExit(f"http://{self.metrics}/metrics: {error.reason}") from None
        found = re.findall(r'^gnnd_stage_seconds_total\{[^}]*stage="(\w+)"[^}]*\} (\S+)', text, re.M)
        stages = {}
        for stage, seconds in found:
            stages[stage] = stages.get(stage, 0) + float(seconds)
        return stages

    def job(self, name):
        return json.loads(self.gnnctl("job", "get", name, "-o", "json"))

    def create(self, name, spec):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(spec))
        self.gnnctl("job", "create", "-f", path, "--id", name)

    def end_of(self, name, each=lambda job: None):
        """The finished job as JSON, and its stages; `each` sees it while it goes on."""
        stages = {}
        while True:
            job = self.job(name)
            if job["state"] not in GOING_ON:
                break
            each(job)
            stages = self.stages() or stages
            time.sleep(0.2)
        if job["state"] != "JOB_STATE_SUCCEEDED":
            raise SystemExit(f"{name}: {job['state']} {job.get('reason')} {job.get('message')}")
        return job, stages

    def run(self, name, spec):
        self.create(name, spec)
        return self.end_of(name)


def parser_of(description):
    """What every script here that starts a daemon is told."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for name in ("node", "addons", "data", "folder"):
        parser.add_argument(f"--{name}", type=lambda text: Path(text).absolute(), required=True)
    parser.add_argument("--device", choices=("cuda", "sim"), required=True)
    return parser
