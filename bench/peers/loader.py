#!/usr/bin/env python3
"""Batches with features into a training process: gnnd.loader beside torch_geometric's, DGL's and
GraphBolt's, gnnd.link_loader beside LinkNeighborLoader and GraphBolt's links, and HeteroData by
both, of GRAPH typed-mag or typed-mag-4.

usage: loader.py GRAPH [--items nodes|links|typed] [--fanouts 15,10,5] [--batch 1024] [--threads 2]
                 [--rounds 3] [--hidden 256] [--workers 0,1,2] [--batches N]
                 [--ours gnnd,gnnd-layers,gnnd-blocks,gnnd-ranks]
                 [--peers pyg,dgl,dgl-i32,graphbolt-i32] [--only load|train]
                 [--memory tuned|default]

Contestants work in turns on one machine, in rounds whose order rotates. A row is an epoch, or so
many batches of it: batches a second where nothing is done with a batch (a few before them are not
counted: those that were made while others had their turn), and the seconds of an epoch that trains
SAGEConv layers on it: torch_geometric's over edge_index and over form="layers" (`gnnd`,
`gnnd-layers`), DGL's over form="blocks" in the peers' environment (`gnnd-blocks`), each peer's own;
`pyg` has the net of `gnnd`, which runs each layer over the hops that are wanted. `gnnd-ranks` are
two processes that share a loader: batches of both a second, no training. Processor time is that of
all processes of a contestant, and the figure to look at where others use the machine. Peers run
with each number of worker processes; the best counts. All have served.py's malloc, or with
`--memory default` the one that is installed. Peer `pyg` needs pyg-lib (setup.sh). Ratios are
medians over rounds of the first contestant's figure and the other's in the same round.

As `loader.py --contestant …` it is one of them. One JSON line each in build/bench/loader.jsonl.
"""
import argparse
import functools
import importlib
import json
import os
import subprocess
import sys
import time

import served
from items import ITEMS

# Of a row's figures.
UNITS = {'batches_per_s': 'batches/s', 'processor_ms': 'ms of processor time a batch',
         'nodes': 'nodes a batch', 'epoch_s': 's an epoch',
         'epoch_processor_s': 's of processor time an epoch'}
# Batches that loaders may have ready when their turn begins, at most.
READY = 16


def daemon_with(data, workers):
    """A client of a daemon that has the graph as a dataset."""
    import gnnd

    client = gnnd.local(cpu_devices=workers + 1, share_cores=True)
    client.import_arrays('graph', features=data.features, labels=data.labels, indptr=data.indptr,
                         indices=data.indices, **data.splits)
    return client


def gnnd_blocks(data, fanouts, batch_size, workers):
    """The same of a dataset of a daemon: DGL's environment has no torch_geometric."""
    import gnnd

    loader = gnnd.loader('graph', fanouts, batch_size=batch_size, shuffle=True, form='blocks',
                         input_nodes=data.splits['train'], num_workers=workers,
                         client=daemon_with(data, workers))
    while True:
        for _, _, blocks in loader:
            yield blocks[0].srcdata['feat'], blocks, blocks[-1].dstdata['label']


def of_rank(client, options, rank, job):
    import gnnd

    return gnnd.loader('graph', client=client, rank=rank, world_size=2, job=job, shuffle=True,
                       **options)


def second_rank(address, job, options):
    """The process of rank 1: an epoch for each line that it reads."""
    import gnnd

    loader = of_rank(gnnd.connect(address), json.loads(options), 1, job)
    print('ready', flush=True)
    for _ in sys.stdin:
        print(sum(len(batch.x) for batch in loader), flush=True)


