"""Accuracies of plain torch_geometric on the links that a job of gnnd's split: GraphSAGE and dot.

    PYTHONPATH=.cache/pyg .venv/bin/python bench/accuracy/links_reference.py DATASET LINKS
        [--seeds 3] [--epochs 45] [--every 1] [--hidden 128] [--batch 1024] [--rate 0.01]
        [--cosine] [--dropout 0] [--judged N] [--standardize] [--keep-batch] [--verbose]

DATASET is a dataset's folder (docs/formats/dataset.md), LINKS the folder that a job of links made
of it: `links_train.npy`, `links_val.npy`, `links_test.npy` [P, 2] and its graph. A step takes a
batch of links and as many uniform negatives; messages come along all training edges but those of
the batch (--keep-batch leaves them in, as most examples do), over whole neighbourhoods, as a
product of sparse rows, so that a step's time is the graph's and large graphs want large batches.
Links are evaluated beside 1,000 uniform negatives, which 128 links share, known links left out; the
rank is the mean of the best and the worst among equals, ROC-AUC is of all links and a negative
each. Every --every epochs the validation links are, or about --judged of them, evenly spaced. A
line of JSON a seed: all of the test at the epoch of the best validation MRR.
"""

import argparse
import copy
import json
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from torch_geometric.nn import SAGEConv

NEGATIVES = 1000
GROUP = 128


