"""The peers' own training loops as contestants of bench/epoch/run.mjs.

usage: epoch.py PEER GRAPH_FOLDER FANOUTS BATCH HIDDEN THREADS WORKERS [--no-evaluation]

PEER: dgl, dgl-i32, graphbolt, graphbolt-i32 (epoch_dgl.py), pyg, pyg-adj (epoch_pyg.py): the loader,
as its documentation shows it, in front of the same model: the library's own SAGEConv layers with
ReLU and dropout 0.5, Adam with learning rate 0.003, shuffled seeds. THREADS of the process, WORKERS processes beside it that sample. Command: `run EPOCHS
RANDOM_SEED` trains a new model; the answer holds for each epoch the seconds of its batches, the
seconds of one exact evaluation after it (full neighbourhoods of the validation and test nodes,
whose blocks were made once; without evaluation nothing) and its validation and test accuracy in
percent.
"""
import importlib
import os
import sys
import time

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
        self.classes = int(self.labels.max()) + 1


class Evaluation:
    """Exact: the blocks of all validation and test nodes, made once."""

    def __init__(self, data, full_blocks, layers):
        self.nodes = torch.cat((data.splits['val'], data.splits['test']))
        inputs, self.blocks = full_blocks(data, self.nodes, layers)
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


def train(net, batches, evaluation, per_epoch, epochs):
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
    side = importlib.import_module('epoch_pyg' if peer.startswith('pyg') else 'epoch_dgl')
    batches = side.LOADERS[peer](data, fanouts, batch_size, workers)
    evaluation = None
    if '--no-evaluation' not in sys.argv:
        evaluation = Evaluation(data, side.full_blocks, len(fanouts))
    dims = [data.features.shape[1], *[hidden] * (len(fanouts) - 1), data.classes]
    per_epoch = -(-len(data.splits['train']) // batch_size)

    def answer(words):
        torch.manual_seed(int(words[2]))
        return train(side.Net(dims, DROPOUT), batches, evaluation, per_epoch, int(words[1]))

    answer(('run', 1, 0))
    served.serve({'peer': peer}, answer)


if __name__ == '__main__':
    main()