def gnnd_ranks(data, fanouts, batch_size, threads):
    """What an epoch of two ranks that share a loader takes; the other is a process of its own."""
    client = daemon_with(data, threads)
    options = {'num_neighbors': fanouts, 'batch_size': batch_size, 'num_workers': threads}
    loader = of_rank(client, options, 0, None)
    other = subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), '--second-rank', client.connection.address,
         loader.job_id, json.dumps(options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True)
    assert other.stdout.readline() == 'ready\n'

    def epoch_of_both():
        print(file=other.stdin, flush=True)
        nodes = sum(len(batch.x) for batch in loader)
        return nodes + int(other.stdout.readline())

    return lambda _: timed(epoch_of_both, len(loader))


def timed(load, batches):
    """`load()` says how many nodes its batches had."""
    begin, processor = time.perf_counter(), served.processor_seconds()
    nodes = load()
    return {'batches_per_s': batches / (time.perf_counter() - begin),
            'processor_ms': (served.processor_seconds() - processor) / batches * 1e3,
            'nodes': nodes / batches}


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


def contend(peer, items, folder, options):
    import epoch
    import torch

    fanouts, batch_size, workers = options.fanouts, options.batch, options.workers
    torch.set_num_threads(options.threads)
    data = items.data(folder, peer.endswith('-i32'))
    if peer == 'gnnd-ranks':
        answer = gnnd_ranks(data, fanouts, batch_size, options.threads)
        answer(['load'])
        served.serve({'peer': peer}, answer)
        return
    make = gnnd_net
    if peer in ('gnnd', 'gnnd-layers'):
        form = 'layers' if peer.endswith('layers') else 'pyg'
        batches = items.ours(data, fanouts, batch_size, workers, form)
    elif peer == 'gnnd-blocks':
        import epoch_dgl
        batches, make = gnnd_blocks(data, fanouts, batch_size, workers), epoch_dgl.Net
    else:
        batches = items.theirs(peer, data, fanouts, batch_size, workers)
        if peer != 'pyg':
            make = importlib.import_module('epoch_dgl').Net
    counted = options.batches or -(-items.number(data) // batch_size)

    def answer(words):
        if words[0] == 'train':
            dims = [data.features.shape[1], *[options.hidden] * (len(fanouts) - 1), data.classes]
            net, processor = make(dims, epoch.DROPOUT), served.processor_seconds()
            seconds = epoch.train(net, batches, None, counted, 1)['epoch_s'][0]
            return {'epoch_s': seconds, 'epoch_processor_s': served.processor_seconds() - processor}
        load(READY)
        return timed(lambda: load(counted), counted)

    def load(number):
        nodes = 0
        for _ in range(number):
            x, _, labels = next(batches)
            assert len(x) >= len(labels) > 0
            nodes += len(x)
        return nodes

    # What a loader starts or makes at first is no part of an epoch.
    load(READY)
    served.serve({'peer': peer}, answer)


def python_of(peer):
    if peer in ('gnnd', 'gnnd-layers', 'gnnd-ranks'):
        return os.path.join(served.ROOT, '.cache', 'python-client', 'bin', 'python')
    return served.peer_python('pyg' if peer.startswith('pyg') else 'dgl')


@functools.cache
def installed():
    """The package as it is now."""
    folder = os.path.join(served.ROOT, 'build', 'bench', 'python')
    subprocess.run([os.path.join(served.ROOT, '.venv', 'bin', 'python'), '-m', 'pip', 'install',
                    '--quiet', '--no-deps', '--no-index', '--upgrade', '--find-links',
                    os.path.join(served.ROOT, '.cache', 'python-wheels'), '--target', folder,
                    os.path.join(served.ROOT, 'src', 'python')], check=True)
    return folder


def environment_of(peer, memory):
    kept = served.TUNED if memory == 'tuned' else {}
    if not peer.startswith('gnnd'):
        return kept
    libraries = subprocess.run(
        [os.path.join(served.ROOT, '.venv', 'bin', 'python'), '-c',
         'import sysconfig; print(sysconfig.get_path("purelib"))'],
        check=True, capture_output=True, text=True).stdout.strip()
    own = [] if peer == 'gnnd-blocks' else [os.path.join(served.ROOT, '.cache', 'pyg'), libraries]
    path = [installed(), *own]
    return {**kept, 'PYTHONPATH': ':'.join(path),
            'GNND_COMMAND': f"node {os.path.join(served.ROOT, 'dist', 'main.js')}",
            'GNND_READER': os.path.join(served.ROOT, 'build', 'native', 'gnnd_reader.so')}


def contestants_of(options, folder):
    made = []
    ours = [(peer, options.threads) for peer in options.ours.split(',') if peer]
    theirs = [(peer, workers) for peer in options.peers.split(',') if peer
              for workers in map(int, options.workers.split(','))]
    for peer, workers in ours + theirs:
        told = json.dumps({**vars(options), 'workers': workers,
                           'fanouts': [int(each) for each in options.fanouts.split(',')]})
        command = [python_of(peer), os.path.abspath(__file__), '--contestant', peer, folder, told]
        made.append(served.Contestant(f'{peer} {workers}', command, options.threads,
                                      environment_of(peer, options.memory)))
    return made


def line_of(contestant, first, options, folder):
    """Medians over rounds, and of the ratios to the first contestant's in the same round."""
    line = {'loader': contestant.name, 'graph': os.path.basename(folder), 'items': options.items,
            'fanouts': options.fanouts, 'batch': options.batch, 'threads': options.threads,
            'memory': options.memory}
    for key in UNITS:
        values = [answer[key] for answer in contestant.answers if key in answer]
        if not values:
            continue
        line[key] = round(served.median(values), 3)
        line[f'{key}_rounds'] = [round(value, 3) for value in values]
        own = [answer[key] for answer in first.answers if key in answer]
        if len(own) == len(values):
            ratios = [one / other if key == 'batches_per_s' else other / one
                      for one, other in zip(own, values)]
            line[f'{key}_ratio'] = round(served.median(ratios), 3)
    return {**line, **served.facts()}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('graph')
    parser.add_argument('--items', choices=tuple(ITEMS), default='nodes')
    for name in ('fanouts', 'peers', 'ours'):
        parser.add_argument(f'--{name}')
    parser.add_argument('--workers', default='0,1,2')
    parser.add_argument('--only', choices=('load', 'train'))
    parser.add_argument('--batches', type=int)
    parser.add_argument('--memory', choices=('tuned', 'default'), default='tuned')
    for name, value in (('batch', 1024), ('threads', 2), ('rounds', 3), ('hidden', 256)):
        parser.add_argument(f'--{name}', type=int, default=value)
    options = parser.parse_args()
    items = ITEMS[options.items]
    for name, value in items.DEFAULTS.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    folder = options.graph if os.path.isdir(options.graph) else items.folder_of(options.graph)
    contestants = served.start(contestants_of(options, folder))
    works = [options.only] if options.only else items.WORKS
    for number in range(options.rounds):
        turn = number % len(contestants)
        for contestant in contestants[turn:] + contestants[:turn]:
            answer = {}
            for work in works:
                if work == 'load' or 'ranks' not in contestant.name:
                    answer |= contestant.ask(work)
            contestant.answers.append(answer)
    lines = []
    for contestant in contestants:
        contestant.close()
        lines.append(line_of(contestant, contestants[0], options, folder))
        shown = [f'{lines[-1][key]:8.2f} {unit} (x {lines[-1].get(key + "_ratio", "-")})'
                 for key, unit in UNITS.items() if key in lines[-1]]
        print(f'{contestant.name:18}', *shown, flush=True)
    served.write_lines('loader', lines)


if __name__ == '__main__':
    if sys.argv[1:2] == ['--second-rank']:
        second_rank(*sys.argv[2:])
    elif '--contestant' in sys.argv:
        name, where, told = sys.argv[2:]
        given = argparse.Namespace(**json.loads(told))
        contend(name, ITEMS[given.items], where, given)
    else:
        main()
