#!/usr/bin/env python3
"""Three SAGEConv layers over the same batches by library: processor time, without any loader.

usage: layers.py KIND FOLDER [DROPOUT]

KIND: `dgl` in DGL's environment; `layers` (a torch.sparse_csr_tensor for each layer) or `edges`
(EdgeIndex) in torch_geometric's. FOLDER: a graph of .npy files. Four batches of 1,024 training
nodes, fanouts 15/10/5, each node expanded once, are drawn here by numpy; layers run over the hops
that are wanted. Prints milliseconds of one thread for a batch, three times. What others do on the
machine disturbs processor time less than time.
"""
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

FANOUTS, SEEDS, BATCHES, HIDDEN = (15, 10, 5), 1024, 4, 256


def drawn(indptr, indices, seeds, random):
    nodes, place = list(seeds), {int(node): row for row, node in enumerate(seeds)}
    sources, rows, begin, sizes = [], [], 0, [(0, len(nodes), 0)]
    for fanout in FANOUTS:
        end = len(nodes)
        for row in range(begin, end):
            there = indices[indptr[nodes[row]]:indptr[nodes[row] + 1]]
            if len(there) > fanout:
                there = there[random.choice(len(there), fanout, replace=False)]
            for node in map(int, there):
                if node not in place:
                    place[node] = len(nodes)
                    nodes.append(node)
                sources.append(place[node])
                rows.append(row)
        begin = end
        sizes.append((end, len(nodes), len(sources)))
    return torch.tensor(nodes), torch.tensor([sources, rows]), sizes[:0:-1]


def library(kind, dims):
    """The convolutions, and what makes a layer's edges."""
    if kind == 'dgl':
        import dgl

        def block(edges, rows, sources):
            indptr = torch._convert_indices_from_coo_to_csr(edges[1].contiguous(), rows)
            csc = (indptr, edges[0].contiguous(), torch.empty(0, dtype=torch.int64))
            return dgl.create_block(('csc', csc), num_src_nodes=sources, num_dst_nodes=rows)

        return [dgl.nn.SAGEConv(*ends, 'mean') for ends in dims], block
    from torch_geometric import EdgeIndex
    from torch_geometric.nn import SAGEConv

    def matrix(edges, rows, sources):
        indptr = torch._convert_indices_from_coo_to_csr(edges[1].contiguous(), rows)
        ones = torch.ones(edges.shape[1])
        return torch.sparse_csr_tensor(indptr, edges[0].contiguous(), ones, size=(rows, sources))

    def index(edges, rows, sources):
        return EdgeIndex(edges, sort_order='col', sparse_size=(sources, rows))

    return [SAGEConv(*ends) for ends in dims], matrix if kind == 'layers' else index


def main(kind, folder, dropout=0.0):
    torch.set_num_threads(1)
    names = ('indptr', 'indices', 'features', 'labels', 'train')
    indptr, indices, features, labels, train = (
        np.load(os.path.join(folder, f'{name}.npy')) for name in names)
    features, labels = torch.from_numpy(features), torch.from_numpy(labels).long()
    random = np.random.default_rng(1)
    batches = [drawn(indptr, indices, random.permutation(train)[:SEEDS], random)
               for _ in range(BATCHES)]
    ends = [features.shape[1], HIDDEN, HIDDEN, int(labels.max()) + 1]
    convs, made = library(kind, list(zip(ends, ends[1:])))
    optimizer = torch.optim.Adam(torch.nn.ModuleList(convs).parameters(), lr=0.003)

    def step(nodes, edges, sizes):
        x = features[nodes]
        for conv, (rows, sources, count) in zip(convs, sizes):
            layer = made(edges[:, :count], rows, sources)
            pair = (x[:sources], x[:rows])
            x = conv(layer, pair) if kind == 'dgl' else conv(pair, layer)
            if conv is not convs[-1]:
                x = F.relu(x)
                x = F.dropout(x, dropout) if dropout > 0 else x
        optimizer.zero_grad()
        F.cross_entropy(x, labels[nodes[:SEEDS]]).backward()
        optimizer.step()

    for batch in batches:
        step(*batch)
    for _ in range(3):
        begin = time.process_time()
        for batch in batches:
            step(*batch)
        each = (time.process_time() - begin) / BATCHES * 1e3
        print(f'{kind} dropout {dropout} PyTorch {torch.__version__}: {each:.0f} ms a batch')


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], *map(float, sys.argv[3:4]))
