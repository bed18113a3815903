"""The stages of gpu_check.py, the most telling first. Each is below ten minutes, needs nothing of the
others but what build makes, and may be run again."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Callable

from check import HERE, ROOT, asked
from facts import tool

# What the probe (probe.cu) is asked by whom.
FIRST_QUESTIONS = ("attributes", "register", "context")
RATES = ("copy", "zero-copy", "turns", "kill", "primitives")
# By file, what there is to be compiled and which target makes it: first what is needed first.
PARTS = {
    "the plug-in and tests of operators": (
        ("gnnd_sim.so", "gnnd_sim"),
        ("posing/gnnd_cuda.so", "gnnd_posing"),
        ("gnnd_probe", "gnnd_probe"),
        ("gnnd_fake_nvml.so", "gnnd_fake_nvml"),
        ("gnnd_device_test", "gnnd_device_test"),
        ("device_bench", "device_bench"),
    ),
    "addons": (
        ("gnnd_torch_probe", "gnnd_torch_probe"),
        ("gnnd_core.node", "gnnd_core_addon"),
        ("gnnd_train.node", "gnnd_train_addon"),
    ),
    "tests of Trainers": (("gnnd_train_device_test", "gnnd_train_device_test"),),
}


@dataclass
class Stage:
    name: str
    about: str
    expected_s: int  # with a GPU and 16 cores
    limit_s: int
    work: Callable


def build(check):
    """What is missing is compiled; the plug-in and the addons load; each device is opened."""
    parts = {name: [target for file, target in files if check.made(file) is None]
             for name, files in PARTS.items()}
    first = "the plug-in and tests of operators"
    if check.plugin is None and check.is_gpu:
        if tool("nvcc") is None:
            check.visit.skipped = ("no plug-in came with this, and nvcc is missing: unpack what "
                                   "gpu_check.py --bundle made, or install CUDA's toolkit")
            return
        parts[first].insert(0, "gnnd_cuda")
    # Those of Trainers that set-up makes have all of them.
    if check.made("gnnd_train_test") is not None:
        parts["tests of Trainers"] = []
    wanted = {name: targets for name, targets in parts.items() if targets}
    # What needs no PyTorch is asked for an answer before what does is compiled.
    early = wanted.pop(first, None)
    if early is None or compiled(check, {first: early}, with_torch=False):
        opened(check)
        asked_gpu(check, FIRST_QUESTIONS)
    if wanted:
        why = lacks_torch(check)
        if why is not None:
            check.visit.skipped = f"the Trainer and the addons: {why}"
            return
        if not compiled(check, wanted, with_torch=True):
            return
    addons_load(check)


def lacks_torch(check):
    """Why the Trainer cannot be compiled with this Python; None where it can."""
    code = ("import importlib.util as u, importlib.metadata as m\n"
            "print(*[n for n in ('torch', 'scipy_openblas32') if u.find_spec(n) is None])")
    lacks = asked([sys.executable, "-c", code], check.libraries)
    if lacks == "":
        return None
    return (f"{sys.executable} lacks {lacks}: run gpu_check.py with the Python that has PyTorch, "
            "from a bundle, which has the other libraries")


def compiled(check, parts, with_torch):
    """Whether all of them were."""
    for name in ("cmake", "ninja"):
        if shutil.which(name) is None:
            check.visit.skipped = f"{name} is missing: pip install {name}, or apt-get install it"
            return False
    whole = "ON" if with_torch else "OFF"
    options = [f"-DGNND_ADDON={whole}", f"-DGNND_TRAIN={whole}", "-DGNND_TESTS=ON",
               "-DGNND_BENCH=ON", "-DGNND_CUDA=OFF", f"-DGNND_PYTHON={sys.executable}"]
    doctest = next((ROOT / folder for folder in ("doctest", ".cache/doctest/usr/include")
                    if (ROOT / folder / "doctest/doctest.h").exists()), None)
    if doctest is not None:
        options.append(f"-DDOCTEST_INCLUDE={doctest}")
    architecture = architecture_here() if check.is_gpu else None
    if architecture is not None:
        options.append(f"-DGNND_CUDA_ARCHITECTURES={architecture}")
    command = ["cmake", "-G", "Ninja", "-S", ROOT, "-B", check.build, *options]
    if check.run("configure", command, 60, check.libraries).outcome != "OK":
        return False
    made = [check.run(f"compile {name}", ["ninja", "-C", check.build, *targets], 540)
            for name, targets in parts.items()]
    # Tests take it from beside themselves.
    if not (check.build / "gnnd_sim.so").exists():
        (check.build / "gnnd_sim.so").symlink_to(check.made("gnnd_sim.so"))
    return all(run.outcome == "OK" for run in made)


def architecture_here():
    """"90" for the first GPU; None where nvidia-smi does not say."""
    said = asked(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"])
    return said.split("\n")[0].strip().replace(".", "") or None


def opened(check):
    """The plug-in answers: what there is, each device opened, a page registered."""
    run = check.run("the plug-in", [check.made("gnnd_probe"), check.plugin, "--open"], 60)
    try:
        answer = json.loads(run.output)
    except ValueError:
        run.outcome = "FAILED"
        return
    if answer["answer"]["code"] != "OK":
        run.outcome = "FAILED"
        run.output = f"{answer['answer']['message']}; {answer['answer']['remedy']}"
    say = run.answers.append
    say({"name": "build", "value": answer.get("build", ""), "unit": ""})
    for device in answer.get("devices", []):
        for step in ("answer", "opened", "registered"):
            code = device[step]["code"]
            say({"name": f"{device['name']} {step}", "value": code, "unit": ""})
            if step != "registered" and code != "OK":
                run.outcome = "FAILED"
                run.output = f"{device[step]['message']}; {device[step]['remedy']}"
    check.report()


def addons_load(check):
    """Into Node, with the libraries that they find."""
    folder = check.addons()
    if isinstance(folder, str):
        check.visit.skipped = folder
        return
    for name in ("gnnd_core", "gnnd_train"):
        code = "const addon = require(process.argv[1]); if (!addon) process.exit(1)"
        check.run(f"load {name}", [check.node(), "-e", code, folder / f"{name}.node"], 60)
    torch_computes(check)


def torch_computes(check):
    """The libtorch that Trainers are linked with computes on each GPU that the driver shows."""
    run = check.run("libtorch", [check.made("gnnd_torch_probe")], 60)
    try:
        answer = json.loads(run.output)
    except ValueError:
        run.outcome = "FAILED"
        return
    run.answers.append({"name": "PyTorch", "value": answer["torch"], "unit": ""})
    run.answers.append({"name": "its CUDA", "value": answer["cuda"], "unit": ""})
    for index, device in enumerate(answer["devices"]):
        said = device["message"] or device["code"]
        run.answers.append({"name": f"a product on GPU {index}", "value": said, "unit": ""})
    computes = [device["code"] == "OK" for device in answer["devices"]]
    if check.is_gpu and (not computes or not all(computes)):
        run.outcome = "FAILED"
        run.output = "jobs get no GPU on which this PyTorch does not compute: install one with CUDA"
    check.report()


def asked_gpu(check, questions):
    """Of a GPU itself, by a program without any of gnnd's code."""
    if not check.is_gpu:
        return
    binary = check.made("probe")
    if binary is None:
        nvcc = tool("nvcc")
        if nvcc is None:
            check.visit.skipped = "questions to the GPU: no probe in a bundle, and no nvcc"
            return
        binary = check.out / "probe"
        flags = ["-O2", "-std=c++20", "-arch=native", "-cudart", "static"]
        made = check.run("compile probe", [nvcc, *flags, "-o", binary, HERE / "probe.cu"], 120)
        if made.outcome != "OK":
            return
    for question in questions:
        check.run(question, [binary, question], 60)


