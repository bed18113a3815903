"""Training by torch_geometric on whole graphs: how good it gets, and when.

    PYTHONPATH=.cache/pyg .venv/bin/python bench/accuracy/full_batch.py DATASET
        [--model GRAPHSAGE] [--seeds 3] [--first-seed 1] [--epochs 200] [--hidden 256]
        [--rate 0.01] [--dropout 0.5] [--input-dropout 0] [--decay 0] [--standardize] [--threads 1]

DATASET is a dataset's folder (docs/formats/dataset.md). Two layers of SAGEConv, GCNConv or
GATv2Conv with ReLU between them, Adam, float32, one step an epoch over all training nodes and all
edges, evaluated after each as torch_geometric's examples do. A line of JSON a seed: validation
accuracies in percent and seconds since the first epoch began, of every epoch; the test accuracy at
the epoch of the best validation accuracy.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from torch_geometric.nn import GATv2Conv, GCNConv, SAGEConv

LAYERS = {
    "GRAPHSAGE": SAGEConv,
    "GCN": GCNConv,
    "GATV2": lambda width, out: GATv2Conv(width, out, add_self_loops=False),
}


class Model(torch.nn.Module):
    """Two layers with ReLU and dropout between them."""

    def __init__(self, widths: list[int], options: argparse.Namespace) -> None:
        super().__init__()
        layer = LAYERS[options.model]
        self.first = layer(widths[0], widths[1])
        self.second = layer(widths[1], widths[2])
        self.dropouts = options.input_dropout, options.dropout

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """[N, F] rows and [2, E] edges from source to destination give [N, classes]."""
        x = functional.dropout(x, self.dropouts[0], self.training)
        x = self.first(x, edges).relu()
        return self.second(functional.dropout(x, self.dropouts[1], self.training), edges)


class Graph:
    """A dataset's arrays as tensors."""

    def __init__(self, folder: Path, standardize: bool) -> None:
        def read(name: str) -> np.ndarray:
            return np.load(folder / f"{name}.npy")

        features = read("features").astype(np.float32)
        if standardize:
            features = (features - features.mean(0)) / (features.std(0) + 1e-12)
        self.x = torch.from_numpy(features)
        indptr, indices = read("indptr"), read("indices").astype(np.int64)
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        self.edges = torch.from_numpy(np.stack([indices, rows]))
        self.labels = torch.from_numpy(read("labels").astype(np.int64))
        self.split = {side: torch.from_numpy(read(side)) for side in ("train", "val", "test")}

    def accuracy(self, scores: torch.Tensor, side: str) -> float:
        """In percent, of [N, classes] scores."""
        nodes = self.split[side]
        return 100 * (scores[nodes].argmax(1) == self.labels[nodes]).double().mean().item()


def trained(graph: Graph, options: argparse.Namespace, seed: int) -> dict[str, object]:
    """One run; what it came to."""
    torch.manual_seed(seed)
    widths = [graph.x.shape[1], options.hidden, int(graph.labels.max()) + 1]
    model = Model(widths, options)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate, weight_decay=options.decay)
    nodes = graph.split["train"]
    vals, tests, seconds = [], [], []
    begun = time.perf_counter()
    for _ in range(options.epochs):
        model.train()
        optimizer.zero_grad()
        scores = model(graph.x, graph.edges)[nodes]
        functional.cross_entropy(scores, graph.labels[nodes]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            scores = model(graph.x, graph.edges)
        vals.append(graph.accuracy(scores, "val"))
        tests.append(graph.accuracy(scores, "test"))
        seconds.append(time.perf_counter() - begun)
    best = int(np.argmax(vals))
    return {"val": vals[best], "test": tests[best], "vals": vals, "seconds": seconds}


def main() -> None:
    """Trains with so many random seeds."""
    parser = argparse.ArgumentParser(description="torch_geometric in full batches")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--model", choices=list(LAYERS), default="GRAPHSAGE")
    for name, usual in (
        *(("seeds", 3), ("first-seed", 1), ("epochs", 200), ("hidden", 256), ("threads", 1)),
    ):
        parser.add_argument(f"--{name}", type=int, default=usual)
    for name, usual in (("rate", 0.01), ("dropout", 0.5), ("input-dropout", 0), ("decay", 0)):
        parser.add_argument(f"--{name}", type=float, default=usual)
    parser.add_argument("--standardize", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    graph = Graph(options.dataset, options.standardize)
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        print(json.dumps(trained(graph, options, seed)), flush=True)


if __name__ == "__main__":
    main()
