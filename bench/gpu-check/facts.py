"""What machine this is: the head of the report."""

import json
import os
import platform
import re
import shutil
import sys
from pathlib import Path

from check import ROOT, asked

TORCH = """
import json, torch
facts = {"PyTorch": torch.__version__, "CUDA of PyTorch": torch.version.cuda or "none"}
facts["PyTorch sees a GPU"] = torch.cuda.is_available()
print(json.dumps(facts))
"""
PACKAGES = """
import importlib.metadata as m
found = []
for name in ("torch_geometric", "pyg_lib", "torch_sparse"):
    try:
        found.append(f"{name} {m.version(name)}")
    except m.PackageNotFoundError:
        pass
print(", ".join(found))
"""


def tool(name):
    """Where it is: on the PATH, or where CUDA's toolkit has it; or None."""
    found = shutil.which(name)
    usual = Path("/usr/local/cuda/bin") / name
    return found or (str(usual) if usual.exists() else None)


def version_of(name):
    path = tool(name)
    if path is None:
        return "none"
    numbers = re.findall(r"\d+\.\d+(?:\.\d+)*", asked([path, "--version"]))
    return numbers[0] if numbers else path


def gpu():
    """Of the first GPU, by nvidia-smi."""
    query = "name,driver_version,memory.total,compute_cap"
    line = asked(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]).split("\n")
    values = [value.strip() for value in line[0].split(",")]
    if len(values) != 4:
        why = "nvidia-smi" + (" gives no answer" if shutil.which("nvidia-smi") else " is missing")
        return {"device": f"a GPU ({why})"}
    more = f", the first of {len(line)}" if len(line) > 1 else ""
    name, driver, memory, architecture = values
    return {"device": f"{name}{more}", "driver": driver, "memory": memory,
            "architecture": f"sm_{architecture.replace('.', '')}"}


def facts_of(check):
    """A dictionary of texts."""
    if check.is_gpu:
        facts = gpu()
    elif check.rehearsed:
        facts = {"device": "a simulated device that poses as cuda:0 (a rehearsal)"}
    else:
        facts = {"device": "a simulated device"}
    torch = asked([sys.executable, "-c", TORCH], check.libraries, timeout_s=120)
    facts.update(json.loads(torch) if torch else {"PyTorch": f"none for {sys.executable}"})
    commit = ROOT / "COMMIT"
    facts.update({
        "torch_geometric": asked([sys.executable, "-c", PACKAGES]) or "none",
        "nvcc": version_of("nvcc"),
        "compute-sanitizer": version_of("compute-sanitizer"),
        "C++ compiler": version_of(os.environ.get("CXX", "c++")),
        "CMake, ninja": f"{version_of('cmake')}, {version_of('ninja')}",
        "Python": platform.python_version(),
        "glibc": platform.libc_ver()[1],
        "cores": len(os.sched_getaffinity(0)),
        "gnnd": commit.read_text().strip() if commit.exists() else asked(
            ["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"]) or "unknown",
    })
    return {name: str(value) for name, value in facts.items()}