def operators(check):
    """Every operator, sample and gather beside its twin on the processor, bit for bit; whole batches
    and evaluations of a Trainer beside the processor's."""
    binary = check.made("gnnd_device_test")
    if binary is None or check.plugin is None:
        check.visit.skipped = "no gnnd_device_test or no plug-in: the stage build makes them"
        return
    device = {"GNND_TEST_DEVICE": str(check.plugin)}
    counted(check.run("operators", [binary], 280, device))
    trainer = check.made("gnnd_train_device_test") or check.made("gnnd_train_test")
    if trainer is None:
        check.visit.skipped = "batches of a Trainer: the stage build makes gnnd_train_device_test"
        return
    why = no_cuda_torch(check)
    if why is not None:
        check.visit.skipped = f"batches of a Trainer: {why}"
        return
    command = [trainer, "--source-file=*/device_*test.cc"]
    counted(check.run("a Trainer's batches and evaluations", command, 280,
                      check.libraries | device))


def counted(run):
    """What doctest counts, as answers; and no more of its output than it says at the end."""
    for line in run.output.splitlines():
        if line.startswith("[doctest]") and line.count("|") >= 2:
            all_of, *counts = (part.strip() for part in line[9:].split("|"))
            name, _, total = all_of.partition(":")
            counts = ", ".join(part for part in counts if part)
            run.answers.append({"name": name, "value": f"{total.strip()}: {counts}", "unit": ""})


def no_cuda_torch(check):
    """Why this Python's PyTorch, with which the Trainer is linked, multiplies nothing on the GPU."""
    if not check.is_gpu:
        return None
    code = "import torch; print('yes' if torch.cuda.is_available() else torch.__version__)"
    said = asked([sys.executable, "-c", code], check.libraries, timeout_s=120)
    if said == "yes":
        return None
    return f"PyTorch {said or 'is missing, or'} sees no GPU: install one for this driver's CUDA"


