"""What the batches of loader.py are of: nodes, or links with drawn pairs of nodes beside them.

Each kind says which contestants there are, reads its data, and makes the endless batches (features,
batch, labels) of gnnd's loader and of a peer's. The driver, which only asks what there is, needs no
library of a contestant's.
"""
import importlib
import os


def graph_of(data, **others):
    from torch_geometric.data import Data

    return Data(x=data.features, edge_index=edges_of(data), **others)


def edges_of(data):
    import torch

    destinations = torch.repeat_interleave(torch.arange(len(data.indptr) - 1), data.indptr.diff())
    return torch.stack([data.indices, destinations])


class Nodes:
    def folder_of(self, name):
        import graphs

        return graphs.folder_of(name)

    DEFAULTS = {'fanouts': '15,10,5', 'ours': 'gnnd,gnnd-layers,gnnd-blocks,gnnd-ranks',
                'peers': 'pyg,dgl,dgl-i32,graphbolt-i32'}
    WORKS = ['load', 'train']

    def data(self, folder, int32):
        import epoch

        return epoch.Data(folder, int32)

    def number(self, data):
        return len(data.splits['train'])

    def ours(self, data, fanouts, batch_size, workers, form):
        import gnnd

        loader = gnnd.loader(graph_of(data, y=data.labels), fanouts, batch_size=batch_size,
                             shuffle=True, input_nodes=data.splits['train'], num_workers=workers,
                             form=form)
        while True:
            for batch in loader:
                yield batch.x, batch, batch.y[:batch.batch_size]

    def theirs(self, peer, data, fanouts, batch_size, workers):
        side = importlib.import_module('epoch_pyg' if peer.startswith('pyg') else 'epoch_dgl')
        return side.LOADERS[peer](data, fanouts, batch_size, workers)


class Links(Nodes):
    """All edges of the graph, with as many pairs of nodes. gnnd's loader and GraphBolt keep a
    batch's own links, and their reverses, out of its edges; torch_geometric leaves them in."""

    DEFAULTS = {'fanouts': '10,10', 'ours': 'gnnd', 'peers': 'pyg,graphbolt', 'batches': 100}
    WORKS = ['load']

    def data(self, folder, int32):
        import epoch

        data = epoch.Data(folder, int32)
        data.pairs = edges_of(data).T.contiguous()
        return data

    def number(self, data):
        return len(data.pairs)

    def ours(self, data, fanouts, batch_size, workers, form):
        import gnnd

        loader = gnnd.link_loader(graph_of(data), fanouts, neg_sampling='binary', shuffle=True,
                                  batch_size=batch_size, num_workers=workers, form=form)
        while True:
            for batch in loader:
                yield batch.x, batch, batch.edge_label

    def theirs(self, peer, data, fanouts, batch_size, workers):
        import links_peer

        batches, _, _ = links_peer.LOADERS[peer](data, fanouts, batch_size, workers)
        for x, batch, _, _, labels in batches:
            yield x, batch, labels


class Typed:
    """Papers of typed_sampling.py's graph, `typed-mag`, or of `typed-mag-4` with a quarter as many
    nodes and edges. Papers have features, 128 columns as in ogbn-mag, and labels."""

    DEFAULTS = {'fanouts': '10,10', 'ours': 'gnnd', 'peers': 'pyg', 'batches': 40}
    WORKS = ['load']

    def folder_of(self, name):
        import served
        import typed_sampling

        folder = os.path.join(served.ROOT, 'build', 'bench', 'graphs', name)
        typed_sampling.make(folder, 4 if name.endswith('-4') else 1)
        return folder

    def data(self, folder, int32):
        import torch
        import typed_sampling_peer

        data, _ = typed_sampling_peer.data_of(folder)
        paper, random = data['paper'], torch.Generator().manual_seed(1)
        paper.x = torch.rand(paper.num_nodes, 128, generator=random)
        paper.y = torch.randint(0, 349, (paper.num_nodes,), generator=random)
        return data

    def number(self, data):
        return data['paper'].num_nodes

    def ours(self, data, fanouts, batch_size, workers, form):
        import gnnd

        return self._batches(gnnd.loader(data, fanouts, batch_size=batch_size, shuffle=True,
                                         input_nodes='paper', num_workers=workers, form=form))

    def theirs(self, peer, data, fanouts, batch_size, workers):
        from torch_geometric.loader import NeighborLoader

        return self._batches(NeighborLoader(
            data, fanouts, batch_size=batch_size, shuffle=True, input_nodes='paper',
            num_workers=workers, persistent_workers=workers > 0))

    def _batches(self, loader):
        while True:
            for batch in loader:
                paper = batch['paper']
                yield paper.x, batch, paper.y[:paper.batch_size]


ITEMS = {'nodes': Nodes(), 'links': Links(), 'typed': Typed()}
