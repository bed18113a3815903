"""DGL's and GraphBolt's own training loops as contestants of bench/epoch/run.mjs.

usage: epoch.py PEER GRAPH_FOLDER FANOUTS BATCH HIDDEN THREADS WORKERS [--no-evaluation]

PEER: dgl, dgl-i32, graphbolt, graphbolt-i32: the loader, as its documentation shows it, in front of
the same model: SAGEConv layers with ReLU and dropout 0.5, Adam with learning rate 0.003, shuffled
seeds. THREADS of the process, WORKERS processes beside it that sample. Command: `run EPOCHS
RANDOM_SEED` trains a new model; the answer holds for each epoch the seconds of its batches, the
seconds of one exact evaluation after it (full neighbourhoods of the validation and test nodes,
whose blocks were made once; without evaluation nothing) and its validation and test accuracy in
percent.
"""
import os
import sys
import time

import dgl
import dgl.graphbolt as gb
import numpy as np
import torch
import torch.nn.functional as F

import served

LEARNING_RATE, DROPOUT = 0.003, 0.5


class Data:
    def __init__(self, folder, int32):
        def load(name, kind):
            return torch.from_numpy(np.load(os.path.join(folder, name)).astype(kind, copy=False))
        kind = np.int32 if int32 else np.int64
        self.indptr, self.indices = load('indptr.npy', kind), load('indices.npy', kind)
        self.features, self.labels = load('features.npy', np.float32), load('labels.npy', np.int64)
        self.splits = {name: load(name + '.npy', kind) for name in ('train', 'val', 'test')}
        self.graph = dgl.graph(('csc', (self.indptr, self.indices, [])),
                               idtype=torch.int32 if int32 else torch.int64).formats('csc')
        self.classes = int(self.labels.max()) + 1


class Net(torch.nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.convs = torch.nn.ModuleList(
            dgl.nn.SAGEConv(inputs, outputs, 'mean') for inputs, outputs in zip(dims, dims[1:]))

    def forward(self, blocks, x):
        for layer, (conv, block) in enumerate(zip(self.convs, blocks)):
            x = conv(block, (x, x[:block.num_dst_nodes()]))
            if layer + 1 < len(self.convs):
                x = F.dropout(F.relu(x), DROPOUT, self.training)
        return x


def dgl_batches(data, fanouts, batch_size, workers):
    # DGL's fused path (for two threads and more) corrupts the heap with 32-bit ids.
    fused = data.indices.dtype == torch.int64
    sampler = dgl.dataloading.NeighborSampler(fanouts[::-1], fused=fused)
    loader = dgl.dataloading.DataLoader(data.graph, data.splits['train'], sampler, shuffle=True,
                                        batch_size=batch_size, num_workers=workers)
    while True:
        for inputs, seeds, blocks in loader:
            yield data.features[inputs.long()], blocks, data.labels[seeds.long()]


def graphbolt_batches(data, fanouts, batch_size, workers):
    graph = gb.fused_csc_sampling_graph(data.indptr, data.indices)
    train = data.splits['train']
    items = gb.ItemSet((train, data.labels[train.long()]), names=('seed_nodes', 'labels'))
    features = gb.BasicFeatureStore({('node', None, 'x'): gb.TorchBasedFeature(data.features)})
    pipe = gb.ItemSampler(items, batch_size=batch_size, shuffle=True)
    pipe = pipe.sample_neighbor(graph, fanouts[::-1])
    pipe = pipe.fetch_feature(features, node_feature_keys=['x'])
    loader = gb.DataLoader(pipe, num_workers=workers)
    while True:
        for batch in loader:
            yield batch.node_features['x'], batch.blocks, batch.labels


class Evaluation:
    """Exact: the blocks of all validation and test nodes, made once."""

    def __init__(self, data, layers):
        self.nodes = torch.cat((data.splits['val'], data.splits['test']))
        sampler = dgl.dataloading.MultiLayerFullNeighborSampler(layers, fused=False)
        inputs, _, self.blocks = sampler.sample_blocks(data.graph, self.nodes)
        self.x = data.features[inputs.long()]
        self.labels = data.labels[self.nodes.long()]
        self.num_val = len(data.splits['val'])

    def run(self, net):
        begin = time.perf_counter()
        net.eval()
        with torch.no_grad():
            right = (net(self.blocks, self.x).argmax(1) == self.labels).float() * 100
        net.train()
        seconds = time.perf_counter() - begin
        return seconds, right[:self.num_val].mean().item(), right[self.num_val:].mean().item()


def train(data, batches, evaluation, dims, per_epoch, epochs):
    net = Net(dims)
    optimizer = torch.optim.Adam(net.parameters(), lr=LEARNING_RATE)
    answer = {'epoch_s': [], 'evaluation_s': [], 'val': [], 'test': []}
    for _ in range(epochs):
        begin = time.perf_counter()
        for _ in range(per_epoch):
            x, blocks, labels = next(batches)
            loss = F.cross_entropy(net(blocks, x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        answer['epoch_s'].append(time.perf_counter() - begin)
        evaluated = (0.0, 0.0, 0.0) if evaluation is None else evaluation.run(net)
        for name, value in zip(('evaluation_s', 'val', 'test'), evaluated):
            answer[name].append(value)
    return answer


def main():
    peer, folder = sys.argv[1:3]
    fanouts = [int(fanout) for fanout in sys.argv[3].split(',')]
    batch_size, hidden, threads, workers = map(int, sys.argv[4:8])
    torch.set_num_threads(threads)
    data = Data(folder, peer.endswith('-i32'))
    make = dgl_batches if peer.startswith('dgl') else graphbolt_batches
    batches = make(data, fanouts, batch_size, workers)
    evaluation = None if '--no-evaluation' in sys.argv else Evaluation(data, len(fanouts))
    dims = [data.features.shape[1], *[hidden] * (len(fanouts) - 1), data.classes]
    per_epoch = -(-len(data.splits['train']) // batch_size)

    def answer(words):
        torch.manual_seed(int(words[2]))
        return train(data, batches, evaluation, dims, per_epoch, int(words[1]))

    answer(('run', 1, 0))
    served.serve({'peer': peer}, answer)


if __name__ == '__main__':
    main()
