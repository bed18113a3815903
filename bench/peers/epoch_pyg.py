"""torch_geometric's side of epoch.py, in the pyg environment with torch-sparse.

pyg: NeighborLoader, as its documentation shows it: the model's layers run over the batch's whole
subgraph (trimming it to layers needs pyg-lib), hops expand new nodes only. pyg-adj: its older
NeighborSampler, whose bipartite blocks hold what DGL's do, as torch_sparse's SparseTensors.
"""
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader, NeighborSampler
from torch_geometric.nn import SAGEConv
from torch_sparse import SparseTensor


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
    nodes = len(data.indptr) - 1
    return SparseTensor(rowptr=data.indptr, col=data.indices, sparse_sizes=(nodes, nodes),
                        is_sorted=True, trust_data=True)


def loader_batches(data, fanouts, batch_size, workers):
    graph = Data(x=data.features, y=data.labels, adj_t=adjacency(data))
    loader = NeighborLoader(graph, fanouts, input_nodes=data.splits['train'], shuffle=True,
                            batch_size=batch_size, num_workers=workers)
    while True:
        for batch in loader:
            if 'adj_t' in batch:  # the loader keeps the form that the graph had
                row, column, _ = batch.adj_t.coo()
                batch.edge_index = torch.stack([column, row])
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
    """Input nodes and blocks, outermost first, of these nodes' whole neighbourhoods."""
    adj, blocks = adjacency(data), []
    for _ in range(layers):
        block, nodes = adj.sample_adj(nodes, -1, replace=False)
        blocks.insert(0, block)
    return nodes, blocks
