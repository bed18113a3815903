"""Accuracies of plain torch_geometric on a dataset of several types, sampled as a job samples it.

    .cache/peers/pyg/bin/python bench/accuracy/typed_reference.py DATASET
        [--model rsage] [--seeds 3] [--epochs 10] [--hidden 128] [--batch 1024] [--rate 0.01]
        [--dropout 0.3] [--without REGEX] [--verbose]

DATASET is a dataset's folder as gnnd stores it (docs/formats/dataset.md), with relations and their
reverses; nodes of the one labelled type are learnt. Relations that match --without take no part.
NeighborLoader draws 10 and 10 a relation. Features are standardised by column; a type without
features has trainable rows. rsage is HeteroConv of SAGEConv, summed; rgcn RGCNConv and hgt HGTConv
with 4 heads, both behind a linear map of each type's rows. Adam. Each epoch is judged with whole
neighbourhoods; a line of JSON a seed: the test at the epoch of the best validation.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from torch_geometric.data import HeteroData
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import HeteroConv, HGTConv, RGCNConv, SAGEConv


def load(folder: Path, without: str | None) -> tuple[HeteroData, str]:
    """The dataset as HeteroData, and its labelled type."""
    schema = json.loads((folder / "dataset.json").read_text())
    data, target = HeteroData(), ""
    for kind in schema["types"]:
        name = kind["name"]
        at = folder / "nodes" / name
        data[name].num_nodes = kind["num_nodes"]
        data[name].row = torch.arange(kind["num_nodes"])
        if (at / "features.npy").exists():
            x = torch.from_numpy(np.load(at / "features.npy").astype(np.float32))
            data[name].x = (x - x.mean(0)) / (x.std(0) + 1e-12)
        if (at / "labels.npy").exists():
            target = name
            data[name].y = torch.from_numpy(np.load(at / "labels.npy")).long()
    for at in sorted((folder / "edges").iterdir()):
        if without is not None and re.search(without, at.name):
            continue
        source, relation, destination = at.name.split("__")
        degrees = np.diff(np.load(at / "indptr.npy").astype(np.int64))
        sources = np.load(at / "indices.npy").astype(np.int64)
        ends = np.stack([sources, np.repeat(np.arange(len(degrees)), degrees)])
        data[source, relation, destination].edge_index = torch.from_numpy(ends)
    used = {name for edge in data.edge_types for name in (edge[0], edge[2])}
    for name in set(data.node_types) - used:
        del data[name]
    return data, target


class Model(torch.nn.Module):
    """Two layers over relations, of one of the three kinds."""

    def __init__(
        self, data: HeteroData, target: str, out: int, options: argparse.Namespace
    ) -> None:
        super().__init__()
        hidden = options.hidden
        self.kind, self.target, self.dropout = options.model, target, options.dropout
        self.types, self.relations = data.metadata()
        self.rows = torch.nn.ModuleDict()
        widths = {}
        for name in self.types:
            if "x" in data[name]:
                widths[name] = data[name].x.size(1)
                continue
            self.rows[name] = torch.nn.Embedding(data[name].num_nodes, hidden)
            torch.nn.init.normal_(self.rows[name].weight, std=0.1)
            widths[name] = hidden
        if self.kind == "rsage":
            steps = [(widths, hidden), (dict.fromkeys(self.types, hidden), out)]
            self.convs = torch.nn.ModuleList(
                HeteroConv({r: SAGEConv((of[r[0]], of[r[2]]), to) for r in self.relations}, "sum")
                for of, to in steps
            )
            return
        self.inputs = torch.nn.ModuleDict(
            {t: torch.nn.Linear(widths[t], hidden) for t in self.types}
        )
        if self.kind == "rgcn":
            count = len(self.relations)
            self.convs = torch.nn.ModuleList(
                RGCNConv(hidden, to, count, aggr="mean") for to in (hidden, out)
            )
        else:
            self.convs = torch.nn.ModuleList(
                HGTConv(hidden, hidden, data.metadata(), heads=4) for _ in range(2)
            )
            self.out = torch.nn.Linear(hidden, out)

    def finish(self, x: torch.Tensor) -> torch.Tensor:
        """What follows each layer but the last."""
        return functional.dropout(x.relu(), self.dropout, self.training)

    def forward(self, batch: HeteroData) -> torch.Tensor:
        """[nodes of the target, classes] of a batch, or of the whole graph."""
        edges = batch.edge_index_dict
        x = {t: self.rows[t](batch[t].row) if t in self.rows else batch[t].x for t in self.types}
        if self.kind == "rsage":
            x = {t: self.finish(h) for t, h in self.convs[0](x, edges).items()}
            return self.convs[1](x, edges)[self.target]
        x = {t: self.inputs[t](h) for t, h in x.items()}
        if self.kind == "hgt":
            x = {t: self.finish(h) for t, h in self.convs[0](x, edges).items()}
            return self.out(self.convs[1](x, edges)[self.target])
        begins, all_rows = {}, 0
        for name in self.types:
            begins[name] = all_rows
            all_rows += len(x[name])
        ends = [edges[r] + torch.tensor([[begins[r[0]]], [begins[r[2]]]]) for r in self.relations]
        kinds = torch.cat([torch.full((e.size(1),), i) for i, e in enumerate(ends)])
        h = torch.cat([x[t] for t in self.types])
        h = self.finish(self.convs[0](h, torch.cat(ends, 1), kinds))
        h = self.convs[1](h, torch.cat(ends, 1), kinds)
        return h[begins[self.target] : begins[self.target] + len(x[self.target])]


def run(
    data: HeteroData, target: str, parts: dict[str, torch.Tensor], seed: int, o: argparse.Namespace
) -> dict[str, float]:
    """Trains; the test accuracy at the epoch of the best validation accuracy."""
    torch.manual_seed(seed)
    y = data[target].y
    model = Model(data, target, int(y.max()) + 1, o)
    optimizer = torch.optim.Adam(model.parameters(), o.rate)
    loader = NeighborLoader(
        data, [10, 10], (target, parts["train"]), batch_size=o.batch, shuffle=True
    )
    best = {"val": 0.0, "test": 0.0}
    for epoch in range(o.epochs):
        model.train()
        for batch in loader:
            optimizer.zero_grad()
            seeds = batch[target].batch_size
            logits = model(batch)[:seeds]
            functional.cross_entropy(logits, batch[target].y[:seeds]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = model(data).argmax(1) == y
        found = {name: right[parts[name]].float().mean().item() for name in ("val", "test")}
        if o.verbose:
            print(epoch, found, file=sys.stderr, flush=True)
        best = max(best, found, key=lambda each: each["val"])
    return {"seed": seed, **best}


def main() -> None:
    """Prints a line of JSON a seed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--model", choices=["rsage", "rgcn", "hgt"], default="rsage")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--without")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    data, target = load(options.dataset, options.without)
    at = options.dataset / "nodes" / target
    parts = {
        name: torch.from_numpy(np.load(at / f"{name}.npy")) for name in ("train", "val", "test")
    }
    for seed in range(1, options.seeds + 1):
        print(json.dumps(run(data, target, parts, seed, options)), flush=True)


if __name__ == "__main__":
    main()
