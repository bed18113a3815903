"""What a machine with a GPU and without a network needs of this clone, in one archive: sources, the
built daemon with its packages and Node, the plug-in and tests that nvcc and a compiler made here, the
libraries of matrix products, a small graph. PyTorch, CMake, ninja and a compiler, with which the
Trainer is built there, are that machine's own (docs/decisions/0110)."""

import importlib.metadata
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from facts import tool

ROOT = Path(__file__).resolve().parents[2]
MAX_BYTES = 60 * 10**6
SOURCES = ("CMakeLists.txt", "native", "bench/gpu-check", "bench/native",
           "bench/products/graph.py", "package.json", "LICENSE",
           "test/fixtures/cora.npz")
# Beside the packages that the daemon needs when it runs.
HEADERS = ("node-addon-api", "node-api-headers")
LIBRARIES = ("scipy-openblas32", "onednn-cpu-gomp", "onednn-devel-cpu-gomp")
# Sources of a package that is built already, and readers of files that no stage has.
LEFT_OUT = ("node_modules/better-sqlite3/deps", "node_modules/better-sqlite3/src",
            "node_modules/@duckdb")
# What is compiled here: no stage of a GPU waits for nvcc. Ampere, Hopper, Blackwell.
ARCHITECTURES = ("80", "90", "100")
PREBUILT = ("gnnd_cuda.so", "gnnd_sim.so", "posing/gnnd_cuda.so", "gnnd_probe", "gnnd_fake_nvml.so",
            "gnnd_device_test", "device_bench", "probe")
TARGETS = ("gnnd_cuda", "gnnd_sim", "gnnd_posing", "gnnd_probe", "gnnd_fake_nvml",
           "gnnd_device_test", "device_bench")


def sources():
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", *SOURCES], check=True, capture_output=True, text=True)
    return [(ROOT / name, name) for name in listed.stdout.split("\0") if name]


def packages():
    """Folders of node_modules that run, or that addons are compiled with."""
    listed = subprocess.run(
        ["npm", "ls", "--omit=dev", "--all", "--parseable"], cwd=ROOT, capture_output=True,
        text=True)
    folders = {Path(line) for line in listed.stdout.split("\n")[1:] if line}
    folders |= {ROOT / "node_modules" / name for name in HEADERS}
    return sorted(folders)


def files_of(folder):
    """Without packages inside it, which are listed by themselves."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        inner = path.relative_to(folder).parts
        if path.is_file() and "node_modules" not in inner and not name.startswith(LEFT_OUT):
            yield path, name


def libraries():
    """Wheels as they were installed, below site/: what stands beside them keeps its place."""
    base = Path("site/lib/python/packages")
    first = {}
    for library in LIBRARIES:
        for file in importlib.metadata.files(library) or ():
            path = Path(file.locate()).resolve()
            if not path.is_file() or path.suffix == ".pyc":
                continue
            name = (base / str(file)).as_posix()
            parts = []
            for part in name.split("/"):
                parts = parts[:-1] if part == ".." else [*parts, part]
            # Copies of one library under several names are links in the archive.
            key = (path.stat().st_size, path.parent) if ".so" in path.name else path
            yield path, "/".join(parts), first.setdefault(key, "/".join(parts))


def doctest():
    return next((folder / "doctest/doctest.h"
                 for folder in (ROOT / ".cache/doctest/usr/include", Path("/usr/include"))
                 if (folder / "doctest/doctest.h").exists()), None)


def made(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def prebuild():
    """Compiles what PREBUILT names: minutes of nvcc, the first time. Its folder."""
    nvcc = tool("nvcc")
    if nvcc is None:
        raise SystemExit("nvcc is missing: install CUDA's toolkit, or name a folder that has "
                         f"{', '.join(PREBUILT)} by --prebuilt")
    folder = ROOT / "build/gpu-check"
    print(f"compiling the plug-in for sm_{', sm_'.join(ARCHITECTURES)} in {folder}", flush=True)
    options = ["-DGNND_ADDON=OFF", "-DGNND_TRAIN=OFF", "-DGNND_TESTS=ON", "-DGNND_BENCH=ON",
               "-DGNND_CUDA=ON", f"-DGNND_CUDA_ARCHITECTURES={';'.join(ARCHITECTURES)}"]
    if doctest() is not None:
        options.append(f"-DDOCTEST_INCLUDE={doctest().parents[1]}")
    if shutil.which("ccache") is not None:
        options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    made("cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, *options)
    made("ninja", "-C", folder, *TARGETS)
    code = [part for each in ARCHITECTURES
            for part in ("-gencode", f"arch=compute_{each},code=sm_{each}")]
    made(nvcc, "-O2", "-std=c++20", *code, "-cudart", "static", "-Werror", "all-warnings",
         "-o", folder / "probe", ROOT / "bench/gpu-check/probe.cu")
    return folder


def commit():
    """Which one this clone has, and whether files of it were changed."""
    said = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(said, capture_output=True, text=True).stdout.strip() + "\n"


def open_archive(path):
    return tarfile.open(path, "w:xz", preset=6) if path.suffix == ".xz" else tarfile.open(path, "w")


def write(path, prebuilt=None):
    """Its size in bytes; compressed if it is called so, which takes a minute or two. `prebuilt` is a
    folder with what else is compiled now. SystemExit with a sentence where something is missing."""
    if not (ROOT / "dist/main.js").exists():
        raise SystemExit("dist/main.js is missing: npm run setup")
    try:
        wheels = list(libraries())
    except importlib.metadata.PackageNotFoundError as error:
        raise SystemExit(
            f"{error.name} is missing: run this with the Python that has gnnd's PyTorch "
            f"(.venv/bin/python)") from None
    compiled = prebuild() if prebuilt is None else prebuilt
    lacks = [name for name in PREBUILT if not (compiled / name).exists()]
    if lacks:
        raise SystemExit(f"{compiled} lacks {', '.join(lacks)}")
    with tempfile.TemporaryDirectory() as scratch, open_archive(path) as archive:
        for name in PREBUILT:
            stripped = Path(scratch) / name
            stripped.parent.mkdir(exist_ok=True)
            shutil.copy(compiled / name, stripped)
            subprocess.run(["strip", "--strip-debug", stripped], check=True)
            archive.add(stripped, f"gnnd/prebuilt/gpu-check/{name}")
        about = Path(scratch) / "COMMIT"
        about.write_text(commit())
        archive.add(about, "gnnd/COMMIT")
        node = Path(scratch) / "node"
        shutil.copy(shutil.which("node"), node)
        subprocess.run(["strip", node], check=True)
        archive.add(node, "gnnd/bin/node")
        for folder in (ROOT / "dist", *packages()):
            for file, name in files_of(folder):
                archive.add(file, f"gnnd/{name}")
        for file, name in sources():
            archive.add(file, f"gnnd/{name}")
        for file, name, original in wheels:
            if name == original:
                archive.add(file, f"gnnd/{name}")
                continue
            link = tarfile.TarInfo(f"gnnd/{name}")
            link.type, link.linkname = tarfile.LNKTYPE, f"gnnd/{original}"
            archive.addfile(link)
        if doctest() is not None:
            archive.add(doctest(), "gnnd/doctest/doctest/doctest.h")
    return path.stat().st_size
