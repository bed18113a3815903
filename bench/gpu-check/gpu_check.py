#!/usr/bin/env python3
"""What a machine with a GPU shows of gnnd, in stages: each a process of its own with a deadline.

  bench/gpu-check/gpu_check.py [--stages probe,build,...] [--out DIR] [--device cuda|sim]
  bench/gpu-check/gpu_check.py --bundle FILE.tar.xz     all that such a machine needs of this clone

Needs Python 3.9 with PyTorch, CMake, ninja and a C++ compiler, and for --device cuda a GPU and
nvcc; unpacked from a bundle, no Node and no network. DIR/report.json and DIR/report.md are written
after every stage, so that a stage that hangs costs its own deadline and nothing of what others
found. --device sim rehearses what there is on simulated devices. Stages: probe, build, plugin
(loads, opens, registers), operators (each beside its twin on the processor), sanitizer (the same
under compute-sanitizer), jobs (whole ones, on real data), measure (rates beside their limits).
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import bundle

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = (
    "attributes", "register", "copy", "zero-copy", "context", "turns", "kill", "primitives")


@dataclass
class Run:
    """One process: its deadline, and how it ended."""

    name: str
    command: list
    deadline_s: float
    seconds: float = 0.0
    outcome: str = ""  # OK, FAILED, TIMEOUT, MISSING
    output: str = ""
    answers: list = field(default_factory=list)


@dataclass
class Stage:
    name: str
    about: str
    runs: list = field(default_factory=list)
    skipped: str = ""

    @property
    def outcome(self):
        if self.skipped:
            return "SKIPPED"
        bad = [run.outcome for run in self.runs if run.outcome != "OK"]
        return bad[0] if bad else "OK"


class Check:
    """What the stages share: where they work, for which device, and the report."""

    def __init__(self, out, device):
        self.out = out
        self.device = device
        self.build = out / "build"
        self.stages = []
        site = ROOT / "site/lib/python/packages"
        # Of a bundle; elsewhere this Python has them.
        self.libraries = {"PYTHONPATH": str(site)} if site.exists() else {}
        out.mkdir(parents=True, exist_ok=True)

    def run(self, stage, name, command, deadline_s, env=None):
        """Runs a command in a session of its own; all of it is killed at the deadline."""
        run = Run(name, [str(part) for part in command], deadline_s)
        stage.runs.append(run)
        begin = time.monotonic()
        try:
            process = subprocess.Popen(
                run.command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
                env={**os.environ, **(env or {})},
            )
        except OSError as error:
            run.outcome, run.output = "MISSING", str(error)
            return run
        try:
            run.output, _ = process.communicate(timeout=deadline_s)
            run.outcome = "OK" if process.returncode == 0 else "FAILED"
        except subprocess.TimeoutExpired:
            run.outcome = "TIMEOUT"
            os.killpg(process.pid, signal.SIGKILL)
            run.output = drained(process)
        run.seconds = time.monotonic() - begin
        run.answers = answers_in(run.output)
        self.report()
        return run

    def report(self):
        """Both files, replaced whole."""
        facts = {
            "device": self.device,
            "stages": [
                {
                    "name": stage.name,
                    "outcome": stage.outcome,
                    "skipped": stage.skipped,
                    "runs": [vars(run) | {"output": run.output[-4000:]} for run in stage.runs],
                }
                for stage in self.stages
            ],
        }
        replace(self.out / "report.json", json.dumps(facts, indent=2) + "\n")
        replace(self.out / "report.md", markdown_of(self))


def drained(process):
    """What a killed process had written; a child of its that escaped may hold the pipe."""
    try:
        return process.communicate(timeout=5)[0] or ""
    except subprocess.TimeoutExpired:
        return ""


def replace(path, text):
    temporary = path.with_suffix(path.suffix + ".new")
    temporary.write_text(text)
    temporary.replace(path)


def answers_in(output):
    """Lines of JSON with a name."""
    answers = []
    for line in output.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and {"name", "value", "unit"} <= value.keys():
            answers.append(value)
    return answers


def markdown_of(check):
    lines = [f"# gpu-check on {check.device}", ""]
    lines += ["| stage | outcome | seconds |", "|---|---|---|"]
    for stage in check.stages:
        seconds = sum(run.seconds for run in stage.runs)
        lines.append(f"| {stage.name} | {stage.outcome} | {seconds:.0f} |")
    for stage in check.stages:
        lines += ["", f"## {stage.name}", "", stage.about, ""]
        if stage.skipped:
            lines += [f"Skipped: {stage.skipped}.", ""]
        for run in stage.runs:
            lines += [f"### {run.name}: {run.outcome}, {run.seconds:.1f} s", ""]
            if run.answers:
                lines += ["| what | value | unit |", "|---|---|---|"]
                for answer in run.answers:
                    lines.append("| {name} | {value} | {unit} |".format(**answer))
                lines.append("")
            if run.outcome != "OK":
                lines += ["```", run.output[-2000:].strip(), "```", ""]
    return "\n".join(lines) + "\n"


def probe(check, stage):
    """The first questions: attributes, pinning, bandwidths, contexts, primitives."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    binary = check.out / "probe"
    source = ROOT / "bench/gpu-check/probe.cu"
    # For the GPU that is there; without one, to see that it compiles.
    arch = "native" if check.device == "cuda" else "sm_90"
    flags = ["-O2", "-std=c++20", f"-arch={arch}", "-cudart", "static", "-Werror", "all-warnings"]
    made = check.run(stage, "compile", [nvcc, *flags, "-o", binary, source], 120)
    if made.outcome != "OK" or check.device != "cuda":
        return
    for question in QUESTIONS:
        check.run(stage, question, [binary, question], 60)
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is not None:
        seen = check.run(stage, "sanitizer", [sanitizer, binary, "fault"], 60)
        # It must find the planted fault: then it works here.
        found = "Invalid __global__ read" in seen.output
        seen.outcome = "OK" if found else "FAILED"


