"""Loads checkpoints into torch_geometric's models and compares logits.

usage: pyg_compat.py DIR                    DIR as gnnd_pyg_export writes it
       pyg_compat.py DATASET EXPORT...      a dataset's folder, and exports of all its nodes as
                                            gnnctl checkpoint export writes them

Prints one JSON line a model: {"name", "error"}, the largest absolute difference of a logit. Exits
with 1 when one exceeds 1e-4 or a state dict does not fit.
"""

import importlib.util
import json
import pathlib
import sys

import numpy as np
import torch

TOLERANCE = 1e-4

# The files alone: this Python has torch_geometric, and not what the package needs for a daemon.
_FOLDER = pathlib.Path(__file__).parents[3] / "src" / "python" / "gnnd"


def _module(name):
    spec = importlib.util.spec_from_file_location(f"gnnd_{name}", _FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"gnnd_{name}"] = module
    spec.loader.exec_module(module)
    return module


modules = _module("modules")
relations = _module("relations")


def load_safetensors(path):
    """The format is so plain that it needs no package: length, JSON header, data."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    state = {}
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    for name, entry in header.items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"])
        state[name] = torch.from_numpy(values.copy())
    return state


def standardized(x):
    """Every column with mean 0 and deviation 1, in float64."""
    wide = x.astype(np.float64)
    return ((wide - wide.mean(axis=0)) / (wide.std(axis=0) + 1e-12)).astype(np.float32)


class Graph:
    """indptr.npy, indices.npy (in-neighbours by row) and features.npy of a folder."""

    def __init__(self, folder):
        indptr = np.load(folder / "indptr.npy").astype(np.int64)
        sources = np.load(folder / "indices.npy").astype(np.int64)
        targets = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        self.edge_index = torch.from_numpy(np.stack([sources, targets]))
        self.features = np.load(folder / "features.npy")

    def compare(self, folder, about, standardize=False):
        """Prints the model's line; answers whether it agrees."""
        model = modules.made(about).eval()
        model.load_state_dict(load_safetensors(folder / "model.safetensors"))
        x = standardized(self.features) if standardize else self.features
        with torch.no_grad():
            expected = model(torch.from_numpy(x), self.edge_index).numpy()
        error = float(np.abs(np.load(folder / "logits.npy") - expected).max())
        print(json.dumps({"name": folder.name, "error": error}))
        return error <= TOLERANCE


class TypedGraph:
    """graph/x_TYPE.npy, graph/SOURCE__RELATION__DESTINATION.npy of a folder."""

    def __init__(self, folder):
        self.x, self.edges = {}, {}
        for file in sorted(folder.glob("*.npy")):
            array = torch.from_numpy(np.load(file))
            if file.stem.startswith("x_"):
                self.x[file.stem[2:]] = array
            else:
                self.edges[tuple(file.stem.split("__"))] = array

    def compare(self, folder, about):
        """Prints the model's line; answers whether it agrees."""
        model = relations.RelationModel(about, dropout=0.5)
        model.fill(load_safetensors(folder / "model.safetensors"))
        model.eval()
        with torch.no_grad():
            expected = model(self.x, self.edges).numpy()
        error = float(np.abs(np.load(folder / "logits.npy") - expected).max())
        print(json.dumps({"name": f"typed/{folder.name}", "error": error}))
        return error <= TOLERANCE


def main(folder, *exports):
    agree = []
    if exports:
        graph = Graph(folder)
        for path in exports:
            export = json.loads((path / "export.json").read_text())
            agree.append(
                graph.compare(path, export["model"], export["standardized_features"])
            )
    else:
        graph = Graph(folder / "graph")
        for path in sorted(folder.glob("*/model.json")):
            agree.append(graph.compare(path.parent, json.loads(path.read_text())))
        typed = TypedGraph(folder / "typed" / "graph")
        for path in sorted(folder.glob("typed/*/model.json")):
            agree.append(typed.compare(path.parent, json.loads(path.read_text())))
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
