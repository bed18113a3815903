#!/usr/bin/env python3
"""Batches with features into a training process: gnnd.loader beside DGL and GraphBolt.

usage: loader.py GRAPH [--fanouts 15,10,5] [--batch 1024] [--threads 2] [--rounds 3]
                 [--hidden 256] [--ours gnnd,gnnd-layers,gnnd-blocks] [--peers dgl,dgl-i32,graphbolt,graphbolt-i32] [--workers 0,2]

Contestants work in turns on one machine. A row is an epoch: batches a second where nothing is done
with a batch, and the seconds of an epoch that trains SAGEConv layers on it: torch_geometric's over
edge_index and over form="layers" (`gnnd`, `gnnd-layers`), DGL's over form="blocks" in the peers'
environment (`gnnd-blocks`), each peer's own. Peers run with each number of worker processes; the
best counts. torch_geometric's NeighborLoader needs pyg-lib or torch-sparse: peers `pyg`, `pyg-adj`.

As `loader.py --contestant …` it is one of them. One JSON line each in build/bench/loader.jsonl.
"""
import argparse
import importlib
import os
import subprocess
import sys
import time

import graphs
import served

PACKAGE = os.path.join(served.ROOT, 'build', 'bench', 'python')


def gnnd_batches(data, fanouts, batch_size, workers, form):
    import gnnd
    import torch
    from torch_geometric.data import Data

    destinations = torch.repeat_interleave(torch.arange(len(data.indptr) - 1), data.indptr.diff())
    graph = Data(x=data.features, y=data.labels,
                 edge_index=torch.stack([data.indices, destinations]))
    loader = gnnd.loader(graph, fanouts, batch_size=batch_size, shuffle=True,
                         input_nodes=data.splits['train'], num_workers=workers, form=form)
    while True:
        for batch in loader:
            yield batch.x, batch, batch.y[:batch.batch_size]


def gnnd_blocks(data, fanouts, batch_size, workers):
    """The same of a dataset of a daemon: DGL's environment has no torch_geometric."""
    import gnnd

    client = gnnd.local(cpu_devices=workers + 1, share_cores=True)
    client.import_arrays('graph', features=data.features, labels=data.labels, indptr=data.indptr,
                         indices=data.indices, **data.splits)
    loader = gnnd.loader('graph', fanouts, batch_size=batch_size, shuffle=True, form='blocks',
                         input_nodes=data.splits['train'], num_workers=workers, client=client)
    while True:
        for _, _, blocks in loader:
            yield blocks[0].srcdata['feat'], blocks, blocks[-1].dstdata['label']


def gnnd_net(dims, dropout):
    import torch
    import torch.nn.functional as F
    from torch_geometric import EdgeIndex
    from torch_geometric.nn import SAGEConv

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = torch.nn.ModuleList(
                SAGEConv(inputs, outputs) for inputs, outputs in zip(dims, dims[1:]))

        def forward(self, batch, x):
            for layer, conv in enumerate(self.convs):
                sources, rows, drawn = layer_of(batch, layer, len(self.convs))
                x = conv((x[:sources], x[:rows]), drawn)
                if layer + 1 < len(self.convs):
                    x = F.dropout(F.relu(x), dropout, self.training)
            return x

    def layer_of(batch, layer, layers):
        """Each layer runs over the hops whose rows are still wanted, as in DGL's blocks."""
        if 'adjs' in batch:
            adj = batch.adjs[layer]
            return adj.size(1), adj.size(0), adj
        nodes, edges, hops = batch.num_sampled_nodes, batch.num_sampled_edges, layers - layer
        sources, rows = sum(nodes[:hops + 1]), sum(nodes[:hops])
        drawn = EdgeIndex(batch.edge_index[:, :sum(edges[:hops])], sort_order='col',
                          sparse_size=(sources, rows))
        return sources, rows, drawn

    return Net()


