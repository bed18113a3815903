"""DGL and torch_geometric as contestants of step.py.

usage: step_peer.py PEER GRAPH_FOLDER DUMP_FOLDER LAYERS BATCHES HIDDEN THREADS [bfloat16]

PEER: dgl (dgl environment), pyg-csr, pyg-edge-index, pyg-coo (pyg environment). DUMP_FOLDER is what
step_bench wrote: the batches' blocks and the initial weights. Every layer works on its own block
only, destinations first: DGL on a message-flow graph, torch_geometric on the bipartite pair
(sources, destinations), which is what trim_to_layer makes of a batch. pyg-csr hands the adjacency
over as torch's CSR tensor, pyg-edge-index as a sorted EdgeIndex, pyg-coo as plain edge_index. It is
made anew in every step, as for a new batch. With `bfloat16` features are stored in it and the model runs
under torch's autocast. Command: `run COUNT`.
"""
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import served

LEARNING_RATE = 0.003


class Batch:
    def __init__(self, dump, index, layers, labels):
        def load(name):
            return torch.from_numpy(np.load(os.path.join(dump, f'batch-{index}-{name}.npy'))).long()
        self.nodes = load('nodes')
        # The model's first layer is at the farthest hop.
        self.blocks = [(load(f'indptr-{hop}'), load(f'src-{hop}')) for hop in range(layers)][::-1]
        sources = [len(indptr) - 1 for indptr, _ in self.blocks][:-1]
        self.num_src = [len(self.nodes), *sources]
        seeds = len(self.blocks[-1][0]) - 1
        self.labels = labels[self.nodes[:seeds]]
        self.rows = [torch.repeat_interleave(torch.arange(len(indptr) - 1), indptr.diff())
                     for indptr, _ in self.blocks]


def parameter(dump, layer, name):
    return torch.from_numpy(np.load(os.path.join(dump, f'convs.{layer}.{name}.npy')))


class Net(torch.nn.Module):
    """SAGEConv layers with ReLU between them."""

    def __init__(self, convs, adjacencies):
        super().__init__()
        self.convs, self.adjacencies = torch.nn.ModuleList(convs), adjacencies

    def forward(self, x, blocks):
        for layer, (conv, block) in enumerate(zip(self.convs, blocks)):
            num_dst, adjacency = block
            x = conv(adjacency, (x, x[:num_dst])) if self.adjacencies == 'dgl' else conv(
                (x, x[:num_dst]), adjacency)
            x = x.relu() if layer + 1 < len(self.convs) else x
        return x


def make_dgl(dump, dims):
    import dgl
    convs = []
    for layer, (inputs, outputs) in enumerate(zip(dims, dims[1:])):
        conv = dgl.nn.SAGEConv(inputs, outputs, 'mean')
        conv.load_state_dict({'fc_neigh.weight': parameter(dump, layer, 'lin_l.weight'),
                              'fc_self.weight': parameter(dump, layer, 'lin_r.weight'),
                              'fc_self.bias': parameter(dump, layer, 'lin_l.bias')})
        convs.append(conv)

    def build(batch):
        return [(len(indptr) - 1, dgl.create_block(('csc', (indptr, src, [])), num_src,
                                                   len(indptr) - 1))
                for (indptr, src), num_src in zip(batch.blocks, batch.num_src)]
    return Net(convs, 'dgl'), build


def make_pyg(kind, dump, dims):
    import torch_geometric
    convs = []
    for layer, (inputs, outputs) in enumerate(zip(dims, dims[1:])):
        conv = torch_geometric.nn.SAGEConv(inputs, outputs)
        names = ('lin_l.weight', 'lin_l.bias', 'lin_r.weight')
        conv.load_state_dict({name: parameter(dump, layer, name) for name in names})
        convs.append(conv)

    def adjacency(indptr, src, rows, num_src):
        num_dst = len(indptr) - 1
        if kind == 'pyg-csr':
            ones = torch.ones(len(src))
            return torch.sparse_csr_tensor(indptr, src, ones, (num_dst, num_src))
        edges = torch.stack((src, rows))
        if kind == 'pyg-coo':
            return edges
        return torch_geometric.EdgeIndex(edges, sparse_size=(num_src, num_dst), sort_order='col')

    def build(batch):
        return [(len(indptr) - 1, adjacency(indptr, src, rows, num_src))
                for (indptr, src), rows, num_src in zip(batch.blocks, batch.rows, batch.num_src)]
    return Net(convs, 'pyg'), build


def adam_of(parameters):
    """The fastest that this PyTorch has on a CPU."""
    parameters = list(parameters)
    try:
        return torch.optim.Adam(parameters, lr=LEARNING_RATE, fused=True)
    except RuntimeError:  # PyTorch 2.2 fuses on GPUs only
        return torch.optim.Adam(parameters, lr=LEARNING_RATE)


def main():
    peer, folder, dump = sys.argv[1:4]
    layers, batches, hidden, threads = map(int, sys.argv[4:8])
    narrow = sys.argv[8:] == ['bfloat16']
    torch.set_num_threads(threads)
    features = torch.from_numpy(np.load(os.path.join(folder, 'features.npy')))
    if narrow:
        features = features.bfloat16()
    labels = torch.from_numpy(np.load(os.path.join(folder, 'labels.npy'))).long()
    dims = [features.shape[1], *[hidden] * (layers - 1), int(labels.max()) + 1]
    net, build = make_dgl(dump, dims) if peer == 'dgl' else make_pyg(peer, dump, dims)
    optimizer = adam_of(net.parameters())
    prepared = [Batch(dump, index, layers, labels) for index in range(batches)]
    state = {'step': 0}

    def step():
        batch = prepared[state['step'] % batches]
        state['step'] += 1
        cpu = time.process_time_ns()
        times = [time.perf_counter_ns()]
        x = features.index_select(0, batch.nodes)
        times.append(time.perf_counter_ns())
        blocks = build(batch)
        optimizer.zero_grad()
        with torch.autocast('cpu', torch.bfloat16, enabled=narrow):
            logits = net(x, blocks)
        loss = F.cross_entropy(logits.float(), batch.labels)
        loss.backward()
        times.append(time.perf_counter_ns())
        optimizer.step()
        times.append(time.perf_counter_ns())
        cpu = time.process_time_ns() - cpu
        return (*np.diff(times).tolist(), cpu, loss.item())

    def answer(words):
        names = ('extract_ns', 'gradient_ns', 'apply_ns', 'cpu_ns', 'loss')
        return dict(zip(names, zip(*(step() for _ in range(int(words[1]))))))

    served.serve({'peer': peer}, answer)


if __name__ == '__main__':
    main()
