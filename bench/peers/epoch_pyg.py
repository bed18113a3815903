"""torch_geometric's side of epoch.py, in the pyg environment with pyg-lib or torch-sparse.

pyg: NeighborLoader, as its documentation shows it: the model's layers run over the batch's whole
subgraph, hops expand new nodes only. pyg-adj: its older NeighborSampler, whose bipartite blocks
hold what DGL's do, as torch_sparse's SparseTensors, and which needs torch-sparse.
"""
import torch
import torch.nn.functional as F
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader, NeighborSampler
from torch_geometric.nn import SAGEConv


class Net(torch.nn.Module):
    def __init__(self, dims, dropout):
        super().__init__()
        self.dropout = dropout
        self.convs = torch.nn.ModuleList(
            SAGEConv(inputs, outputs) for inputs, outputs in zip(dims, dims[1:]))

    def forward(self, blocks, x):
        """blocks: SparseTensors [destinations, sources], outermost first, or a whole batch."""
        whole = isinstance(blocks, Data)
        for layer, conv in enumerate(self.convs):
            if whole:
                x = conv(x, blocks.edge_index)
            else:
                x = conv((x, x[:blocks[layer].size(0)]), blocks[layer])
            if layer + 1 < len(self.convs):
                x = F.dropout(F.relu(x), self.dropout, self.training)
        return x[:blocks.batch_size] if whole else x


def adjacency(data):
    from torch_sparse import SparseTensor

    nodes = len(data.indptr) - 1
    return SparseTensor(rowptr=data.indptr, col=data.indices, sparse_sizes=(nodes, nodes),
                        is_sorted=True, trust_data=True)


def graph_of(data):
    rows = torch.repeat_interleave(torch.arange(len(data.indptr) - 1), data.indptr.diff())
    return Data(x=data.features, y=data.labels, edge_index=torch.stack([data.indices, rows]))


def loader_batches(data, fanouts, batch_size, workers):
    loader = NeighborLoader(graph_of(data), fanouts, input_nodes=data.splits['train'], shuffle=True,
                            batch_size=batch_size, num_workers=workers, is_sorted=True,
                            persistent_workers=workers > 0)
    while True:
        for batch in loader:
            yield batch.x, batch, batch.y[:batch.batch_size]


def adj_batches(data, fanouts, batch_size, workers):
    loader = NeighborSampler(adjacency(data), fanouts, node_idx=data.splits['train'],
                             return_e_id=False, shuffle=True, batch_size=batch_size,
                             num_workers=workers)
    while True:
        for size, nodes, adjs in loader:
            blocks = [adj.adj_t for adj in (adjs if isinstance(adjs, list) else [adjs])]
            yield data.features[nodes], blocks, data.labels[nodes[:size]]


LOADERS = {'pyg': loader_batches, 'pyg-adj': adj_batches}


def full_blocks(data, nodes, layers):
    """Input nodes and one batch of these nodes' whole neighbourhoods, whose edges are a matrix: the
    sums of all edges' messages need no memory for each of them."""
    loader = NeighborLoader(graph_of(data), [-1] * layers, input_nodes=nodes, is_sorted=True,
                            batch_size=len(nodes))
    batch = next(iter(loader))
    size = len(batch.n_id)
    batch.edge_index = EdgeIndex(batch.edge_index, sort_order='col', sparse_size=(size, size))
    del batch.x
    return batch.n_id, batch