def contend(peer, folder, fanouts, batch_size, threads, workers, hidden):
    import epoch
    import torch

    torch.set_num_threads(threads)
    data = epoch.Data(folder, peer.endswith('-i32'))
    dims = [data.features.shape[1], *[hidden] * (len(fanouts) - 1), data.classes]
    if peer in ('gnnd', 'gnnd-layers'):
        form = 'layers' if peer.endswith('layers') else 'pyg'
        batches, make = gnnd_batches(data, fanouts, batch_size, workers, form), gnnd_net
    elif peer == 'gnnd-blocks':
        import epoch_dgl
        batches, make = gnnd_blocks(data, fanouts, batch_size, workers), epoch_dgl.Net
    else:
        side = importlib.import_module('epoch_pyg' if peer.startswith('pyg') else 'epoch_dgl')
        batches, make = side.LOADERS[peer](data, fanouts, batch_size, workers), side.Net
    per_epoch = -(-len(data.splits['train']) // batch_size)
    net = make(dims, epoch.DROPOUT)

    def answer(words):
        if words[0] == 'train':
            return {'epoch_s': epoch.train(net, batches, None, per_epoch, 1)['epoch_s'][0]}
        begin = time.perf_counter()
        for _ in range(per_epoch):
            x, _, labels = next(batches)
            assert len(x) >= len(labels) > 0
        return {'batches_per_s': per_epoch / (time.perf_counter() - begin)}

    answer(['load'])
    served.serve({'peer': peer}, answer)


def python_of(peer):
    if peer in ('gnnd', 'gnnd-layers'):
        return os.path.join(served.ROOT, '.cache', 'python-client', 'bin', 'python')
    return served.peer_python('pyg' if peer.startswith('pyg') else 'dgl')


def environment_of(peer):
    if not peer.startswith('gnnd'):
        return served.TUNED
    libraries = subprocess.run(
        [os.path.join(served.ROOT, '.venv', 'bin', 'python'), '-c',
         'import sysconfig; print(sysconfig.get_path("purelib"))'],
        check=True, capture_output=True, text=True).stdout.strip()
    if not os.path.isdir(PACKAGE):
        subprocess.run([os.path.join(served.ROOT, '.venv', 'bin', 'python'), '-m', 'pip', 'install',
                        '--quiet', '--no-deps', '--no-index', '--find-links',
                        os.path.join(served.ROOT, '.cache', 'python-wheels'), '--target', PACKAGE,
                        os.path.join(served.ROOT, 'src', 'python')], check=True)
    own = [] if peer == 'gnnd-blocks' else [os.path.join(served.ROOT, '.cache', 'pyg'), libraries]
    path = [PACKAGE, *own]
    return {**served.TUNED, 'PYTHONPATH': ':'.join(path),
            'GNND_COMMAND': f"node {os.path.join(served.ROOT, 'dist', 'main.js')}",
            'GNND_READER': os.path.join(served.ROOT, 'build', 'native', 'gnnd_reader.so')}


def contestants_of(options, folder):
    made = []
    ours = [(peer, options.threads) for peer in options.ours.split(',') if peer]
    theirs = [(peer, workers) for peer in options.peers.split(',') if peer
              for workers in map(int, options.workers.split(','))]
    for peer, workers in ours + theirs:
        command = [python_of(peer), os.path.abspath(__file__), '--contestant', peer, folder,
                   options.fanouts, str(options.batch), str(options.threads), str(workers),
                   str(options.hidden)]
        made.append(served.Contestant(f'{peer} {workers}', command, options.threads,
                                      environment_of(peer)))
    return made


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('graph')
    parser.add_argument('--fanouts', default='15,10,5')
    parser.add_argument('--peers', default='dgl,dgl-i32,graphbolt,graphbolt-i32')
    parser.add_argument('--ours', default='gnnd,gnnd-layers,gnnd-blocks')
    parser.add_argument('--workers', default='0,2')
    for name, value in (('batch', 1024), ('threads', 2), ('rounds', 3), ('hidden', 256)):
        parser.add_argument(f'--{name}', type=int, default=value)
    options = parser.parse_args()
    folder = options.graph if os.path.isdir(options.graph) else graphs.folder_of(options.graph)
    contestants = served.start(contestants_of(options, folder))
    for _ in range(options.rounds):
        for contestant in contestants:
            contestant.answers.append({**contestant.ask('load'), **contestant.ask('train')})
    lines = []
    for contestant in contestants:
        contestant.close()
        line = {'loader': contestant.name, 'graph': os.path.basename(folder),
                'fanouts': options.fanouts, 'batch': options.batch, 'threads': options.threads}
        for key in ('batches_per_s', 'epoch_s'):
            values = [answer[key] for answer in contestant.answers]
            line[key] = round(served.median(values), 3)
            line[f'{key}_range'] = [round(min(values), 3), round(max(values), 3)]
        lines.append({**line, **served.facts()})
        print(f"{line['loader']:18} {line['batches_per_s']:8.1f} batches/s "
              f"{line['epoch_s']:8.2f} s an epoch that trains", flush=True)
    served.write_lines('loader', lines)


if __name__ == '__main__':
    if '--contestant' in sys.argv:
        name, where, drawn, *numbers = sys.argv[2:]
        size, cores, helpers, width = map(int, numbers)
        contend(name, where, [int(each) for each in drawn.split(',')], size, cores, helpers, width)
    else:
        main()