def has_torch(check):
    """Whether this Python has PyTorch and the libraries of matrix products, for jobs."""
    code = "import torch, scipy_openblas32, importlib.metadata as m; m.files('onednn-cpu-gomp')"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True,
        env={**os.environ, **check.libraries}).returncode == 0


def has_cuda_torch(check):
    """Whether this Python's PyTorch, which the Trainer is linked with, computes on the GPU."""
    code = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True,
        env={**os.environ, **check.libraries}).returncode == 0


def architecture_here():
    """"90" for the first GPU; None where nvidia-smi does not say."""
    asked = subprocess.run(
        ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"],
        capture_output=True, text=True) if shutil.which("nvidia-smi") else None
    first = asked.stdout.split("\n")[0].strip() if asked is not None else ""
    return first.replace(".", "") or None


def build(check, stage):
    """The plug-ins, the probe and the tests of devices, for the GPU that is there."""
    trains = has_torch(check)
    whole = "ON" if trains else "OFF"
    options = [f"-DGNND_ADDON={whole}", f"-DGNND_TRAIN={whole}", "-DGNND_TESTS=ON",
               "-DGNND_BENCH=ON", f"-DGNND_PYTHON={sys.executable}"]
    doctest = next((ROOT / folder for folder in ("doctest", ".cache/doctest/usr/include")
                    if (ROOT / folder / "doctest/doctest.h").exists()), None)
    if doctest is not None:
        options.append(f"-DDOCTEST_INCLUDE={doctest}")
    architecture = architecture_here() if check.device == "cuda" else None
    if architecture is not None:
        options.append(f"-DGNND_CUDA_ARCHITECTURES={architecture}")
    made = check.run(
        stage, "configure", ["cmake", "-G", "Ninja", "-S", ROOT, "-B", check.build, *options], 60,
        check.libraries)
    if made.outcome != "OK":
        return
    # What is asked first is built first: a compiler that fails late costs the last stages alone.
    first = [f"gnnd_{check.device}", "gnnd_sim", "gnnd_probe", "gnnd_device_test", "device_bench"]
    check.run(stage, "compile", ["ninja", "-C", check.build, *first], 540)
    if trains:
        addons = ["gnnd_core_addon", "gnnd_train_addon"]
        check.run(stage, "compile addons", ["ninja", "-C", check.build, *addons], 540)
        check.run(stage, "compile tests of Trainers", ["ninja", "-C", check.build, "gnnd_train_test"],
                  540)


def plugin(check, stage):
    """The plug-in answers: what there is, each device opened, a page registered."""
    if not (check.build / "gnnd_probe").exists():
        stage.skipped = "the stage build made no gnnd_probe"
        return
    binary = check.build / f"gnnd_{check.device}.so"
    asked = check.run(stage, "devices", [check.build / "gnnd_probe", binary, "--open"], 60)
    try:
        answer = json.loads(asked.output)
    except ValueError:
        asked.outcome = "FAILED"
        return
    if answer["answer"]["code"] != "OK":
        asked.outcome = "FAILED"
    for device in answer.get("devices", []):
        for step in ("answer", "opened", "registered"):
            code = device[step]["code"]
            asked.answers.append({"name": f"{device['name']} {step}", "value": code, "unit": ""})
            if step != "registered" and code != "OK":
                asked.outcome = "FAILED"


def operators(check, stage):
    """Every operator beside its twin on the processor, bit for bit, and what goes wrong."""
    binary = check.build / "gnnd_device_test"
    if not binary.exists():
        stage.skipped = "the stage build made no gnnd_device_test"
        return
    check.run(stage, "tests", [binary], 300, {"GNND_TEST_DEVICE": check.device})
    trainer = check.build / "gnnd_train_test"
    if trainer.exists() and (check.device != "cuda" or has_cuda_torch(check)):
        # Whole batches and evaluations of a Trainer, with PyTorch's matrix products.
        files = "--source-file=*device_test.cc,*device_evaluation_test.cc"
        check.run(stage, "whole batches and evaluations", [trainer, files], 300,
                  check.libraries | {"GNND_TEST_DEVICE": check.device})


