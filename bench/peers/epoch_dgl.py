"""DGL's and GraphBolt's side of epoch.py, in the dgl environment."""
import dgl
import dgl.graphbolt as gb
import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self, dims, dropout):
        super().__init__()
        self.dropout = dropout
        self.convs = torch.nn.ModuleList(
            dgl.nn.SAGEConv(inputs, outputs, 'mean') for inputs, outputs in zip(dims, dims[1:]))

    def forward(self, blocks, x):
        for layer, (conv, block) in enumerate(zip(self.convs, blocks)):
            x = conv(block, (x, x[:block.num_dst_nodes()]))
            if layer + 1 < len(self.convs):
                x = F.dropout(F.relu(x), self.dropout, self.training)
        return x


def graph_of(data):
    return dgl.graph(('csc', (data.indptr, data.indices, [])),
                     idtype=data.indices.dtype).formats('csc')


def dgl_batches(data, fanouts, batch_size, workers):
    # DGL's fused path (for two threads and more) corrupts the heap with 32-bit ids.
    fused = data.indices.dtype == torch.int64
    sampler = dgl.dataloading.NeighborSampler(fanouts[::-1], fused=fused)
    loader = dgl.dataloading.DataLoader(graph_of(data), data.splits['train'], sampler, shuffle=True,
                                        batch_size=batch_size, num_workers=workers,
                                        persistent_workers=workers > 0)
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


LOADERS = {'dgl': dgl_batches, 'dgl-i32': dgl_batches,
           'graphbolt': graphbolt_batches, 'graphbolt-i32': graphbolt_batches}


def full_blocks(data, nodes, layers):
    """Input nodes and blocks, outermost first, of these nodes' whole neighbourhoods."""
    sampler = dgl.dataloading.MultiLayerFullNeighborSampler(layers, fused=False)
    inputs, _, blocks = sampler.sample_blocks(graph_of(data), nodes)
    return inputs, blocks
