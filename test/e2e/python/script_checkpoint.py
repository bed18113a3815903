"""Loads a job's checkpoint into the class it was scripted from, and tests it on the whole graph.

usage: script_checkpoint.py MODULE CHECKPOINT DATASET COLUMNS HIDDEN CLASSES LAYERS

MODULE is the Python file with the class Sage, CHECKPOINT a safetensors file, DATASET the dataset's
folder. Prints the test accuracy.
"""

import importlib.util
import json
import pathlib
import sys

import numpy as np
import torch


def load_safetensors(path):
    """The format is so plain that it needs no package: length, JSON header, data."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    state = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        begin, end = (start + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"])
        state[name] = torch.from_numpy(values.copy())
    return state


def main():
    module_path, checkpoint, dataset = map(pathlib.Path, sys.argv[1:4])
    sizes = [int(size) for size in sys.argv[4:8]]
    spec = importlib.util.spec_from_file_location("sage", module_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.Sage(*sizes)
    model.load_state_dict(load_safetensors(checkpoint), strict=True)
    model.eval()
    arrays = {path.stem: np.load(path) for path in dataset.glob("*.npy")}
    x = torch.from_numpy(arrays["features"])
    indptr = torch.from_numpy(arrays["indptr"])
    src = torch.from_numpy(arrays["indices"].astype(np.int64))
    with torch.no_grad():
        for index in range(model.num_layers):
            x = model.layer(index, x, indptr, src, None)
    test = torch.from_numpy(arrays["test"])
    labels = torch.from_numpy(arrays["labels"].astype(np.int64))
    print((x[test].argmax(1) == labels[test]).float().mean().item())


main()