def sanitizer(check, stage):
    """The same with every access checked, and races within blocks."""
    tool, binary = shutil.which("compute-sanitizer"), check.build / "gnnd_device_test"
    if tool is None or not binary.exists():
        stage.skipped = "no compute-sanitizer here" if tool is None else "nothing was built"
        return
    for kind in ("memcheck", "racecheck"):
        flags = ["--tool", kind, "--error-exitcode", "1"]
        check.run(stage, kind, [tool, *flags, binary], 290, {"GNND_TEST_DEVICE": check.device})


def daemon_flags(check):
    """What a script needs to start a daemon; a sentence where it cannot."""
    node = ROOT / "bin/node" if (ROOT / "bin/node").exists() else shutil.which("node")
    missing = [name for name in ("gnnd_core.node", "gnnd_train.node")
               if not (check.build / name).exists()]
    if node is None or missing or not (ROOT / "dist/main.js").exists():
        return f"no Node, no dist/ or not built: {', '.join(missing)}"
    return ["--node", node, "--addons", check.build, "--device", check.device]


def jobs(check, stage):
    """Whole jobs of several crews, on real data: one model for those of one kind."""
    flags = daemon_flags(check)
    if isinstance(flags, str):
        stage.skipped = flags
        return
    script = ROOT / "bench/gpu-check/jobs.py"
    flags += ["--data", ROOT / "test/fixtures/cora.npz", "--folder", check.out / "jobs"]
    check.run(stage, "crews", [sys.executable, script, *flags], 540, check.libraries)


def measure(check, stage):
    """Sampling, gathers and copies beside what they are bounded by; an epoch beside a peer's."""
    binary = check.build / "device_bench"
    if not binary.exists():
        stage.skipped = "the stage build made no device_bench"
        return
    plugin = check.build / f"gnnd_{check.device}.so"
    # A simulated device shows that it runs, and no speed.
    size = "full" if check.device == "cuda" else "small"
    for what in ("copy", "gather", "sample"):
        check.run(stage, what, [binary, plugin, what, size], 180)
    flags = daemon_flags(check)
    if not isinstance(flags, str):
        measure_epoch(check, stage, flags)


def measure_epoch(check, stage, flags):
    """Of a graph as large as ogbn-products, beside torch_geometric's on the same device."""
    data = check.out / "products"
    scale, batch = ("1.0", "1024") if check.device == "cuda" else ("0.002", "128")
    graph = [sys.executable, ROOT / "bench/products/graph.py", data, "--scale", scale]
    if check.run(stage, "graph", graph, 300, check.libraries).outcome != "OK":
        return
    same = ["--data", data, "--batch", batch]
    folder = ROOT / "bench/gpu-check"
    ours = [folder / "epoch.py", *flags, *same, "--folder", check.out / "epoch"]
    check.run(stage, "epoch", [sys.executable, *ours], 540, check.libraries)
    peer = [folder / "pyg_epoch.py", *same, "--device", check.device]
    check.run(stage, "epoch, torch_geometric", [sys.executable, *peer], 540, check.libraries)
    shutil.rmtree(check.out / "epoch", ignore_errors=True)


STAGES = {"probe": probe, "build": build, "plugin": plugin, "operators": operators,
          "sanitizer": sanitizer, "jobs": jobs, "measure": measure}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", default=",".join(STAGES), help="which, in this order")
    parser.add_argument("--out", type=Path, default=Path("gpu-check"))
    parser.add_argument("--device", choices=("cuda", "sim"), default="cuda")
    parser.add_argument("--bundle", type=Path, help="write the bundle there and end")
    options = parser.parse_args()
    if options.bundle is not None:
        size = bundle.write(options.bundle)
        print(f"{options.bundle}: {size / 1e6:.1f} MB")
        return 1 if options.bundle.suffix == ".xz" and size > bundle.MAX_BYTES else 0
    names = options.stages.split(",")
    unknown = [name for name in names if name not in STAGES]
    if unknown:
        parser.error(f"no such stage: {', '.join(unknown)}; there are {', '.join(STAGES)}")
    check = Check(options.out.resolve(), options.device)
    for name in names:
        stage = Stage(name, STAGES[name].__doc__)
        check.stages.append(stage)
        STAGES[name](check, stage)
        check.report()
        print(f"{name}: {stage.outcome}", flush=True)
    print(f"{check.out / 'report.md'}")
    return 0 if all(stage.outcome in ("OK", "SKIPPED") for stage in check.stages) else 1


if __name__ == "__main__":
    sys.exit(main())