class Encoder(torch.nn.Module):
    """GraphSAGE without an activation after the last layer, as gnnd has it."""

    def __init__(self, features: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        widths = [features, *[hidden] * layers]
        self.convs = torch.nn.ModuleList(SAGEConv(a, b) for a, b in pairwise(widths))
        self.dropout = dropout

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """[N, F] rows and sparse [N, N] edges, destinations first, give [N, hidden]."""
        for conv in self.convs[:-1]:
            x = functional.dropout(conv(x, edges).relu(), self.dropout, self.training)
        return self.convs[-1](x, edges)


class Graph:
    """The graph and the links of a job, and which pairs are known to be links."""

    def __init__(self, dataset: Path, links: Path, standardize: bool) -> None:
        features = np.load(dataset / "features.npy").astype(np.float32)
        if standardize:
            features = (features - features.mean(0)) / (features.std(0) + 1e-12)
        self.x = torch.from_numpy(features)
        self.num_nodes = len(features)
        self.indptr, self.sources = (
            torch.from_numpy(np.load(links / f"{name}.npy").astype(np.int64))
            for name in ("indptr", "indices")
        )
        nodes = torch.arange(self.num_nodes)
        self.destinations = nodes.repeat_interleave(self.indptr.diff())
        self.pairs = {
            side: torch.from_numpy(np.load(links / f"links_{side}.npy").astype(np.int64))
            for side in ("train", "val", "test")
        }
        whole = [torch.cat([pairs, pairs.flip(1)]) for pairs in self.pairs.values()]
        edges = self.keys(self.sources, self.destinations)
        self.known = torch.unique(torch.cat([self.keys(*torch.cat(whole).T), edges]))
        # An edge is a link's in the same or in the other direction.
        reverses = self.keys(self.destinations, self.sources)
        self.links_of_edges = [self.links_of(keys) for keys in (edges, reverses)]

    def keys(self, source: torch.Tensor, destination: torch.Tensor) -> torch.Tensor:
        """A number for each pair."""
        return source * self.num_nodes + destination

    def is_known(self, source: torch.Tensor, destination: torch.Tensor) -> torch.Tensor:
        """Of [P, 1] sources and [P, k] destinations."""
        keys = self.keys(source, destination)
        at = torch.searchsorted(self.known, keys).clamp(max=len(self.known) - 1)
        return (self.known[at] == keys) | (source == destination)

    def links_of(self, keys: torch.Tensor) -> torch.Tensor:
        """The training link of each pair; as many as there are where it is none."""
        links = self.keys(*self.pairs["train"].T)
        ordered, order = links.sort()
        at = torch.searchsorted(ordered, keys).clamp(max=len(links) - 1)
        return torch.where(ordered[at] == keys, order[at], len(links))

    def edges(self, batch: torch.Tensor | None = None) -> torch.Tensor:
        """All edges, or those without the training links `batch`, in both directions."""
        left_out = torch.zeros(len(self.pairs["train"]) + 1, dtype=torch.bool)
        if batch is not None:
            left_out[batch] = True
        first, second = self.links_of_edges
        kept = ~(left_out[first] | left_out[second])
        ends = functional.pad(kept.cumsum(0), (1, 0))[self.indptr]
        sources = self.sources[kept]
        size = (self.num_nodes, self.num_nodes)
        return torch.sparse_csr_tensor(ends, sources, torch.ones(len(sources)), size)


@torch.no_grad()
def evaluated(
    graph: Graph, rows: torch.Tensor, side: str, most: int | None = None
) -> dict[str, float]:
    """MRR, Hits@10 and ROC-AUC of the links of one side, or of about `most` of them."""
    draws = torch.Generator().manual_seed(20_000 if side == "val" else 30_000)
    ranks, scores = [], []
    pairs = graph.pairs[side]
    for chunk in pairs[:: max(1, len(pairs) // (most or len(pairs)))].split(GROUP):
        negatives = torch.randint(graph.num_nodes, (NEGATIVES,), generator=draws)
        counted = ~graph.is_known(chunk[:, :1], negatives.expand(len(chunk), -1))
        sources = rows[chunk[:, 0]]
        own = (sources * rows[chunk[:, 1]]).sum(1, keepdim=True)
        others = sources @ rows[negatives].T
        greater = ((others > own) & counted).sum(1)
        equal = ((others == own) & counted).sum(1)
        ranks.append(1 + greater + 0.5 * equal)
        # Links begin at different negatives, so that those of the areas are not the same few.
        start = torch.arange(len(chunk)).unsqueeze(1) * NEGATIVES // GROUP
        place = (start + torch.arange(NEGATIVES)) % NEGATIVES
        first = counted.gather(1, place).int().argmax(1, keepdim=True)
        scores.append(torch.cat([own, others.gather(1, place.gather(1, first))], 1))
    rank = torch.cat(ranks).double()
    links, others = torch.cat(scores).double().T.contiguous()
    order = torch.searchsorted(others.sort().values, links)
    ties = torch.searchsorted(others.sort().values, links, right=True)
    return {
        "mrr": float((1 / rank).mean()),
        "hits@10": float((rank <= 10).double().mean()),
        "roc_auc": float((order + ties).double().mean() / (2 * len(others))),
    }


def stepped(graph: Graph, model: Encoder, edges: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
    """The loss of a batch of pairs beside as many others."""
    rows = model(graph.x, edges)
    others = torch.randint(graph.num_nodes, (len(batch),))
    source = rows[batch[:, 0]]
    scores = torch.cat([(source * rows[batch[:, 1]]).sum(1), (source * rows[others]).sum(1)])
    known = torch.cat([torch.ones(len(batch)), torch.zeros(len(batch))])
    return functional.binary_cross_entropy_with_logits(scores, known)


@torch.no_grad()
def embedded(graph: Graph, model: Encoder) -> torch.Tensor:
    """Rows along all edges."""
    model.eval()
    return model(graph.x, graph.edges())


def trained(graph: Graph, seed: int, options: argparse.Namespace) -> dict[str, float]:
    """The test at the epoch of the best validation MRR."""
    begin = time.monotonic()
    torch.manual_seed(seed)
    model = Encoder(graph.x.shape[1], options.hidden, options.layers, options.dropout)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate)
    # --cosine: down to 0 after the last epoch, as gnnd's schedule.
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    links = graph.pairs["train"]
    best: dict[str, float] = {"val_mrr": -1}
    kept = model
    for epoch in range(1, options.epochs + 1):
        model.train()
        for batch in torch.randperm(len(links)).split(options.batch):
            edges = graph.edges(None if options.keep_batch else batch)
            optimizer.zero_grad()
            stepped(graph, model, edges, links[batch]).backward()
            optimizer.step()
        if options.cosine:
            schedule.step()
        if epoch % options.every != 0 and epoch != options.epochs:
            continue
        val = evaluated(graph, embedded(graph, model), "val", options.judged)
        if options.verbose:
            print(json.dumps({"epoch": epoch, **val}), file=sys.stderr, flush=True)
        if val["mrr"] > best["val_mrr"]:
            best = {"epoch": epoch, "val_mrr": val["mrr"], "val_roc_auc": val["roc_auc"]}
            kept = copy.deepcopy(model)
    seconds = round(time.monotonic() - begin)
    return {**best, **evaluated(graph, embedded(graph, kept), "test"), "seconds": seconds}


def main() -> None:
    """A line for each seed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset", type=Path)
    parser.add_argument("links", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=45)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--judged", type=int)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--cosine", action="store_true")
    parser.add_argument("--keep-batch", action="store_true")
    parser.add_argument("--standardize", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="each evaluation, to stderr")
    options = parser.parse_args()
    graph = Graph(options.dataset, options.links, options.standardize)
    for seed in range(1, options.seeds + 1):
        print(json.dumps({"seed": seed, **trained(graph, seed, options)}), flush=True)


if __name__ == "__main__":
    main()
