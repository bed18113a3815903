"""DGL and torch_geometric as contestants of evaluation.py.

usage: evaluation_peer.py PEER FOLDER FEATURES HIDDEN CLASSES LAYERS ROUNDS

FOLDER is what evaluation_bench dumped. PEER: dgl-batches is the layer-wise inference of DGL's own
examples: for each layer a loader of all nodes with all their neighbours, a block a batch. dgl-whole
and pyg-whole call each layer once on the whole graph, which is layer-wise, too, and the fastest
that they can where memory holds it. (torch_geometric's loaders need a sampler that PyPI does not
have.) One JSON object: seconds of each round, the largest difference of logits, peak memory.
"""
import json
import os
import resource
import sys
import time

import numpy as np
import torch

PEER, FOLDER = sys.argv[1:3]
FEATURES, HIDDEN, CLASSES, LAYERS, ROUNDS = (int(text) for text in sys.argv[3:8])
BATCH = 4096


def raw(name, dtype, shape=(-1,)):
    return torch.from_numpy(np.fromfile(os.path.join(FOLDER, name), dtype).reshape(shape))


def widths():
    return [FEATURES, *[HIDDEN] * (LAYERS - 1), CLASSES]


def parameter(layer, name, shape):
    return raw(f'convs.{layer}.{name}.f32', np.float32, shape)


def parameters(layer):
    inputs, outputs = widths()[layer:layer + 2]
    return (parameter(layer, 'lin_l.weight', (outputs, inputs)),
            parameter(layer, 'lin_l.bias', (outputs,)),
            parameter(layer, 'lin_r.weight', (outputs, inputs)))


def dgl_layers():
    import dgl
    convs = []
    for layer, (inputs, outputs) in enumerate(zip(widths(), widths()[1:])):
        neighbour, bias, own = parameters(layer)
        conv = dgl.nn.SAGEConv(inputs, outputs, 'mean')
        conv.load_state_dict({'fc_neigh.weight': neighbour, 'fc_self.weight': own,
                              'fc_self.bias': bias})
        convs.append(conv)
    return convs


def dgl_whole(indptr, indices):
    import dgl
    graph = dgl.graph(('csc', (indptr, indices, [])), num_nodes=len(indptr) - 1)
    convs = dgl_layers()
    return lambda layer, x: convs[layer](graph, x)


def dgl_batches(indptr, indices):
    import dgl
    graph = dgl.graph(('csc', (indptr, indices, [])), num_nodes=len(indptr) - 1)
    convs = dgl_layers()
    nodes = torch.arange(graph.num_nodes())
    sampler = dgl.dataloading.MultiLayerFullNeighborSampler(1)

    def run(layer, x):
        out = torch.empty(graph.num_nodes(), widths()[layer + 1])
        for inputs, outputs, blocks in dgl.dataloading.DataLoader(
                graph, nodes, sampler, batch_size=BATCH, shuffle=False, num_workers=0):
            out[outputs] = convs[layer](blocks[0], x[inputs])
        return out
    return run


def pyg_whole(indptr, indices):
    from torch_geometric.nn import SAGEConv
    nodes = len(indptr) - 1
    # Row v lists the in-neighbours of v: the transposed adjacency that PyG wants.
    adjacency = torch.sparse_csr_tensor(indptr, indices, torch.ones(len(indices)),
                                        size=(nodes, nodes))
    convs = []
    for layer, (inputs, outputs) in enumerate(zip(widths(), widths()[1:])):
        neighbour, bias, own = parameters(layer)
        conv = SAGEConv(inputs, outputs)
        conv.load_state_dict({'lin_l.weight': neighbour, 'lin_l.bias': bias, 'lin_r.weight': own})
        convs.append(conv)
    return lambda layer, x: convs[layer](x, adjacency)


PEERS = {'dgl-whole': dgl_whole, 'dgl-batches': dgl_batches, 'pyg-whole': pyg_whole}


@torch.no_grad()
def main():
    indptr = raw('indptr.u64', np.int64)
    indices = raw('indices.u32', np.int32).long()
    features = raw('features.f32', np.float32, (-1, FEATURES))
    layer_of = PEERS[PEER](indptr, indices)
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        x = features
        for layer in range(LAYERS):
            x = layer_of(layer, x)
            if layer + 1 < LAYERS:
                x = x.relu_()
        seconds.append(time.perf_counter() - begin)
    ours = raw('logits.f32', np.float32, (-1, CLASSES))
    theirs = x[raw('nodes.u32', np.int32).long()]
    error = ((ours - theirs).abs().max() / ours.abs().max()).item()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({'bench': 'evaluation', 'peer': PEER, 'seconds': sorted(seconds)[ROUNDS // 2],
                      'all_seconds': seconds, 'error': error, 'peak_bytes': peak}))


main()
