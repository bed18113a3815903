"""The peers' own loops over links as contestants of bench/epoch/links.mjs.

usage: links_peer.py PEER DATASET_FOLDER LINKS_FOLDER FANOUTS BATCH HIDDEN THREADS WORKERS

PEER: pyg (LinkNeighborLoader with binary negatives, which leaves a batch's own links in) or
graphbolt (with uniform negatives and without the batch's own links and their reverses). Links and
the graph of messages are those that a job of gnnd's split: links_train.npy [P, 2], indptr.npy,
indices.npy. The library's own SAGEConv layers with ReLU, a scalar product, BCE, Adam with learning
rate 0.003. Commands: `run BATCHES` trains, `load BATCHES` only takes batches with their features;
the answer is the seconds of each batch, and those of processor time of all of them.
"""
import os
import sys
import time
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

import served

LEARNING_RATE = 0.003


class Data:
    def __init__(self, dataset, links):
        def load(folder, name, kind):
            array = np.load(os.path.join(folder, name + '.npy'))
            return torch.from_numpy(array.astype(kind, copy=False))
        self.features = load(dataset, 'features', np.float32)
        self.indptr = load(links, 'indptr', np.int64)
        self.indices = load(links, 'indices', np.int64)
        self.pairs = load(links, 'links_train', np.int64)


class Net(torch.nn.Module):
    """`conv(inputs, outputs)` makes a layer, `rows(conv, batch, layer, x)` runs one."""

    def __init__(self, dims, conv, rows):
        super().__init__()
        self.convs = torch.nn.ModuleList(
            conv(inputs, outputs) for inputs, outputs in zip(dims, dims[1:]))
        self.rows = rows

    def forward(self, batch, x):
        for layer, conv in enumerate(self.convs):
            x = self.rows(conv, batch, layer, x)
            if layer + 1 < len(self.convs):
                x = F.relu(x)
        return x


def pyg(data, fanouts, batch_size, workers):
    """Batches (features, batch, sources, destinations, labels), and a layer and how it runs."""
    from torch_geometric.data import Data as Graph
    from torch_geometric.loader import LinkNeighborLoader
    from torch_geometric.nn import SAGEConv
    rows = torch.repeat_interleave(torch.arange(len(data.indptr) - 1), data.indptr.diff())
    graph = Graph(x=data.features, edge_index=torch.stack([data.indices, rows]))
    loader = LinkNeighborLoader(graph, fanouts, edge_label_index=data.pairs.T.contiguous(),
                                neg_sampling='binary', batch_size=batch_size, shuffle=True,
                                is_sorted=True, num_workers=workers)

    def batches():
        while True:
            for batch in loader:
                yield batch.x, batch, *batch.edge_label_index, batch.edge_label
    return batches(), SAGEConv, lambda conv, batch, _, x: conv(x, batch.edge_index)


def graphbolt(data, fanouts, batch_size, workers):
    import dgl
    import dgl.graphbolt as gb
    graph = gb.fused_csc_sampling_graph(data.indptr, data.indices)
    features = gb.BasicFeatureStore({('node', None, 'x'): gb.TorchBasedFeature(data.features)})
    pipe = gb.ItemSampler(gb.ItemSet(data.pairs, names='node_pairs'), batch_size=batch_size,
                          shuffle=True)
    pipe = pipe.sample_uniform_negative(graph, 1).sample_neighbor(graph, fanouts[::-1])
    pipe = pipe.transform(partial(gb.exclude_seed_edges, include_reverse_edges=True))
    pipe = pipe.fetch_feature(features, node_feature_keys=['x'])
    loader = gb.DataLoader(pipe, num_workers=workers)

    def batches():
        while True:
            for batch in loader:
                pairs, labels = batch.node_pairs_with_labels
                yield batch.node_features['x'], batch.blocks, *pairs, labels

    def rows(conv, blocks, layer, x):
        return conv(blocks[layer], (x, x[:blocks[layer].num_dst_nodes()]))
    return batches(), lambda a, b: dgl.nn.SAGEConv(a, b, 'mean'), rows


LOADERS = {'pyg': pyg, 'graphbolt': graphbolt}


def main():
    peer, dataset, links = sys.argv[1:4]
    fanouts = [int(fanout) for fanout in sys.argv[4].split(',')]
    batch_size, hidden, threads, workers = map(int, sys.argv[5:9])
    torch.set_num_threads(threads)
    data = Data(dataset, links)
    batches, conv, rows = LOADERS[peer](data, fanouts, batch_size, workers)
    torch.manual_seed(1)
    net = Net([data.features.shape[1], *[hidden] * len(fanouts)], conv, rows)
    optimizer = torch.optim.Adam(net.parameters(), lr=LEARNING_RATE)

    def step():
        x, batch, sources, destinations, labels = next(batches)
        out = net(batch, x)
        scores = (out[sources] * out[destinations]).sum(1)
        loss = F.binary_cross_entropy_with_logits(scores, labels.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def answer(words):
        work = step if words[0] == 'run' else lambda: next(batches)
        seconds, processor = [], served.processor_seconds()
        for _ in range(int(words[1])):
            begin = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - begin)
        return {'seconds': seconds, 'processor_s': served.processor_seconds() - processor}

    answer(('run', 2))
    served.serve({'peer': peer, 'links': len(data.pairs)}, answer)


if __name__ == '__main__':
    main()
