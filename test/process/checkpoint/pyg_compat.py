"""Loads checkpoints into torch_geometric's models and compares logits.

usage: pyg_compat.py DIR        DIR as gnnd_pyg_export writes it

Prints one JSON line a model: {"name", "error"}, the largest absolute difference of a logit. Exits
with 1 when one exceeds 1e-4 or a state dict does not fit.
"""

import json
import pathlib
import sys

import numpy as np
import torch
from torch_geometric.nn import models

TOLERANCE = 1e-4


class UnitRows(torch.nn.Module):
    """Rows divided by their Euclidean norms."""

    def forward(self, x):
        return torch.nn.functional.normalize(x)


def load_safetensors(path):
    """The format is so plain that it needs no package: length, JSON header, data."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    state = {}
    for name, entry in json.loads(data[8:start]).items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"])
        state[name] = torch.from_numpy(values.copy())
    return state


def build(spec):
    options = {"act": spec["act"]}
    if spec["norm"] == "layer":
        options |= {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}}
    if spec["norm"] == "l2":
        options |= {"norm": UnitRows(), "act_first": True}
    if spec["class"] == "GAT":
        options |= {"heads": spec["heads"], "v2": spec["v2"], "residual": spec["residual"]}
    if spec["project"]:
        options |= {"project": True}
    kind = getattr(models, spec["class"])
    return kind(spec["in"], spec["hidden"], spec["layers"], spec["out"], **options).eval()


def main(folder):
    indptr = np.load(folder / "graph" / "indptr.npy").astype(np.int64)
    sources = np.load(folder / "graph" / "indices.npy").astype(np.int64)
    targets = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    edge_index = torch.from_numpy(np.stack([sources, targets]))
    x = torch.from_numpy(np.load(folder / "graph" / "features.npy"))
    failed = False
    for path in sorted(folder.glob("*/model.json")):
        model = build(json.loads(path.read_text()))
        model.load_state_dict(load_safetensors(path.parent / "model.safetensors"))
        with torch.no_grad():
            expected = model(x, edge_index).numpy()
        error = float(np.abs(np.load(path.parent / "logits.npy") - expected).max())
        failed = failed or not error <= TOLERANCE
        print(json.dumps({"name": path.parent.name, "error": error}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
