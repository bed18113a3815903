"""Checks an export as its reader would: with numpy alone.

usage: check_export.py EXPORT DATASET          folders of an export and of its dataset

Prints JSON: accuracies from predictions.npy by split, as far as its nodes are predicted, the digest of
the tensors' bytes, and the names and shapes of tensors. Exits with 1 when files contradict each other.
"""

import hashlib
import json
import pathlib
import sys

import numpy as np


def safetensors(path):
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return header, data[start:]


def main(folder, dataset):
    summary = json.loads((folder / "export.json").read_text())
    names = {path.name for path in folder.iterdir()} - {"export.json"}
    assert names == set(summary["files"]), names
    for name, facts in summary["files"].items():
        data = (folder / name).read_bytes()
        assert len(data) == facts["bytes"], name
        assert hashlib.sha256(data).hexdigest() == facts["sha256"], name
    header, data = safetensors(folder / "model.safetensors")
    tensors = [{"name": name, "shape": entry["shape"]} for name, entry in header.items()]
    assert tensors == summary["tensors"], tensors
    digest = hashlib.sha256(data).hexdigest()
    assert digest == summary["parameters_sha256"]
    answer = {"tensors": tensors, "parametersSha256": digest, "accuracy": {}}
    if summary["predictions"] is not None:
        labels = np.load(dataset / "labels.npy")
        logits = np.load(folder / "logits.npy")
        predictions = np.load(folder / "predictions.npy")
        assert logits.dtype == np.float32 and predictions.dtype == np.int64
        assert logits.shape == (len(predictions), summary["model"]["out_dim"])
        assert np.array_equal(logits.argmax(axis=1), predictions)
        assert np.isfinite(logits).all()
        nodes = np.arange(len(labels))
        if summary["predictions"]["nodes"] != "all":
            nodes = np.load(folder / "nodes.npy")
            split = np.load(dataset / f"{summary['predictions']['nodes']}.npy")
            assert nodes.dtype == np.int64 and np.array_equal(nodes, split)
        row_of = np.full(len(labels), -1)
        row_of[nodes] = np.arange(len(nodes))
        assert len(nodes) == len(predictions)
        for name in ("val", "test"):
            rows = row_of[np.load(dataset / f"{name}.npy")]
            if (rows >= 0).all():
                hits = predictions[rows] == labels[nodes[rows]]
                answer["accuracy"][name] = int(hits.sum()) / len(hits)
    print(json.dumps(answer))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