def sanitizer(check):
    """Operators with every access checked, then races within blocks, by compute-sanitizer."""
    checker, binary = tool("compute-sanitizer"), check.made("gnnd_device_test")
    if not check.is_gpu or checker is None:
        check.visit.skipped = (
            "compute-sanitizer looks at GPUs alone" if not check.is_gpu else
            "no compute-sanitizer on the PATH or in /usr/local/cuda/bin (it comes with CUDA's "
            "toolkit)")
        return
    if binary is None or check.plugin is None:
        check.visit.skipped = "no gnnd_device_test or no plug-in: the stage build makes them"
        return
    if check.made("probe") is not None:
        seen = check.run("a planted fault", [checker, check.made("probe"), "fault"], 60)
        # It must find it: then it works here.
        seen.outcome = "OK" if "Invalid __global__ read" in seen.output else "FAILED"
    for kind, deadline_s in (("memcheck", 240), ("racecheck", 260)):
        # Tests ask for what is refused (memory that may not be pinned): that is no fault.
        flags = ["--tool", kind, "--error-exitcode", "1"]
        if kind == "memcheck":
            flags += ["--report-api-errors", "no"]
        counted(check.run(kind, [checker, *flags, binary], deadline_s,
                          {"GNND_TEST_DEVICE": str(check.plugin)}))


def with_daemon(check, name, script, *words, deadline_s):
    """A script that starts a daemon, or a sentence why it cannot."""
    addons = check.addons()
    if isinstance(addons, str):
        check.visit.skipped = addons
        return None
    folder = check.out / script.removesuffix(".py")
    flags = ["--node", check.node(), "--addons", addons, "--device", check.device,
             "--folder", folder]
    run = check.python(name, script, *flags, *words, deadline_s=deadline_s)
    shutil.rmtree(folder / "state", ignore_errors=True)
    return run


CORA = ROOT / "test/fixtures/cora.npz"


def epochs(check, of_gpu):
    """So many on a GPU; a simulated device takes its time."""
    return ["--epochs", str(of_gpu if check.is_gpu else 5)]


def job(check):
    """One whole job on real data: a Sampler and a Trainer on the device, beside the CPU's metrics."""
    with_daemon(check, "a whole job", "jobs.py", "whole", "--data", CORA, *epochs(check, 20),
                deadline_s=300)


def crews(check):
    """Several Samplers and Trainers on one GPU (cuda:0/0, cuda:0/1, ...): every crew's model is the
    same, bit for bit, and the CPU's samples are."""
    with_daemon(check, "crews", "jobs.py", "crews", "--data", CORA, *epochs(check, 20),
                deadline_s=540)


def killed(check):
    """Trainers are killed (SIGKILL) in mid-job, one of two and the only one: the same bits."""
    with_daemon(check, "killed Trainers", "jobs.py", "killed", "--data", CORA, *epochs(check, 300),
                deadline_s=300)


def rates(check):
    """Copies and gathers beside the copy's limit, and edges sampled a second."""
    binary = check.made("device_bench")
    if binary is None or check.plugin is None:
        check.visit.skipped = "no device_bench or no plug-in: the stage build makes them"
        return
    # A simulated device shows that it runs, and no speed.
    size = "full" if check.is_gpu else "small"
    for what in ("copy", "gather", "sample"):
        check.run(what, [binary, check.plugin, what, size], 120)
    asked_gpu(check, RATES)


def epoch(check):
    """An epoch of a graph as large as ogbn-products, beside torch_geometric's loader on the GPU."""
    data = check.out / "products"
    scale, batch = ("1.0", "1024") if check.is_gpu else ("0.002", "128")
    graph = [sys.executable, ROOT / "bench/products/graph.py", data, "--scale", scale]
    if check.run("graph", graph, 240, check.libraries).outcome != "OK":
        return
    same = ["--data", data, "--batch", batch]
    with_daemon(check, "epoch", "epoch.py", *same, deadline_s=300)
    peer = ["--device", "cuda" if check.is_gpu else "sim"]
    check.python("epoch, torch_geometric", "pyg_epoch.py", *same, *peer, deadline_s=300)


def stages():
    """By name."""
    listed = (
        (build, 70, 570), (operators, 25, 570), (job, 10, 320), (sanitizer, 60, 570),
        (rates, 25, 400), (epoch, 100, 590), (crews, 25, 560), (killed, 30, 320))
    return {work.__name__: Stage(work.__name__, " ".join(work.__doc__.split()), expected, limit,
                                 work)
            for work, expected, limit in listed}
