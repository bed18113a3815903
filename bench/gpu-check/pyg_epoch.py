#!/usr/bin/env python3
"""The epoch of epoch.py by torch_geometric: its NeighborLoader, the same graph, model and device.

  pyg_epoch.py --data FOLDER --device cuda|sim [--batch N]

All features lie on the device, and rows are taken there; workers sample on all but two cores. Where
torch_geometric or what its loader samples with is not installed, a line says so, and that is all.
"""

import argparse
import importlib.util
import os
import sys
import time
from pathlib import Path

from daemon import answered, say

EPOCHS = 3
FANOUTS = (15, 10, 5)


def missing():
    """What is not installed here; empty: nothing."""
    if importlib.util.find_spec("torch_geometric") is None:
        return "torch_geometric"
    samples = any(importlib.util.find_spec(name) for name in ("pyg_lib", "torch_sparse"))
    return "" if samples else "pyg-lib or torch-sparse, by which torch_geometric samples"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--device", choices=("cuda", "sim"), required=True)
    parser.add_argument("--batch", type=int, default=1024)
    options = parser.parse_args()
    lacks = missing()
    if lacks != "":
        say("epoch, torch_geometric", f"skipped: {lacks} is not installed")
        return 0

    import numpy as np
    import torch
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    from torch_geometric.nn import SAGEConv

    def load(name):
        return torch.from_numpy(np.load(options.data / f"{name}.npy"))

    where = torch.device("cuda" if options.device == "cuda" else "cpu")
    indptr = load("indptr")
    columns = torch.repeat_interleave(torch.arange(len(indptr) - 1), indptr.diff())
    graph = Data(edge_index=torch.stack([load("indices").long(), columns]),
                 num_nodes=len(indptr) - 1)
    features, labels = load("features").to(where), load("labels").long().to(where)
    cores = len(os.sched_getaffinity(0))
    loader = NeighborLoader(
        graph, num_neighbors=list(FANOUTS), input_nodes=load("train"), batch_size=options.batch,
        shuffle=True, is_sorted=True, num_workers=max(0, min(16, cores - 2)),
        persistent_workers=cores > 2)

    class Sage(torch.nn.Module):
        def __init__(self, width, classes):
            super().__init__()
            sizes = [width, *[256] * (len(FANOUTS) - 1), classes]
            self.layers = torch.nn.ModuleList(map(SAGEConv, sizes[:-1], sizes[1:]))

        def forward(self, x, edges):
            for layer in self.layers[:-1]:
                x = torch.nn.functional.dropout(layer(x, edges).relu(), 0.5, self.training)
            return self.layers[-1](x, edges)

    model = Sage(features.shape[1], int(labels.max()) + 1).to(where)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    seconds = []
    for _ in range(EPOCHS):
        begin = time.monotonic()
        for batch in loader:
            nodes = batch.n_id.to(where, non_blocking=True)
            edges = batch.edge_index.to(where, non_blocking=True)
            logits = model(features[nodes], edges)[:batch.batch_size]
            loss = torch.nn.functional.cross_entropy(logits, labels[nodes[:batch.batch_size]])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        loss.item()  # waits for the device
        seconds.append(time.monotonic() - begin)
    say("epoch, torch_geometric", round(min(seconds[1:]), 3), "s")
    say("epoch, torch_geometric, the first", round(seconds[0], 3), "s")
    return 0


if __name__ == "__main__":
    sys.exit(answered(main))
